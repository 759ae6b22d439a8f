//! Linux's timer algorithms for programs, without an operating system and without allocation when a
//! timer is armed.
//!
//! The modules from the bottom up; each uses only those above it in this table.
//!
//! | module | holds |
//! |---|---|
//! | [`word`] | an atomic word, which each platform provides |
//! | [`time`] | nanoseconds, windows, ticks, CPU numbers |
//! | [`clock`] | clocks from counters, the combined reader, the watchdog |
//! | [`bandwidth`] | groups with a quota in every period |
//! | [`rearm`] | when an event device must be programmed, as a value |
//! | [`platform`] | the interface to the system that the core runs on |
//! | [`state`] | a timer's state in one word |
//! | [`link`] | intrusive nodes; unsafe code |
//! | [`queues`] | the wheel and the ordered queue, without locks and clocks |
//! | [`local`] | timers for one thread, without locks |
//! | [`bases`] | timers for many CPUs, a base for each |
//! | [`owned`] | a timer that owns its memory; unsafe code |
//!
//! [`phase`], [`periodic`] and [`histogram`] use `time` only.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[expect(unsafe_code, reason = "intrusive nodes are accessed through pointers")]
pub mod link;
#[expect(unsafe_code, reason = "the owner of a timer frees it")]
pub mod owned;

pub mod bandwidth;
pub mod bases;
pub mod clock;
pub mod histogram;
#[warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
pub mod local;
pub mod periodic;
pub mod phase;
#[expect(unsafe_code, reason = "a platform promises what unsafe code relies on")]
pub mod platform;
pub mod queues;
pub mod rearm;
pub mod state;
pub mod time;
pub mod word;

/// Compiles the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
