//! The combined counter where a holder keeps its CPU: nobody takes over.

use crate::world::{Device, Shared, Watched, Yield, explore, reader, relax, run_all, shared};
use loom::sync::atomic::AtomicU64;
use std::sync::Arc;
use tickless_core::clock::combined::{Combined, Patience};
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::platform::Ordering;

const NARROW: Width = Width::bits(32);

/// A value may predate the call by one device read: it is not from before the last reading
/// that was over when the call began.
fn is_fresh(_: &Shared, readings_before: u64, value: u64) {
    assert!(value >= readings_before, "C2, C6: {value} of before {readings_before}");
}

/// Goal: C1, C2, C6, C8: three readers at once get fresh values that never go back, for no more
/// device reads than calls.
#[test]
fn three_readers() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |n| n), Patience::ENDLESS);
        run_all((0..3).map(|_| reader(&counter, 1, is_fresh)).collect());
        assert!(counter.counter().readings() <= 1 + 3, "C1");
    });
}

/// Goal: the same with readers that come again, which is where time could go back.
#[test]
fn two_readers_twice() {
    explore(3, || {
        let counter = shared(Device::new(NARROW, |n| n), Patience::ENDLESS);
        run_all((0..2).map(|_| reader(&counter, 2, is_fresh)).collect());
    });
}

/// Goal: C3: who takes a value sees what was done before it was read, and so does the next
/// holder.
#[test]
fn who_takes_a_value_sees_what_its_holder_did() {
    explore(2, || {
        let counter = shared(Device::unordered(NARROW, |n| n), Patience::ENDLESS);
        let sees = |counter: &Shared, _: u64, value: u64| {
            assert!(counter.counter().is_done(value), "C3: reading {value}");
        };
        run_all((0..3).map(|_| reader(&counter, 1, sees)).collect());
    });
}

/// A device that must not be read twice at once: it counts its readings by a load and a store,
/// which goes wrong if two are at it, or if the last one's store is not ordered before the load.
struct Exclusive {
    counted: AtomicU64,
    readings: AtomicU64,
}

impl Counter for Exclusive {
    fn read(&self) -> u64 {
        let counted = self.counted.load(Ordering::Relaxed);
        assert_eq!(counted, self.readings.fetch_add(1, Ordering::Relaxed), "C1");
        self.counted.store(counted + 1, Ordering::Relaxed);
        7
    }

    fn width(&self) -> Width {
        NARROW
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        "exclusive"
    }
}

/// Goal: C1: the device is read by one holder at a time, and each holder after the one before.
#[test]
fn holders_exclude_each_other() {
    explore(3, || {
        let device = Exclusive { counted: AtomicU64::new(0), readings: AtomicU64::new(0) };
        let counter = Arc::new(Combined::<Watched, _, Yield>::new(device, relax as Yield));
        let read = |_| -> Box<dyn FnOnce() + Send> {
            let counter = Arc::clone(&counter);
            Box::new(move || assert_eq!(counter.read(), 7))
        };
        run_all((0..3).map(read).collect());
    });
}

/// Goal: C4: a counter that has stopped lets everybody go.
#[test]
fn a_frozen_counter_lets_waiters_go() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |_| 3), Patience::ENDLESS);
        run_all((0..3).map(|_| reader(&counter, 1, |_, _, value| assert_eq!(value, 3))).collect());
    });
}

/// Goal: C4: so does one that shows the same value twice before it moves.
#[test]
fn the_same_value_twice() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |n| n / 2), Patience::ENDLESS);
        let check = |_: &Shared, before: u64, value: u64| assert!(value >= before / 2);
        run_all((0..2).map(|_| reader(&counter, 2, check)).collect());
    });
}

/// Goal: C5: a handler that may have interrupted the holder does not wait for it, and is ahead
/// of what is published next by no more than the device reads that were under way.
#[test]
fn an_interrupt_reads_directly() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |n| n), Patience::ENDLESS);
        let interrupted = Arc::clone(&counter);
        let handler: Box<dyn FnOnce() + Send> = Box::new(move || {
            let direct = interrupted.read_directly();
            let next = interrupted.read();
            // The holder that it interrupted had read just before it.
            assert!(next + 1 >= direct, "C5: {next} is far behind {direct}");
        });
        run_all(vec![handler, reader(&counter, 2, |_, _, _| ())]);
    });
}

/// Goal: a counter of more bits than fit the word: every value is one that the device showed,
/// also while the part that does not fit changes.
#[test]
fn a_wide_counter_that_is_set() {
    /// Stands at 5, and is then set far ahead.
    fn set_ahead(reading: u64) -> u64 {
        if reading < 3 { 5 + reading } else { (1 << 62) + reading }
    }
    explore(2, || {
        let counter = shared(Device::new(Width::FULL, set_ahead), Patience::ENDLESS);
        let check = |_: &Shared, before: u64, value: u64| {
            let reading = if value < 1 << 61 { value - 5 } else { value - (1 << 62) };
            assert!((1..8).contains(&reading), "{value:#x} was never shown");
            assert_eq!(set_ahead(reading), value);
            assert!(reading >= before, "C2: reading {reading} of before {before}");
        };
        run_all((0..3).map(|_| reader(&counter, 1, check)).collect());
    });
}
