//! Linux's timer algorithms as a library: it needs no operating system, and arming a timer
//! allocates nothing.
//!
//! The modules from the bottom up; each uses only those above it in this table.
//!
//! | module | holds |
//! |---|---|
//! | [`word`] | an atomic word, which each platform provides |
//! | [`time`] | nanoseconds, windows of time, ticks, CPU numbers |
//! | [`clock`] | time from a counter, and combined reads of a slow one |
//! | [`bandwidth`] | groups with a quota in every period |
//! | [`rearm`] | decides when an event device must be programmed, and returns the decision |
//! | [`platform`] | the interface to the system that the core runs on |
//! | [`state`] | a timer's state in one word |
//! | [`link`] | intrusive nodes; unsafe code |
//! | [`queues`] | the wheel and the ordered queue; they take no lock and read no clock |
//! | [`local`] | timers for one thread, without locks |
//! | [`bases`] | timers for many CPUs, a base for each |
//! | [`owned`] | a timer that owns its memory; unsafe code |
//!
//! [`phase`], [`periodic`] and [`histogram`] use only `time`.
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
pub mod invariant;
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
