//! C1 to C8 (clocks): this machine's counters, combined reads of slow counters, and the errors for
//! sources that are not available.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tickless::clock::{Combined, Counter, OpenClockError, SystemClock};

/// A program's own counter: nanoseconds by `Instant`. Its reads are slow and counted.
struct Own {
    start: std::time::Instant,
    reads: AtomicU64,
}

impl Counter for Own {
    fn read(&self) -> u64 {
        let from = std::time::Instant::now();
        self.reads.fetch_add(1, Ordering::SeqCst);
        while from.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        self.start.elapsed().as_nanos() as u64
    }

    fn bits(&self) -> u32 {
        64
    }
}

/// Goal: C1 (combined reads).
#[test]
fn concurrent_reads_share_device_reads() {
    const THREADS: usize = 4;
    let reads_by = |read: fn(&Combined<Own>) -> u64| {
        let counter =
            Combined::new(Own { start: std::time::Instant::now(), reads: AtomicU64::new(0) });
        let before = counter.counter().reads.load(Ordering::SeqCst);
        let go = std::sync::Barrier::new(THREADS);
        thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    go.wait();
                    read(&counter);
                });
            }
        });
        counter.counter().reads.load(Ordering::SeqCst) - before
    };
    assert_eq!(reads_by(Combined::read_directly), THREADS as u64);
    // In at least one of ten tries, two of the four threads read the counter concurrently.
    let combined = (0..10).map(|_| reads_by(Combined::read)).min();
    assert!(combined < Some(THREADS as u64), "{combined:?}");
}

#[test]
fn an_unavailable_source_is_an_error_with_the_reason() {
    for path in ["/dev/no-such-clock", "/dev/null", "/dev"] {
        let error = SystemClock::open_ptp(path).unwrap_err();
        match path {
            "/dev/no-such-clock" => assert!(matches!(error, OpenClockError::NoDevice { .. })),
            _ => assert!(matches!(error, OpenClockError::NotAClock { .. }), "{error}"),
        }
        assert!(error.to_string().contains(path), "{error}");
    }
    let error = SystemClock::open(12_345).unwrap_err();
    assert!(
        error.source().is_some()
            && error.to_string().starts_with("clock 12345 does not tell the time"),
        "{error}"
    );
}
