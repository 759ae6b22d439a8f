//! Timers inside a program's own event loop: no threads, no locks, no callbacks.
//!
//! An echo server in a plain epoll loop. The loop asks [`LocalTimers`] how long it may wait. Each
//! message pushes out the idle timeout of its connection; a connection without messages for that
//! long is closed. A heartbeat keeps its pace. After a while the clients stop sending, and the
//! program ends when the last one has been disconnected.

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

/// epoll exists only on Linux.
#[cfg(not(linux_platform))]
fn main() {
    println!("this example needs Linux");
}
