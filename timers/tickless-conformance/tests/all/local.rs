//! `LocalTimers` keep their promises.

use core::ops::RangeInclusive;
use std::collections::HashMap;
use std::time::Duration;
use tickless::LocalTimers;
use tickless::local::{Clock, Key};
use tickless::time::Instant;
use tickless_conformance::{Effort, NextEvent, Order, Timers, check};

const MS: u64 = 1_000_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn assert_clean<T: Timers + 'static>() {
    let effort = Effort { histories: 600, limit: Duration::from_secs(120), ..Effort::default() };
    let report = check::<T>(effort);
    assert!(report.is_clean(), "{report}");
    let measured = report.measured.expect("it was measured");
    assert!(measured.lateness_ns <= measured.promised_ns, "{report}");
}

struct Local<const PRECISE: bool> {
    timers: LocalTimers<u32>,
    keys: HashMap<u32, Key>,
}

impl<const PRECISE: bool> Timers for Local<PRECISE> {
    const NAME: &str = if PRECISE { "LocalTimers, precise" } else { "LocalTimers, coarse" };
    const NEXT_EVENT: NextEvent = if PRECISE { NextEvent::Exact } else { NextEvent::Bound };
    const ORDER: Order = if PRECISE { Order::Deadline } else { Order::Any };
    const ARM_REPLACES: bool = true;
    const REENTRANT: bool = true;

    fn new() -> Self {
        Local { timers: LocalTimers::new(Clock::manual(at(0))), keys: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let timers = &mut self.timers;
        let key = *self.keys.entry(key).or_insert_with(|| {
            let key = if PRECISE { timers.insert_precise(key) } else { timers.insert(key) };
            key.expect("there is room")
        });
        self.timers.start_at(key, at(deadline)).expect("the timer exists");
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.arm(key, deadline);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let key = self.keys.get(&key);
        key.is_some_and(|&key| self.timers.cancel(key).expect("the timer exists"))
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32)) {
        // The callback of the wheel has the wheel only, so that the rest is moved in for the call.
        let mut keys = std::mem::take(&mut self.keys);
        let mut outer = std::mem::replace(&mut self.timers, LocalTimers::new(Clock::manual(at(0))));
        outer.advance(at(now), |timers, key| {
            let number = *timers.get(key).expect("the timer exists");
            std::mem::swap(&mut self.timers, timers);
            std::mem::swap(&mut self.keys, &mut keys);
            fire(self, number);
            std::mem::swap(&mut self.timers, timers);
            std::mem::swap(&mut self.keys, &mut keys);
        });
        (self.timers, self.keys) = (outer, keys);
    }

    fn next_event(&mut self) -> Option<u64> {
        self.timers.next_event().map(Instant::as_nanos)
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let distance = deadline.saturating_sub(now);
        let late = if PRECISE { 0 } else { distance / 100 * 13 + 2 * MS };
        deadline..=deadline.max(now).saturating_add(late)
    }
}

#[test]
fn coarse_local_timers() {
    assert_clean::<Local<false>>();
}

#[test]
fn precise_local_timers() {
    assert_clean::<Local<true>>();
}
