//! Timers inside an event loop of one's own: no threads, no locks, no callbacks.
//!
//! An echo server in a plain epoll loop. The loop asks [`LocalTimers`] how long it may wait.
//! Whatever a connection says pushes its idle timeout out; a connection that says nothing for
//! long enough is closed. A heartbeat keeps its pace by itself. The clients fall silent after a
//! while, and when the last one has been hung up on the program ends.

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

/// epoll is Linux's; `mio_loop` is the same server for every system.
#[cfg(not(linux_platform))]
fn main() {
    println!("this example needs Linux");
}
