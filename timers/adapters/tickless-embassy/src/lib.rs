//! embassy's timers on Tickless.
//!
//! - [`TimerQueue`], for authors of a board's time driver. It has the two functions of the queue in
//!   `embassy-time-queue-utils`, takes O(log n) instead of O(n), and has no limit on the number of
//!   tasks. `no_std`; it allocates when more tasks wait than ever before.
//! - With the feature `std`, a time driver for programs on an operating system. It needs no call:
//!   depend on this crate, and write `use tickless_embassy as _;` so that it is linked.
//! - For tests, `embassy-time` has a driver whose clock a test moves (its feature `mock-driver`).
//!
//! A program must have exactly one time driver. Without one, linking fails with an undefined
//! `_embassy_time_now`; with two, that symbol is defined twice. Cargo refuses a second version of
//! `embassy-time-driver`.
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
//!                 return; // `false` would mean that `next` has already passed
//!             }
//!         }
//!     }
//! }
//! ```
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod queue;
#[cfg(feature = "std")]
mod std_driver;

pub use queue::TimerQueue;
