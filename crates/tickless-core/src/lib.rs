//! Linux's timer algorithms for programs: no operating system, no allocation to arm a timer.
//!
//! From the bottom up; a module uses those above it in this table alone.
//!
//! | module | holds |
//! |---|---|
//! | [`word`] | an atomic word, which each platform provides |
//! | [`time`] | nanoseconds, windows, ticks, CPU numbers |
//! | [`clock`] | clocks from counters, the combined reader, the watchdog |
//! | [`bandwidth`] | groups with a quota in every period |
//! | [`rearm`] | what the event device must be told, as a value |
//! | [`platform`] | the seam: what a world must provide |
//! | [`state`] | a timer's life in one word |
//! | [`link`] | intrusive nodes and slots; unsafe code |
//! | [`queues`] | the wheel and the ordered queue: pure |
//! | [`local`] | one base, one thread, no locks |
//! | [`bases`] | many bases, one a CPU |
//! | [`owned`] | a timer that owns its memory; unsafe code |
//!
//! Beside them, on `time` alone: [`phase`], [`periodic`] and [`histogram`].
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod link;
pub mod owned;

#[forbid(unsafe_code)]
pub mod bandwidth;
#[forbid(unsafe_code)]
pub mod bases;
#[forbid(unsafe_code)]
pub mod clock;
#[forbid(unsafe_code)]
pub mod histogram;
#[forbid(unsafe_code)]
#[warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
pub mod local;
#[forbid(unsafe_code)]
pub mod periodic;
#[forbid(unsafe_code)]
pub mod phase;
pub mod platform;
#[forbid(unsafe_code)]
pub mod queues;
#[forbid(unsafe_code)]
pub mod rearm;
#[forbid(unsafe_code)]
pub mod state;
#[forbid(unsafe_code)]
pub mod time;
#[forbid(unsafe_code)]
pub mod word;

/// The code of the README is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
