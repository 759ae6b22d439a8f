//! Settings of driver threads, which sleep until timers are due. The standard library can set
//! neither the timer slack nor the CPU affinity of a thread, so these functions do nothing.

pub fn sharpen_sleep() {}

pub fn stay_on(_: u32) {}
