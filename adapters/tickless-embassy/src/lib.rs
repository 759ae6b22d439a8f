//! embassy's timers on Tickless.
//!
//! - [`TimerQueue`], for authors of a board's time driver. It has the two functions of the queue in
//!   `embassy-time-queue-utils`, takes O(log n) instead of O(n), and has no limit on the number of
//!   tasks. `no_std`; it allocates when more tasks wait than ever before.
//! - With the feature `std`, a time driver for programs on an operating system. It needs no call:
//!   depend on this crate, and write `use tickless_embassy as _;` so that it is linked.
//! - With the feature `virtual-time`, a driver whose clock a test moves ([`virtual_time`]).
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
#[cfg(any(feature = "std", feature = "virtual-time"))]
extern crate std;

#[cfg(all(feature = "std", feature = "virtual-time"))]
compile_error!(
    "tickless-embassy: the features `std` and `virtual-time` are two time drivers, and a program \
     has one; drop one of them (`cargo tree -e features -i tickless-embassy` shows which crates \
     enable them)"
);

mod queue;
#[cfg(feature = "std")]
mod std_driver;
#[cfg(feature = "virtual-time")]
pub mod virtual_time;

pub use queue::TimerQueue;

/// Wakes all tasks, though wakers panic. Returns the first panic.
#[cfg(any(feature = "std", feature = "virtual-time"))]
fn wake_all(due: alloc::vec::Drain<'_, core::task::Waker>) -> std::thread::Result<()> {
    let mut first = Ok(());
    for waker in due {
        let woken = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| waker.wake()));
        if first.is_ok() {
            first = woken;
        } else {
            // The drop of a panic's payload might panic again.
            core::mem::forget(woken);
        }
    }
    first
}
