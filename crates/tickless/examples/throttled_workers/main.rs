//! Background work that leaves three quarters of one CPU to others, and a rate limit on the same
//! timers.
//!
//! Two threads simulate background work such as compression; together they may use 25 ms of CPU
//! time in every 100 ms. They check between two pieces of work, which should be short compared with
//! the quota: a thread exceeds its share by at most one piece.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

// Tickless sets this for Linux in `build.rs`. Your program uses `target_os = "linux"` instead.
#[cfg(linux_platform)]
mod linux;

#[cfg(linux_platform)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

/// The throttle needs Linux. `worker_pool` uses a limiter, which works on every system.
#[cfg(not(linux_platform))]
fn main() {
    println!("this example needs Linux");
}
