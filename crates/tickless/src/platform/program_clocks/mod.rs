//! Clocks for programs, beside the one that timers run on: counters of this machine, combined
//! reading of a slow counter, and a clock over the best of several counters.

pub mod combined;
#[cfg(linux_platform)]
pub mod hardware;
pub mod kept;
