//! What the `tickless` program is made of, as a library so that tests can reach it.

#![forbid(unsafe_code)]

pub mod trace;

/// The whole program.
pub fn main() {}
