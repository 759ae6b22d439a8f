//! Who waits until when, in embassy's ticks.

use alloc::collections::BTreeMap;
use core::fmt;
use core::task::Waker;
use embassy_time_driver::TICK_HZ;
use tickless_core::local::{Key, LocalTimers};
use tickless_core::time::Instant;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Tasks and when they want to be woken. Times are embassy's ticks, [`TICK_HZ`] a second.
///
/// A task has one entry: its earliest time. Each time it is woken it asks for the next by itself,
/// as embassy's timers do.
pub struct TimerQueue {
    timers: LocalTimers<Waker>,
    /// The entry of each waker, by what makes two wakers wake the same task.
    entries: BTreeMap<(usize, usize), Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    at: u64,
}

impl TimerQueue {
    /// A queue in which nobody waits; allocates when it is first used.
    pub fn new() -> TimerQueue {
        TimerQueue { timers: LocalTimers::new(Instant::ZERO), entries: BTreeMap::new() }
    }

    /// Has `waker` woken at `at`, or earlier if it waits for something earlier. Returns whether the
    /// next expiry has changed, so that the alarm must be set: call [`expire`](TimerQueue::expire).
    /// O(log n).
    ///
    /// A task that finds no place is woken at once: it asks again.
    pub fn schedule_wake(&mut self, at: u64, waker: &Waker) -> bool {
        let before = self.timers.next_event();
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
        self.timers.next_event() < before
    }

    /// Hands out the wakers whose time has come at `now`, and returns when the next one's does;
    /// `u64::MAX` if nobody waits. O(log n) each. Who wakes under a lock must know that a waker may
    /// be any code.
    pub fn expire(&mut self, now: u64, mut woken: impl FnMut(Waker)) -> u64 {
        let entries = &mut self.entries;
        self.timers.advance(to_ns(now), |timers, key| {
            if let Some(waker) = timers.remove(key) {
                entries.remove(&task_of(&waker));
                woken(waker);
            }
        });
        match self.timers.next_event() {
            Instant::NEVER => u64::MAX,
            next => to_ticks(next),
        }
    }

    /// How many tasks wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Does nobody wait?
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

/// What two wakers have in common that wake the same task.
fn task_of(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), core::ptr::from_ref(waker.vtable()).addr())
}

/// A tick's beginning, rounded up. Deadlines and the present alike, so nobody is woken early.
fn to_ns(ticks: u64) -> Instant {
    let ns = (u128::from(ticks) * NS_PER_SECOND).div_ceil(u128::from(TICK_HZ));
    // What is out of range is as far away as a timer can be, and still a deadline.
    Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX).min(u64::MAX - 1))
}

/// The tick that begins there.
fn to_ticks(at: Instant) -> u64 {
    let ticks = (u128::from(at.as_nanos()) * u128::from(TICK_HZ)) / NS_PER_SECOND;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicUsize, Ordering};

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Arc<Task>, Waker) {
        let task = Arc::<Task>::default();
        (Arc::clone(&task), Waker::from(task))
    }

    /// Goal: the next expiry is a tick at which its timer fires, for every tick rate.
    #[test]
    fn ticks_survive_the_way_there_and_back() {
        for ticks in [0, 1, 2, 3, 999, 32_768, 1_000_001, 1 << 40, u64::MAX / NS_PER_SECOND as u64]
        {
            assert_eq!(to_ticks(to_ns(ticks)), ticks);
        }
    }

    #[test]
    fn a_task_is_woken_once_at_its_earliest_time() {
        let mut queue = TimerQueue::new();
        let (task, waker) = task();
        assert!(queue.schedule_wake(500, &waker));
        assert!(!queue.schedule_wake(900, &waker), "later: changes nothing");
        assert!(queue.schedule_wake(300, &waker), "earlier");
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.expire(299, Waker::wake), 300);
        assert_eq!(task.0.load(Ordering::Relaxed), 0, "never early");
        assert_eq!(queue.expire(300, Waker::wake), u64::MAX);
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_has_passed_is_woken_at_the_next_look() {
        let mut queue = TimerQueue::new();
        queue.expire(1_000, Waker::wake);
        let (task, waker) = task();
        assert!(queue.schedule_wake(10, &waker));
        assert_eq!(queue.expire(1_000, Waker::wake), u64::MAX);
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }

    /// Goal: many tasks, in the order of their times, each once; a time that never comes waits.
    #[test]
    fn many_tasks_come_in_order() {
        let mut queue = TimerQueue::new();
        let tasks: Vec<_> = (0..1000_u64).map(|nth| (nth * 7919 % 1000, task())).collect();
        for (at, (_, waker)) in &tasks {
            queue.schedule_wake(*at, waker);
        }
        let (_, never) = task();
        queue.schedule_wake(u64::MAX, &never);
        for now in 0..1000 {
            let mut woken = Vec::new();
            let next = queue.expire(now, |waker| woken.push(waker));
            assert_eq!(woken.len(), 1);
            let due = tasks.iter().find(|(at, _)| *at == now).expect("one each");
            assert!(woken[0].will_wake(&due.1.1));
            let last = to_ticks(Instant::from_nanos(u64::MAX - 1));
            assert_eq!(next, if now < 999 { now + 1 } else { last });
        }
        assert_eq!(queue.len(), 1);
    }
}
