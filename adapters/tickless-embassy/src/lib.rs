//! embassy's timers on Tickless.
//!
//! - [`TimerQueue`], for who writes a time driver for a board: the same two functions as
//!   `embassy-time-queue-utils`' queue, O(log n) instead of O(n), without a limit on how many
//!   tasks wait. `no_std`; it allocates when more tasks wait than ever before.
//! - With the feature `std`, a time driver for programs on an operating system. Nothing has to be
//!   called: depend on this crate, and say `use tickless_embassy as _;` so that it is linked.
//! - With the feature `virtual-time`, a driver whose clock a test moves ([`virtual_time`]).
//!
//! A program has one time driver. None is a linker error that names `_embassy_time_now`; two are
//! one that says it is defined twice. A second version of `embassy-time-driver` is refused by
//! cargo.
//!
//! # A driver for a board
//!
//! ```
//! use core::cell::RefCell;
//! use core::task::Waker;
//! use tickless_embassy::TimerQueue;
//! # struct Alarm;
//! # impl Alarm { fn now(&self) -> u64 { 0 } fn set(&self, at: u64) -> bool { true } }
//!
//! struct Board {
//!     alarm: Alarm,
//!     // In a `critical_section::Mutex`, since the alarm's interrupt needs it too.
//!     queue: RefCell<TimerQueue>,
//! }
//!
//! impl Board {
//!     fn schedule_wake(&self, at: u64, waker: &Waker) {
//!         if self.queue.borrow_mut().schedule_wake(at, waker) {
//!             self.on_alarm();
//!         }
//!     }
//!
//!     fn on_alarm(&self) {
//!         loop {
//!             let next = self.queue.borrow_mut().expire(self.alarm.now(), Waker::wake);
//!             if self.alarm.set(next) {
//!                 return; // `false`: that has passed already
//!             }
//!         }
//!     }
//! }
//! ```
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", feature = "virtual-time"))]
extern crate std;

#[cfg(all(feature = "std", feature = "virtual-time"))]
compile_error!(
    "tickless-embassy: the features `std` and `virtual-time` are two time drivers, and a program \
     has one; drop one of them (`cargo tree -e features -i tickless-embassy` shows where they come \
     from)"
);

mod queue;
#[cfg(feature = "std")]
mod std_driver;
#[cfg(feature = "virtual-time")]
pub mod virtual_time;

pub use queue::TimerQueue;
