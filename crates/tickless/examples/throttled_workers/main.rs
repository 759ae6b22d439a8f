//! Background work that leaves three quarters of one CPU to others, and a rate limit on the same
//! timers.
//!
//! Two threads compress, index or whatever; together they may use 25 ms of CPU time in every
//! 100 ms. They ask between two pieces of work, which should be short beside the quota: a thread
//! uses more than its part by one piece at most.

// It fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

// `tickless` sets this for Linux, in `build.rs`; a program of yours says `target_os = "linux"`.
#[cfg(linux_platform)]
mod linux;

#[cfg(linux_platform)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

/// CPU time is asked of Linux. `worker_pool` has a limiter, which is for every system.
#[cfg(not(linux_platform))]
fn main() {
    println!("this example needs Linux");
}
