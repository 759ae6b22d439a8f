//! Event devices. Each base (one CPU's timers) has one, which wakes the thread that waits in it
//! when the next timer of the base is due.
//!
//! | file | device | programming it costs | what waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a system call, if it must wake its driver | a driver |
//! | `timerfd` | a timerfd in an epoll | a system call, which wakes no thread | a driver |
//! | `own_loop` | a timerfd, or a callback | a system call, or the callback | an event loop |
//!
//! `bell` has the protocols that wake a waiting driver thread or event loop. Every base has a
//! futex, whatever its device is: if the system later refuses calls for the timerfd, the driver
//! continues on the futex with all its timers.

pub mod base;
#[cfg_attr(feature = "policy", expect(missing_docs, reason = "only studies see it"))]
pub mod bell;
pub mod fallback;
pub mod futex;
pub mod own_loop;
#[cfg(linux_platform)]
pub mod timerfd;
