//! Linux's timer algorithms for programs: no operating system, no allocation to arm.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod link;

#[forbid(unsafe_code)]
pub mod bandwidth;
#[forbid(unsafe_code)]
pub mod base;
#[forbid(unsafe_code)]
pub mod cancel;
#[forbid(unsafe_code)]
pub mod check;
#[forbid(unsafe_code)]
pub mod clock;
#[forbid(unsafe_code)]
pub mod deferred;
#[forbid(unsafe_code)]
pub mod expiry;
#[forbid(unsafe_code)]
mod family;
#[forbid(unsafe_code)]
pub mod histogram;
#[forbid(unsafe_code)]
pub mod local;
#[forbid(unsafe_code)]
pub mod migrate;
#[forbid(unsafe_code)]
pub mod pending;
#[forbid(unsafe_code)]
pub mod periodic;
#[forbid(unsafe_code)]
pub mod phase;
#[forbid(unsafe_code)]
pub mod platform;
#[forbid(unsafe_code)]
pub mod queue;
#[forbid(unsafe_code)]
mod ranged;
#[forbid(unsafe_code)]
pub mod rearm;
#[forbid(unsafe_code)]
pub mod running;
#[forbid(unsafe_code)]
pub mod start;
#[forbid(unsafe_code)]
pub mod state;
#[forbid(unsafe_code)]
pub mod tick;
#[forbid(unsafe_code)]
pub mod time;
#[forbid(unsafe_code)]
pub mod wheel;
