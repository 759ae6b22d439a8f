//! Permits taken without a lock, by blocking threads, and by key.

use crate::support::woken::{poll, woken};
use crate::support::{HOUR, MS, Rng, rounds, seed, shared_count, wait_until};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;
use tickless::bandwidth::{AcquireError, KeyedLimiter, Limiter};
use tickless::periodic::Phase;
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

const PERIOD: Duration = Duration::from_millis(100);

/// A model of the rules, one period after the other.
struct Twin {
    quota: u64,
    most: u64,
    left: u64,
    next: Instant,
    /// Permits in the current period, and the most in any.
    taken: u64,
    /// Whether the next use, after all permits have returned, starts a new period.
    restarts: bool,
}

impl Twin {
    fn new(quota: u64, most: u64, left: u64, next: Instant) -> Twin {
        Twin { quota, most, left, next, taken: 0, restarts: false }
    }

    fn refill(&mut self, now: Instant) {
        let is_due = self.next <= now;
        while self.next <= now {
            self.left = (self.left + self.quota).min(self.most);
            self.next += PERIOD;
            self.taken = 0;
        }
        if is_due && self.restarts && self.left == self.most {
            self.next = now + PERIOD;
        }
    }

    /// A key with all its permits behaves like an unknown key.
    fn forget_if_full(&mut self, now: Instant) {
        if self.restarts && self.left == self.most {
            self.next = now;
        }
    }

    fn take(&mut self, permits: u64, now: Instant) -> Result<(), AcquireError> {
        self.refill(now);
        if permits > self.most {
            return Err(AcquireError::NeverEnough { most: self.most });
        }
        if permits > self.left {
            return Err(AcquireError::Empty);
        }
        self.left -= permits;
        self.taken += permits;
        assert!(self.taken <= self.most, "no period has more than can be held");
        Ok(())
    }
}

