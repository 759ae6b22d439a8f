//! Clocks that programs can use, apart from the one that timers run on: counters of this machine,
//! combined reading of a slow counter, and a clock that runs on the best of several counters.

pub mod combined;
#[cfg(linux_platform)]
pub mod hardware;
pub mod kept;
