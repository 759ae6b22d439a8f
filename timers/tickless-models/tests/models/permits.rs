//! P6 (bandwidth): permits that are taken without a lock race each other, refills and waiters.
//!
//! These fail if `take` does not check the time (`unused_permits_do_not_carry_over`), if
//! `open` is called without `close` before it (`taking_races_a_refill`), if the word shows the pool
//! while a member waits (`waiters_are_not_overtaken`), and with a plain store in place of the
//! exchange (`takers_race`).

use super::exploring::{Depth, explore};
use super::stage::CPU1;
use crate::checker::{CheckedLock, CheckedWord, share};
use std::sync::Arc;
use tickless_core::bandwidth::{Grant, Group, Permits, Release, Settings, Take};
use tickless_core::platform::Lock;
use tickless_core::time::Ns;

/// A time in the first period, the time of the refill, and a time in the second period.
const FIRST: Ns = Ns::from_ms(50);
const REFILL: Ns = Ns::from_ms(100);
const SECOND: Ns = Ns::from_ms(150);

const TOGETHER: Release = Release::TOGETHER;

struct Shared {
    permits: Permits<CheckedWord>,
    group: CheckedLock<Group>,
}

impl Shared {
    fn new(quota: u64, release: Release) -> Arc<Shared> {
        let settings = Settings { quota, period: REFILL, extra: 0, slice: 1, release };
        let mut group = Group::new(settings, REFILL).expect("a group");
        let permits = Permits::closed();
        group.open(&permits);
        Arc::new(Shared { permits, group: CheckedLock::new(group) })
    }

    fn with<R>(&self, now: Ns, work: impl FnOnce(&mut Group) -> R) -> R {
        let mut group = self.group.lock();
        assert!(group.close(&self.permits), "open while the lock is free");
        group.refill(now);
        let done = work(&mut group);
        group.check().expect("in order");
        group.open(&self.permits);
        done
    }

    fn acquire(&self, now: Ns) -> u64 {
        match self.permits.take(1, now) {
            Take::Taken => 1,
            Take::Refused => 0,
            Take::AskGroup => u64::from(self.with(now, |group| group.try_take(1)) == Ok(true)),
        }
    }

    fn check(&self, taken: u64) {
        let mut group = self.group.lock();
        group.close(&self.permits);
        group.check().expect("in order");
        assert_eq!(group.counts().used, u128::from(taken));
    }
}

fn race(shared: &Arc<Shared>, [one, other]: [&'static [Ns]; 2]) -> u64 {
    let taken = Arc::new(CheckedLock::new(0));
    let sum = Arc::clone(&taken);
    let thread = share(CPU1, shared, move |theirs| {
        let got: u64 = other.iter().map(|&now| theirs.acquire(now)).sum();
        *sum.lock() += got;
    });
    let got: u64 = one.iter().map(|&now| shared.acquire(now)).sum();
    *taken.lock() += got;
    thread.join();
    let taken = *taken.lock();
    shared.check(taken);
    taken
}

#[test]
fn takers_race() {
    explore("takers race", Depth::three_preemptions(), || {
        assert_eq!(race(&Shared::new(3, TOGETHER), [&[FIRST, FIRST], &[FIRST, FIRST]]), 3);
    });
}

#[test]
fn taking_races_a_refill() {
    explore("taking races a refill", Depth::three_preemptions(), || {
        let taken = race(&Shared::new(2, TOGETHER), [&[FIRST, FIRST], &[SECOND, SECOND]]);
        assert!((2..=4).contains(&taken), "two in each period, or all in the second: {taken}");
    });
}

/// Goal: permits that a period leaves do not add to the next one's, whichever thread refills.
#[test]
fn unused_permits_do_not_carry_over() {
    explore("unused permits", Depth::three_preemptions(), || {
        let shared = Shared::new(2, TOGETHER);
        let timer = share(CPU1, &shared, |theirs| theirs.with(SECOND, |_| ()));
        let before = shared.acquire(SECOND) + shared.acquire(SECOND);
        timer.join();
        let taken = before + shared.acquire(SECOND) + shared.acquire(SECOND);
        assert_eq!(taken, 2);
        shared.check(taken);
    });
}

#[test]
fn waiters_are_not_overtaken() {
    explore("waiters are not overtaken", Depth::three_preemptions(), || {
        let shared = Shared::new(4, Release { batch: 1, gap: REFILL.to_duration() });
        for _ in 0..4 {
            assert_eq!(shared.acquire(FIRST), 1);
        }
        shared.with(FIRST, |group| {
            for _ in 0..2 {
                let id = group.join();
                assert_eq!(group.ask(id, 2, FIRST), Ok(Grant::Wait));
            }
        });
        // One member is released; the other two permits are for the second member.
        let timer = share(CPU1, &shared, |theirs| {
            theirs.with(SECOND, |group| assert!(group.pop_released(SECOND).is_some()));
        });
        assert_eq!(shared.acquire(SECOND), 0);
        timer.join();
        assert_eq!(shared.acquire(SECOND), 0);
        shared.check(4);
    });
}
