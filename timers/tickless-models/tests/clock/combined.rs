//! The combined counter if a holder keeps its CPU: waiters do not take over.

use crate::support::{Device, Shared, Sometimes, explore, reader, run_all, shared, shared_by_two};
use loom::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use tickless_core::clock::combined::Patience;
use tickless_core::word::Ordering;

const NARROW: u32 = 32;

/// A value may predate the call by one device read: it is not older than the last reading that had
/// ended when the call began.
fn is_fresh(_: &Shared, readings_before: u64, value: u64) {
    assert!(value >= readings_before, "C2, C6: {value} from before {readings_before}");
}

/// Goal: readers get fresh, ordered values by at most a device read each (C1, C2, C6, C8).
#[test]
fn three_readers() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |n| n), Patience::ENDLESS);
        run_all((0..3).map(|_| reader(&counter, 1, is_fresh)).collect());
        assert!(counter.counter().readings() <= 1 + 3, "C1");
    });
}

/// Goal: so do two readers that read twice; in some schedule one device read serves both.
#[test]
fn two_readers_twice() {
    let combined = Sometimes::default();
    let saw = combined.clone();
    explore(3, move || {
        let counter = shared_by_two(Device::new(NARROW, |n| n));
        run_all((0..2).map(|_| reader(&counter, 2, is_fresh)).collect());
        saw.saw(counter.counter().readings() < 1 + 4);
    });
    assert!(combined.happened(), "every reader read the device");
}

/// Goal: a reader and the next holder see what was done before the value was read (C3).
#[test]
fn a_reader_sees_what_the_holder_did() {
    explore(2, || {
        let counter = shared(Device::unordered(NARROW, |n| n), Patience::ENDLESS);
        let sees = |counter: &Shared, _: u64, value: u64| {
            assert!(counter.counter().is_done(value), "C3: reading {value}");
        };
        run_all((0..3).map(|_| reader(&counter, 1, sees)).collect());
    });
}

#[test]
fn holders_exclude_each_other() {
    explore(3, || {
        // Not a read-modify-write: it must fail if two threads read, or if holders are not ordered.
        let counted = AtomicU64::new(0);
        let device = Device::unordered(NARROW, move |reading| {
            assert_eq!(counted.load(Ordering::Relaxed), reading - 1, "C1");
            counted.store(reading, Ordering::Relaxed);
            7
        });
        let counter = shared(device, Patience::ENDLESS);
        let read = |_| -> Box<dyn FnOnce() + Send> {
            let counter = Arc::clone(&counter);
            Box::new(move || assert_eq!(counter.read(), 7))
        };
        run_all((0..3).map(read).collect());
    });
}

#[test]
fn a_frozen_counter_lets_waiters_go() {
    let combined = Sometimes::default();
    let saw = combined.clone();
    explore(3, move || {
        let counter = shared_by_two(Device::new(NARROW, |_| 3));
        let check = |_: &Shared, _: u64, value: u64| assert_eq!(value, 3);
        run_all((0..2).map(|_| reader(&counter, 1, check)).collect());
        saw.saw(counter.counter().readings() < 1 + 2);
    });
    assert!(combined.happened(), "C4: no reader took a value that had not moved");
}

/// Goal: a counter that shows each value twice does not block its readers (C4).
#[test]
fn the_same_value_twice() {
    explore(2, || {
        let counter = shared(Device::new(NARROW, |n| n / 2), Patience::ENDLESS);
        let check = |_: &Shared, before: u64, value: u64| assert!(value >= before / 2);
        run_all((0..3).map(|_| reader(&counter, 1, check)).collect());
    });
}

#[test]
fn a_handler_may_interrupt_the_holder() {
    explore(2, || {
        let handlers = Arc::new(OnceLock::<Weak<_>>::new());
        let interrupting = Arc::clone(&handlers);
        let counter: Shared = shared_by_two(Device::new(NARROW, move |reading| {
            if let Some(counter) = interrupting.get().and_then(Weak::upgrade)
                && reading == 2
            {
                let counter: Shared = counter;
                // C5 (interrupts): it is ahead of what the interrupted holder will publish.
                assert!(counter.read_directly() > reading);
            }
            reading
        }));
        handlers.set(Arc::downgrade(&counter)).unwrap();
        let read = |_| -> Box<dyn FnOnce() + Send> {
            let counter = Arc::clone(&counter);
            Box::new(move || assert!(counter.read() >= 2))
        };
        run_all((0..2).map(read).collect());
    });
}

/// Goal: a handler's value is ahead of the next published one by one device read at most (C5).
#[test]
fn an_interrupt_reads_directly() {
    explore(3, || {
        let counter = shared_by_two(Device::new(NARROW, |n| n));
        let interrupted = Arc::clone(&counter);
        let handler: Box<dyn FnOnce() + Send> = Box::new(move || {
            let direct = interrupted.read_directly();
            let next = interrupted.read();
            // The interrupted holder had read just before.
            assert!(next + 1 >= direct, "C5: {next} is far behind {direct}");
        });
        run_all(vec![handler, reader(&counter, 2, |_, _, _| ())]);
    });
}

/// Goal: both parts of a wide counter belong together, also if the device orders nothing.
#[test]
fn a_wide_counter_holds_together() {
    fn set_ahead(reading: u64) -> u64 {
        if reading < 3 { 5 } else { 1 << 62 }
    }
    fn set_ahead_twice(reading: u64) -> u64 {
        if reading == 3 { 1 << 61 } else { set_ahead(reading) }
    }
    for (shows, readers) in
        [(set_ahead as fn(u64) -> u64, &[1, 1, 1][..]), (set_ahead_twice, &[1, 3])]
    {
        explore(3, move || {
            let counter = shared(Device::unordered(64, shows), Patience::ENDLESS);
            let shown = move |_: &Shared, _: u64, value: u64| {
                assert!((1..5).any(|reading| shows(reading) == value), "never shown: {value:#x}");
            };
            run_all(readers.iter().map(|&reads| reader(&counter, reads, shown)).collect());
        });
    }
}

/// Goal: a counter wider than the word returns only values that the device showed.
#[test]
fn a_wide_counter_that_is_set() {
    fn set_ahead(reading: u64) -> u64 {
        if reading < 3 { 5 + reading } else { (1 << 62) + reading }
    }
    explore(2, || {
        let counter = shared(Device::new(64, set_ahead), Patience::ENDLESS);
        let check = |_: &Shared, before: u64, value: u64| {
            let reading = if value < 1 << 61 { value - 5 } else { value - (1 << 62) };
            assert!((1..8).contains(&reading), "{value:#x} was never shown");
            assert_eq!(set_ahead(reading), value);
            assert!(reading >= before, "C2: reading {reading} of before {before}");
        };
        run_all((0..3).map(|_| reader(&counter, 1, check)).collect());
    });
}
