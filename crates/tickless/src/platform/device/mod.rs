//! What wakes a base when its next timer is due.
//!
//! | file | device | a write costs | waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a call if its driver sleeps past it | a driver |
//! | `timerfd` | a timerfd in an epoll | one call, and nobody wakes | a driver |
//! | `own_loop` | a timerfd, or a callback | one call, or what the callback does | the program |
//!
//! How a driver or a loop that waits is told that the next event has moved earlier is in `bell`.
//!
//! The core decides what a device is told (`tickless_core::rearm`), under the lock of its base;
//! here is how. Every base has a doorbell, whatever its device is: a timerfd that the system
//! takes away leaves its driver there, with every timer.

pub mod base;
mod bell;
pub mod fallback;
pub mod futex;
pub mod own_loop;
#[cfg(linux_platform)]
pub mod timerfd;
