//! Clocks for programs, beside the one that timers run on: counters of this machine, a slow one
//! that is read once for everybody, and a time of one's own over whatever counters there are.

pub mod combined;
#[cfg(linux_platform)]
pub mod hardware;
pub mod kept;
