//! Published timers, called as their users call them: what the conformance suite and the benchmark
//! have in common.

pub mod executors;
#[cfg(feature = "foreign")]
#[expect(unsafe_code, reason = "calls of C")]
pub mod foreign;
pub mod heaps;
#[cfg(feature = "suite")]
pub mod others;
pub mod tasks;
pub mod wheels;

use core::ops::RangeInclusive;
use std::time::Duration;
use tickless_conformance::{Cancel, NextEvent, Order, Rounding};
use tokio::runtime::Handle;

pub const MS: u64 = 1_000_000;
pub const HOUR: u64 = 3_600_000 * MS;

/// A queue of timers that its caller drives. Times are distances from the moment at which the queue
/// was made. The constants are those of [`Timers`](tickless_conformance::Timers).
pub trait Queue: Sized + 'static {
    const NAME: &str;
    const GRANULARITY: u64 = 1;
    const ROUNDING: Rounding = Rounding::Up;
    const CANCEL: Cancel = Cancel::Reports;
    const NEXT_EVENT: NextEvent = NextEvent::None;
    const ORDER: Order = Order::Any;
    const ARM_REPLACES: bool = false;
    const REENTRANT: bool = false;
    const HORIZON: u64 = 100 * 365 * 24 * HOUR;

    /// What the user keeps of a timer.
    type Handle;

    fn new() -> Self;

    /// Returns the runtime inside of which the queue must be used, if it needs one.
    fn runtime(&self) -> Option<Handle> {
        None
    }

    /// Arms a timer. No other pending timer has this key, unless [`Queue::ARM_REPLACES`].
    fn arm(&mut self, key: u32, after: Duration) -> Self::Handle;

    /// Arms a timer that is never cancelled or moved.
    fn arm_and_forget(&mut self, key: u32, after: Duration) {
        self.arm(key, after);
    }

    /// Moves a pending timer. Called only if the queue has a cancel or [`Queue::ARM_REPLACES`].
    fn push_out(&mut self, _: &mut Self::Handle, key: u32, _: Duration) {
        unreachable!("timer {key} cannot be moved")
    }

    /// Cancels a timer. Called only if the queue has a cancel.
    fn cancel(&mut self, _: Self::Handle) -> bool {
        unreachable!("it has no cancel")
    }

    /// Releases what the handle of a timer that has fired still occupies.
    fn free(&mut self, _: Self::Handle) {}

    /// Moves the time, and adds the keys of due timers: one if the queue is [`Queue::REENTRANT`],
    /// otherwise all. Called again until it adds none.
    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>);

    fn next_event(&mut self) -> Option<Duration> {
        None
    }

    /// The number of pending timers, for queues that the benchmark has.
    fn pending(&self) -> usize {
        0
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        Self::ROUNDING.may_fire(Self::GRANULARITY, now, deadline)
    }
}
