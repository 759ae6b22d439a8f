//! Event devices. Each base (one CPU's timers) has one, which wakes the thread that waits in it
//! when the next timer of the base is due.
//!
//! | file | device | programming it costs | what waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a system call, if it must wake its driver | a driver |
//! | `own_loop` | a timerfd, or a callback | a system call, or the callback | an event loop |
//!
//! `bell` has the protocols that wake a waiting driver thread or event loop, and `timerfd` the
//! descriptor that a loop polls.

pub mod base;
pub mod bell;
pub mod futex;
pub mod own_loop;
pub mod refused;
#[cfg(linux_platform)]
pub mod timerfd;
