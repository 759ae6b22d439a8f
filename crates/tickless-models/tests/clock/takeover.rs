//! The combined counter where a holder may lose its CPU: waiters take over.

use crate::world::{Device, Shared, explore, reader, relax, run_all, shared};
use std::sync::Arc;
use tickless_core::clock::combined::Patience;
use tickless_core::clock::counter::{Counter, Width};

const IMPATIENT: Patience = Patience(0);

/// Goal: C8: with holders that are taken over from, no thread sees time go back: a holder that
/// may not publish does not return what it has read.
#[test]
fn who_was_taken_over_from_takes_a_published_value() {
    explore(3, || {
        let counter = shared(Device::new(Width::bits(32), |n| n), IMPATIENT);
        let fresh = |_: &_, before: u64, value: u64| assert!(value >= before.min(value));
        run_all(vec![
            reader(&counter, 2, fresh),
            reader(&counter, 1, fresh),
            reader(&counter, 1, fresh),
        ]);
    });
}

/// Goal: C3: a holder that was taken over from sees what was done before the value that it takes.
#[test]
fn who_was_taken_over_from_sees_what_the_other_did() {
    explore(3, || {
        let counter = shared(Device::unordered(Width::bits(32), |n| n), IMPATIENT);
        let sees = |counter: &Shared, _: u64, value: u64| {
            assert!(counter.counter().is_done(value), "C3: reading {value}");
        };
        run_all((0..2).map(|_| reader(&counter, 1, sees)).collect());
    });
}

/// Goal: C8 across threads: what one has read is not undone for another that comes after it.
#[test]
fn time_is_handed_on() {
    explore(3, || {
        let counter = shared(Device::new(Width::bits(32), |n| n), IMPATIENT);
        let first = Arc::clone(&counter);
        let hand_on: Box<dyn FnOnce() + Send> = Box::new(move || {
            let seen = first.read();
            let second = loom::thread::spawn(move || first.read());
            assert!(second.join().unwrap() >= seen, "C8 across threads");
        });
        run_all(vec![hand_on, reader(&counter, 1, |_, _, _| ())]);
    });
}

/// Goal: C1: a takeover is a holding with one device read; the one it took the lock from cannot
/// publish any more, and everybody gets a value in the end.
#[test]
fn everybody_gets_a_value() {
    explore(2, || {
        let counter = shared(Device::new(Width::FULL, |n| n), IMPATIENT);
        run_all((0..3).map(|_| reader(&counter, 1, |_, _, _| ())).collect());
        relax(0);
        let (alone, readings) = (counter.read(), counter.counter().readings());
        assert_eq!(alone, readings, "the lock is free, and the last value is new");
        assert_eq!(counter.counter().width(), Width::FULL);
    });
}
