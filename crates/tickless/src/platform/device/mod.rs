//! What wakes a base when its next timer is due.
//!
//! | file | device | a write costs | waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a call if its driver sleeps longer | a driver |
//! | `timerfd` | a timerfd in an epoll | one call, which wakes no thread | a driver |
//! | `own_loop` | a timerfd, or a callback | one call, or that of the callback | the program |
//!
//! `bell` has the protocols that wake a waiting driver or loop when the next event moves earlier.
//!
//! The core decides when the device must be programmed (`tickless_core::rearm`), under the lock of
//! its base. Every base has a bell, whatever its device is: if the system later refuses a timerfd,
//! its driver continues on the futex with all its timers.

pub mod base;
mod bell;
pub mod fallback;
pub mod futex;
pub mod own_loop;
#[cfg(linux_platform)]
pub mod timerfd;
