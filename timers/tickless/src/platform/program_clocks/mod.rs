//! Clocks that programs can use, apart from the one that timers run on: counters of this machine,
//! and combined reading of a slow counter.

pub mod combined;
#[cfg(linux_platform)]
pub mod hardware;