/// Goal: no more callers wait than the limit allows, however many come at once.
#[test]
fn the_queue_has_its_limit() {
    let timers = Timers::process().unwrap();
    let limiter = timers.limiter(1, HOUR).waiting_max(3).start().unwrap();
    let (refused, most) = (AtomicU64::new(0), AtomicU64::new(0));
    limiter.try_acquire(1).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds(2_000) {
                    let mut tasks = [1; 4].map(|permits| Box::pin(limiter.acquire(permits)));
                    for task in &mut tasks {
                        let full = Poll::Ready(Err(AcquireError::QueueFull));
                        let found = poll(task.as_mut(), Waker::noop());
                        assert!(found == full || found.is_pending(), "{found:?}");
                        refused.fetch_add(u64::from(found == full), Ordering::Relaxed);
                    }
                    most.fetch_max(limiter.waiting() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(most.into_inner() <= 3 && limiter.waiting() == 0);
    let none = timers.limiter(1, HOUR).waiting_max(0).keyed::<String>().unwrap();
    let limiter = none.limiter("key").unwrap();
    limiter.blocking_acquire(1).unwrap();
    assert_eq!(limiter.blocking_acquire(1), Err(AcquireError::QueueFull));
    assert!(refused.into_inner() > 0);
}

#[test]
fn blocking_threads_wait_in_the_queue_of_tasks() {
    let time = VirtualTime::new();
    let limiter = time.timers().limiter(4, MS * 100).slack(Duration::ZERO);
    let limiter = limiter.phase(Phase::Aligned).start().unwrap();
    limiter.blocking_acquire(4).unwrap();
    let never = Err(AcquireError::NeverEnough { most: 4 });
    assert_eq!(limiter.blocking_acquire(5), never);
    assert_eq!(limiter.blocking_acquire_timeout(1, Duration::ZERO), Err(AcquireError::TimedOut));
    let mut task = pin!(limiter.acquire(3));
    assert!(poll(task.as_mut(), Waker::noop()).is_pending());
    std::thread::scope(|scope| {
        let late = scope.spawn(|| limiter.blocking_acquire_timeout(2, MS * 50));
        wait_until("it stands in line", || limiter.waiting() == 2);
        time.advance(MS * 99);
        assert_eq!(late.join().unwrap(), Err(AcquireError::TimedOut));
        let waits = scope.spawn(|| limiter.blocking_acquire(2));
        wait_until("it stands in line", || limiter.waiting() == 2);
        time.advance(MS);
        assert_eq!(poll(task.as_mut(), Waker::noop()), Poll::Ready(Ok(())));
        wait_until("one is left, which is not enough", || limiter.waiting() == 1);
        time.advance(MS * 100);
        assert_eq!(waits.join().unwrap(), Ok(()));
    });
    assert_eq!(limiter.counts().used, 4 + 3 + 2);
}

#[test]
fn closing_a_limiter_wakes_its_waiters() {
    let time = VirtualTime::new();
    let limiter = time.timers().limiter(2, MS * 100).slack(Duration::ZERO);
    let limiter = limiter.phase(Phase::Aligned).start().unwrap();
    limiter.try_acquire(1).unwrap();
    let (count, waker) = woken();
    let (mut first, mut second) = (pin!(limiter.acquire(2)), pin!(limiter.acquire(2)));
    assert!(poll(first.as_mut(), &waker).is_pending());
    assert!(poll(second.as_mut(), &waker).is_pending());
    time.advance(MS * 100);
    assert_eq!(count.count(), 1, "the first was let go");
    let closed = Err(AcquireError::Closed);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| limiter.blocking_acquire(1));
        wait_until("it stands in line", || limiter.waiting() == 2);
        limiter.clone().close();
        assert_eq!(thread.join().unwrap(), closed);
    });
    assert_eq!(count.count(), 2, "the second was woken, the first not again");
    assert_eq!(poll(first.as_mut(), &waker), Poll::Ready(Ok(())));
    assert_eq!(poll(second.as_mut(), &waker), Poll::Ready(closed));
    time.advance(MS * 1000);
    assert_eq!((limiter.try_acquire(1), limiter.blocking_acquire(1)), (closed, closed));
    assert_eq!(poll(pin!(limiter.acquire(1)), &waker), Poll::Ready(closed));
    assert_eq!((limiter.available(), limiter.waiting(), limiter.counts().used), (0, 0, 3));
    limiter.close();
    // A limiter whose permits can be taken without the lock.
    let limiter = time.timers().limiter(2, MS * 100).start().unwrap();
    limiter.try_acquire(1).unwrap();
    limiter.close();
    assert_eq!(limiter.try_acquire(1), closed);
}

/// Goal: a key with a closed limiter is not removed, because that would open it again.
#[test]
fn a_closed_key_stays_closed() {
    let time = VirtualTime::new();
    let keys = time.timers().limiter(1, MS * 100).keyed::<u64>().unwrap();
    keys.limiter(&1).unwrap().close();
    time.advance(MS * 1000);
    for key in 2..10_000 {
        keys.try_acquire(&key, 1).unwrap();
    }
    assert_eq!(keys.try_acquire(&1, 1), Err(AcquireError::Closed));
}

#[test]
fn a_blocked_thread_refills_without_a_driver() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let limiter = timers.limiter(1, MS * 5).start().unwrap();
    let inner = limiter.clone();
    let (done, sum) = shared_count();
    // The only driver is blocked until its own base would refill.
    let hog = timers.hrtimer(move |_| {
        for _ in 0..3 {
            inner.blocking_acquire(1).unwrap();
        }
        sum.store(1, Ordering::Release);
    });
    hog.start(Duration::ZERO).unwrap();
    wait_until("it has had them", || done.load(Ordering::Acquire) == 1);
}

