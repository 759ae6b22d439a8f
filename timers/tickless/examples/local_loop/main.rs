//! Sleeps in an event loop of one's own: a small executor of one thread, on io_uring or epoll.
//!
//! The loop runs the tasks that are ready, asks for the next event, waits until then or until a
//! socket can be read, and advances the sleeps. The tasks are the two ends of a connection: one
//! sends messages with pauses, the other echoes them and hangs up when none has come for too long.
//! `io_uring.rs` and `epoll.rs` wait; where the system refuses io_uring, the program uses epoll.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "entries of io_uring refer to memory and descriptors")]
mod io_uring;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::run(&epoll::Epoll::new()?)?;
    println!("epoll: echoed");
    match io_uring::Ring::new() {
        Ok(ring) => {
            linux::run(&ring)?;
            println!("io_uring: echoed");
        }
        Err(refused) => println!("io_uring: refused ({refused})"),
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("epoll and io_uring are Linux's");
}
