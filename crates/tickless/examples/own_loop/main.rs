//! Timers that any thread can arm, and that fire in the program's own epoll loop, without other
//! threads.
//!
//! The loop waits for a pipe and for the timers' driver, which is one more descriptor. Another
//! thread writes to the pipe and pushes out the idle timeout each time; then it stops writing, and
//! the timeout ends the loop. (For timers that only the loop itself arms see `local_loop`, which
//! needs no lock either.)

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(clippy::incompatible_msrv, reason = "examples are built with the pinned compiler")]

// Tickless sets this for Linux in `build.rs`. Your program uses `target_os = "linux"` instead.
#[cfg(linux_platform)]
mod linux;

#[cfg(linux_platform)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

/// A loop that waits for a descriptor needs a timerfd. `Builder::start_in_loop_with` does not.
#[cfg(not(linux_platform))]
fn main() {
    println!("this example needs Linux");
}

#[cfg(all(test, linux_platform))]
mod tests {
    #[test]
    fn runs() {
        super::linux::main().expect("it runs to its end");
    }
}
