//! What a driver thread does for itself: nothing, as the standard library sets neither how exact
//! its sleeps are nor where it runs.

/// Makes the calling thread's sleeps as exact as the system can.
pub fn sharpen_sleep() {}

/// Keeps the calling thread on one CPU, if the system agrees.
pub fn stay_on(_: u32) {}
