//! The queue of the tasks that wait for a time, in embassy's ticks.

use alloc::collections::BTreeMap;
use core::fmt;
use core::task::Waker;
use embassy_time_driver::TICK_HZ;
use tickless_core::local::{Clock, Key, LocalTimers};
use tickless_core::time::Instant;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A queue of tasks by wakeup time. Times are embassy's ticks, [`TICK_HZ`] per second.
///
/// A task has at most one entry, for its earliest time. A woken task schedules its next wakeup
/// itself, as embassy's timers do.
pub struct TimerQueue {
    timers: LocalTimers<Waker>,
    /// The entry of each task, by the result of [`task_of`] for its waker.
    entries: BTreeMap<(usize, usize), Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    at: u64,
}

impl TimerQueue {
    /// Returns an empty queue. It allocates when it is first used.
    pub fn new() -> TimerQueue {
        let timers = LocalTimers::new(Clock::manual(Instant::ZERO));
        TimerQueue { timers, entries: BTreeMap::new() }
    }

    /// Schedules a wakeup of `waker` at `at`, unless its task already waits for an earlier time.
    /// Returns whether the next expiry is now earlier; the caller must then set its alarm, to the
    /// result of [`expire`](TimerQueue::expire). O(log n).
    ///
    /// If the queue cannot take another entry, the task is woken at once, so that it tries again.
    pub fn schedule_wake(&mut self, at: u64, waker: &Waker) -> bool {
        let before = self.timers.next_event().unwrap_or(Instant::NEVER);
        let task = task_of(waker);
        let known = self.entries.get(&task).copied();
        if known.is_some_and(|entry| entry.at <= at) {
            return false;
        }
        let key = match known {
            Some(entry) => Ok(entry.key),
            None => self.timers.insert_precise(waker.clone()),
        };
        let armed = key.and_then(|key| self.timers.start_at(key, to_ns(at)).map(|()| key));
        let Ok(key) = armed else {
            waker.wake_by_ref();
            return false;
        };
        self.entries.insert(task, Entry { key, at });
        self.timers.next_event().is_some_and(|next| next < before)
    }

    /// Passes the wakers that are due at `now` to `woken`, and returns the time of the next one, or
    /// `u64::MAX` if no task waits. O(log n) for each waker. A waker may run any code, so waking it
    /// under a lock can deadlock.
    pub fn expire(&mut self, now: u64, mut woken: impl FnMut(Waker)) -> u64 {
        let entries = &mut self.entries;
        self.timers.advance(to_ns(now), |timers, key| {
            if let Some(waker) = timers.remove(key) {
                entries.remove(&task_of(&waker));
                woken(waker);
            }
        });
        self.timers.next_event().map_or(u64::MAX, to_ticks)
    }

    /// Returns the number of tasks that wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Default for TimerQueue {
    fn default() -> TimerQueue {
        TimerQueue::new()
    }
}

impl fmt::Debug for TimerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerQueue").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

/// Returns the data and vtable addresses of a waker, which are equal for wakers of one task.
fn task_of(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), core::ptr::from_ref(waker.vtable()).addr())
}

/// Returns the start of a tick, rounded up. Deadlines and the current time are rounded the same
/// way, so no task is woken early.
fn to_ns(ticks: u64) -> Instant {
    let ns = (u128::from(ticks) * NS_PER_SECOND).div_ceil(u128::from(TICK_HZ));
    // A time out of range becomes the latest deadline that a timer can have.
    Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX).min(u64::MAX - 1))
}

/// Returns the tick that contains `at`.
fn to_ticks(at: Instant) -> u64 {
    let ticks = (u128::from(at.as_nanos()) * u128::from(TICK_HZ)) / NS_PER_SECOND;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: converting ticks to ns and back is exact: timers fire at the tick of `expire`.
    #[test]
    fn converting_ticks_to_ns_and_back_is_exact() {
        for ticks in [0, 1, 2, 3, 999, 32_768, 1_000_001, 1 << 40, u64::MAX / NS_PER_SECOND as u64]
        {
            assert_eq!(to_ticks(to_ns(ticks)), ticks);
        }
    }

    /// Goal: a task that waits for a time out of range stays in the queue.
    #[test]
    fn a_task_may_wait_for_ever() {
        let mut queue = TimerQueue::new();
        assert!(queue.schedule_wake(u64::MAX, Waker::noop()));
        let last = to_ticks(Instant::from_nanos(u64::MAX - 1));
        assert_eq!(queue.expire(1 << 40, |_| unreachable!("not due")), last);
        assert_eq!(queue.len(), 1);
    }
}
