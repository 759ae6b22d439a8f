//! Settings of driver threads. The standard library can set neither a thread's timer slack nor its
//! CPU affinity, so these functions do nothing.

/// Does nothing.
pub fn sharpen_sleep() {}

/// Does nothing.
pub fn stay_on(_: u32) {}
