//! Linux's timer algorithms for programs: no operating system, no allocation to arm.
#![no_std]
#![warn(missing_docs)]

pub mod link;
#[forbid(unsafe_code)]
pub mod queue;
pub mod time;
