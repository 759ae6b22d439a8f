//! Local timers: keys, operations in callbacks, order, budgets (W1, W2, W4, W5, W6).

use crate::support::timers::Family;
mod fixed;
#[expect(unsafe_code, reason = "a waker of one thread is made from its functions")]
mod future;
mod histories;
mod twin;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use tickless_core::local::{Clock, Key, LocalTimers};
use tickless_core::time::Instant;

const fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn insert<T>(timers: &mut LocalTimers<T>, family: Family, value: T) -> Key {
    let key = match family {
        Family::Coarse => timers.insert(value),
        Family::Precise => timers.insert_precise(value),
    };
    key.expect("there is room")
}

/// Advances with callbacks that do nothing. Returns the values of the fired timers.
fn fire(timers: &mut LocalTimers<usize>, now: Instant) -> Vec<usize> {
    let mut fired = Vec::new();
    timers.advance(now, |timers, key| fired.extend(timers.get(key).copied()));
    fired
}

#[test]
fn a_panic_in_a_callback_leaves_the_others() {
    for family in Family::BOTH {
        let mut timers = LocalTimers::new(Clock::manual(Instant::ZERO));
        for number in 0..3 {
            let key = insert(&mut timers, family, number);
            timers.start_at(key, ms(5)).expect("inserted");
        }
        let advance = || timers.advance(ms(5), |_, _| resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(advance)).is_err());
        assert_eq!(timers.pending(), 2);
        assert_eq!(fire(&mut timers, ms(5)), [1, 2], "{family:?}");
    }
}

#[test]
fn a_callback_may_advance() {
    let mut timers = LocalTimers::new(Clock::manual(Instant::ZERO));
    for number in 0..8 {
        let key = insert(&mut timers, Family::BOTH[number % 2], number);
        timers.start_at(key, ms(1 + number as u64)).expect("inserted");
    }
    let mut fired = Vec::new();
    timers.advance(ms(4), |timers, key| {
        fired.extend(timers.get(key).copied());
        if fired.len() == 1 {
            fired.extend(fire(timers, ms(8)));
            *timers = LocalTimers::new(Clock::manual(ms(8)));
        }
    });
    fired.sort();
    assert_eq!((fired, timers.len()), ((0..8).collect(), 0));
}

#[test]
fn values_are_dropped_once() {
    let value = Rc::new(());
    let mut timers = LocalTimers::new(Clock::manual(Instant::ZERO));
    for number in 0..600 {
        let key = insert(&mut timers, Family::BOTH[number % 2], Rc::clone(&value));
        if number % 3 > 0 {
            timers.start_at(key, ms(number as u64)).expect("inserted");
        }
        if number % 5 == 0 {
            drop(timers.remove(key));
        }
    }
    assert_eq!(Rc::strong_count(&value), 1 + 480);
    drop(timers);
    assert_eq!(Rc::strong_count(&value), 1);
}