#[test]
fn every_key_follows_the_model() {
    let mut rng = Rng::new(seed("limiter", "every_key_follows_the_model"));
    for _ in 0..rounds(20) {
        let time = VirtualTime::new();
        let (quota, extra) = (1 + rng.below(5), rng.below(2) * rng.below(9));
        let builder = time.timers().limiter(quota, MS * 100).extra(extra);
        let keys: KeyedLimiter<u64> = builder.keyed().unwrap();
        let mut twins: HashMap<u64, Twin> = HashMap::new();
        let mut held: HashMap<u64, Limiter> = HashMap::new();
        for _ in 0..2_000 {
            time.advance(Duration::from_nanos(rng.below(3) * rng.below(5_000_000)));
            let (key, now) = (rng.below(150), time.now());
            let most = quota + extra;
            let twin = twins.entry(key).or_insert_with(|| {
                let next = now + PERIOD;
                Twin { restarts: true, ..Twin::new(quota, most, most, next) }
            });
            match rng.below(30) {
                0 => {
                    keys.remove_idle();
                    twin.forget_if_full(now);
                }
                1 if held.len() < 20 => {
                    twin.refill(now);
                    // A limiter keeps its phase.
                    twin.restarts = false;
                    held.insert(key, keys.limiter(&key).unwrap());
                }
                2 if held.remove(&key).is_some() => {
                    twin.refill(now);
                    twin.restarts = true;
                    keys.remove_idle();
                    if twin.left == twin.most {
                        twins.remove(&key);
                    }
                }
                3 => {
                    twin.refill(now);
                    assert_eq!(keys.available(&key), twin.left, "of {key}");
                    // Reading a key that has all its permits adds no entry.
                    twin.forget_if_full(now);
                }
                _ => {
                    let permits = 1 + rng.below(most);
                    let expected = twin.take(permits, now);
                    let took = match held.get(&key) {
                        Some(limiter) if rng.below(2) == 0 => limiter.try_acquire(permits),
                        _ => keys.try_acquire(&key, permits),
                    };
                    assert_eq!(took, expected, "{permits} of {key}'s");
                }
            }
        }
        assert!(keys.len() <= 150);
    }
}

/// Method: a nanosecond before the time that `retry_after` returned the permits are refused, and at
/// that time they are granted; for a limiter, a compact key, and a key with a limiter.
#[test]
fn permits_are_available_exactly_after_retry_after() {
    let time = VirtualTime::new();
    let builder = || time.timers().limiter(3, PERIOD).extra(4);
    let (limiter, keys) = (builder().start().unwrap(), builder().keyed::<u64>().unwrap());
    let kept = keys.limiter(&1).unwrap();
    for seed in 0..200 {
        let mut random = Rng::new(seed);
        time.advance(Duration::from_micros(random.below(300_000)));
        let permits = 1 + random.below(7);
        for key in 0..3 {
            let take = || match key {
                2 => limiter.try_acquire(permits),
                key => keys.try_acquire(&key, permits),
            };
            let wait = match key {
                2 => limiter.retry_after(permits),
                key => keys.retry_after(&key, permits),
            };
            if let Some(too_little) = wait.unwrap().checked_sub(Duration::from_nanos(1)) {
                time.advance(too_little);
                assert_eq!(take(), Err(AcquireError::Empty), "key {key}, seed {seed}");
                time.advance(Duration::from_nanos(1));
            }
            assert_eq!(take(), Ok(()), "key {key}, seed {seed}");
        }
    }
    // A caller that waits is served first: 7 permits, and then 2, take 3 refills of 3.
    while limiter.try_acquire(1).is_ok() {}
    let next = limiter.retry_after(1).unwrap();
    let mut waits = pin!(limiter.acquire(7));
    assert!(poll(waits.as_mut(), Waker::noop()).is_pending());
    assert_eq!(limiter.retry_after(2), Ok(next + 2 * PERIOD));
    let never = Err(AcquireError::NeverEnough { most: 7 });
    assert_eq!((limiter.retry_after(8), keys.retry_after(&0, 8)), (never, never));
    assert_eq!(keys.retry_after(&9, 7), Ok(Duration::ZERO), "an unknown key");
    kept.close();
    assert_eq!(keys.retry_after(&1, 1), Err(AcquireError::Closed));
}

