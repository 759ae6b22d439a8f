//! The combined counter if a holder may lose its CPU: waiters take over.

use crate::support::{Device, Shared, explore, reader, relax, run_all, shared};
use std::sync::Arc;
use tickless_core::clock::combined::Patience;
use tickless_core::clock::counter::Counter;

const IMPATIENT: Patience = Patience(0);

/// Goal: an overtaken holder does not publish its older reading, so no thread sees time go back
/// (C8).
#[test]
fn an_overtaken_holder_does_not_move_time_back() {
    explore(3, || {
        let counter = shared(Device::new(32, |n| n), IMPATIENT);
        run_all([2, 1, 1].map(|reads| reader(&counter, reads, |_, _, _| ())).into());
    });
}

#[test]
fn an_overtaken_holder_sees_what_the_other_did() {
    explore(3, || {
        let counter = shared(Device::unordered(32, |n| n), IMPATIENT);
        let sees = |counter: &Shared, _: u64, value: u64| {
            assert!(counter.counter().is_done(value), "C3: reading {value}");
        };
        run_all((0..2).map(|_| reader(&counter, 1, sees)).collect());
    });
}

#[test]
fn time_does_not_go_back_across_threads() {
    explore(3, || {
        let counter = shared(Device::new(32, |n| n), IMPATIENT);
        let first = Arc::clone(&counter);
        let hand_on: Box<dyn FnOnce() + Send> = Box::new(move || {
            let seen = first.read();
            let second = loom::thread::spawn(move || first.read());
            assert!(second.join().unwrap() >= seen, "C8 across threads");
        });
        run_all(vec![hand_on, reader(&counter, 1, |_, _, _| ())]);
    });
}

/// Goal: an overtaken holder cannot publish (C1), and every thread gets a value.
#[test]
fn every_reader_gets_a_value() {
    explore(2, || {
        let counter = shared(Device::new(64, |n| n), IMPATIENT);
        run_all((0..3).map(|_| reader(&counter, 1, |_, _, _| ())).collect());
        relax(0);
        let (alone, readings) = (counter.read(), counter.counter().readings());
        assert_eq!(alone, readings, "the lock is free, and the last value is new");
        assert_eq!(counter.counter().bits(), 64);
    });
}
