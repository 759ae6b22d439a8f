//! Linux's timer algorithms for programs: no operating system, no allocation to arm.
#![no_std]

extern crate alloc;

pub mod link;
#[forbid(unsafe_code)]
pub mod tick;
#[forbid(unsafe_code)]
pub mod time;
#[forbid(unsafe_code)]
pub mod wheel;