#[test]
fn idle_keys_are_removed() {
    let time = VirtualTime::new();
    let keys: KeyedLimiter<String> = time.timers().limiter(2, MS * 100).keyed().unwrap();
    assert!(keys.is_empty());
    for round in 0..50_000 {
        keys.try_acquire(format!("user {round}").as_str(), 1).unwrap();
        time.advance(MS / 10);
    }
    // A thousand keys a period.
    assert!(keys.len() < 64 * 40, "{} keys", keys.len());
    let busy = keys.limiter("busy").unwrap();
    busy.try_acquire(2).unwrap();
    time.advance(MS * 300);
    assert!(keys.remove_idle() > 900);
    assert_eq!(keys.len(), 1, "its limiter is in use");
    assert_eq!(keys.try_acquire("busy", 2), Ok(()), "the same permits");
    assert_eq!((busy.available(), keys.available("busy")), (0, 0));
    assert_eq!(keys.try_acquire("busy", 3), Err(AcquireError::NeverEnough { most: 2 }));
    assert_eq!(keys.try_acquire("else", 3), Err(AcquireError::NeverEnough { most: 2 }));
    assert_eq!(keys.try_acquire("else", 0), Ok(()));
    drop(busy);
    assert_eq!((keys.remove_idle(), keys.available("busy")), (1, 0), "not what it has used");
    assert_eq!(keys.try_acquire("busy", 1), Err(AcquireError::Empty));
    time.advance(MS * 100);
    assert_eq!(keys.try_acquire("busy", 1), Ok(()));
    assert_eq!(time.timers().phase_count(MS * 100), 0, "its timer was dropped");
}

#[test]
fn threads_never_get_more_than_a_key_allows() {
    let timers = Timers::process().unwrap();
    // A period longer than this test: every key has three permits, once.
    let keys: KeyedLimiter<u64> = timers.limiter(3, Duration::from_secs(3600)).keyed().unwrap();
    let taken = AtomicU64::new(0);
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (keys, taken, barrier) = (keys.clone(), &taken, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..6_000u64 {
                    let key = round / 4;
                    let took = match (round + thread) % 7 {
                        0 => keys.limiter(&key).and_then(|limiter| limiter.try_acquire(1)),
                        _ => keys.try_acquire(&key, 1),
                    };
                    taken.fetch_add(u64::from(took.is_ok()), Ordering::Relaxed);
                    if round % 1_000 == 0 {
                        keys.remove_idle();
                    }
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), 3 * 1_500);
}

thread_local! {
    /// The number of hashes and comparisons of a [`Fragile`] key until one panics; 0 for none.
    static PANICS_IN: Cell<u32> = const { Cell::new(0) };
}

/// A key whose hash or comparison panics on request.
#[derive(Clone, Eq)]
struct Fragile(u32);

fn panic_if_requested() {
    let left = PANICS_IN.get();
    PANICS_IN.set(left.saturating_sub(1));
    assert!(left != 1, "a key panics");
}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        panic_if_requested();
        self.0.hash(state);
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Fragile) -> bool {
        panic_if_requested();
        self.0 == other.0
    }
}

/// Method: each hash and comparison of a new key panics in turn, while tables grow.
#[test]
fn a_key_that_panics_leaves_the_limiter_usable() {
    let time = VirtualTime::new();
    let limiter = time.timers().limiter(2, PERIOD).keyed::<Fragile>().unwrap();
    limiter.try_acquire(&Fragile(0), 2).unwrap();
    for key in 1..300 {
        let mut nth = 1;
        loop {
            PANICS_IN.set(nth);
            let taken = catch_unwind(AssertUnwindSafe(|| limiter.try_acquire(&Fragile(key), 1)));
            PANICS_IN.set(0);
            assert_eq!(limiter.available(&Fragile(0)), 0, "key {key}, panic {nth}");
            if let Ok(taken) = taken {
                assert_eq!(taken, Ok(()));
                break;
            }
            nth += 1;
        }
        assert!(nth > 1, "it has not panicked");
        // A call that panicked has taken nothing.
        assert_eq!((limiter.available(&Fragile(key)), limiter.len()), (1, key as usize + 1));
    }
    time.advance(PERIOD);
    assert_eq!(limiter.remove_idle(), 300);
}
