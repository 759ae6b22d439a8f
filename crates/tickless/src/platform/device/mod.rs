//! Event devices. Each base (one CPU's timers) has one, which wakes it when its next timer is due.
//!
//! | file | device | programming it costs | what waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a system call if its driver sleeps for longer | a driver |
//! | `timerfd` | a timerfd in an epoll | a system call, which wakes no thread | a driver |
//! | `own_loop` | a timerfd, or a callback | a system call, or the callback | an event loop |
//!
//! `bell` has the protocols that wake a waiting driver thread or event loop when a timer is armed
//! for an earlier time than it waits for.
//!
//! `tickless_core::rearm` decides when a device must be programmed, under the lock of its base.
//! Every base has a futex to wake its driver by, whatever its device is: if the system later
//! refuses calls for the timerfd, the driver continues on the futex with all its timers.

pub mod base;
mod bell;
pub mod fallback;
pub mod futex;
pub mod own_loop;
#[cfg(linux_platform)]
pub mod timerfd;
