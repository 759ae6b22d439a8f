//! C1 to C8 (clocks): this machine's counters, combined reads of slow counters, and the errors for
//! sources that are not available.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tickless::clock::{Combined, Counter, OpenClockError, SystemClock};

fn monotonic() -> SystemClock {
    SystemClock::open(SystemClock::MONOTONIC).unwrap()
}

/// The number of reads by `Combined::new`.
const AT_START: u64 = 4;

/// A program's own counter: nanoseconds by `Instant` until it is stopped. Its reads are slow and
/// counted.
struct Own {
    start: std::time::Instant,
    takes: Duration,
    /// How long the first read after the calibration takes.
    first_takes: Duration,
    stopped: AtomicBool,
    stopped_at: AtomicU64,
    reads: AtomicU64,
}

impl Own {
    fn new(takes: Duration) -> Own {
        Own {
            start: std::time::Instant::now(),
            takes,
            first_takes: takes,
            stopped: AtomicBool::new(false),
            stopped_at: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    fn stop(&self) {
        self.stopped_at.store(self.start.elapsed().as_nanos() as u64, Ordering::SeqCst);
        self.stopped.store(true, Ordering::SeqCst);
    }
}

impl Counter for Own {
    fn read(&self) -> u64 {
        let from = std::time::Instant::now();
        // The first reading is old when it returns.
        let is_first = self.reads.fetch_add(1, Ordering::SeqCst) == AT_START;
        while is_first && from.elapsed() < self.first_takes {
            thread::yield_now();
        }
        while from.elapsed() < self.takes {
            std::hint::spin_loop();
        }
        let now = if is_first { from - self.start } else { self.start.elapsed() };
        let now = now.as_nanos() as u64;
        match self.stopped.load(Ordering::SeqCst) {
            true => self.stopped_at.load(Ordering::SeqCst),
            false => now,
        }
    }

    fn bits(&self) -> u32 {
        64
    }
}

/// Goal: C8 (time never goes back).
#[test]
fn combined_reads_never_go_back() {
    fn hammer(counter: &Combined<impl Counter>) {
        let latest = AtomicU64::new(0);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..3_000 {
                        let floor = latest.load(Ordering::Acquire);
                        let value = counter.read();
                        assert!(value >= floor, "{value} after {floor}");
                        latest.fetch_max(value, Ordering::Release);
                    }
                });
            }
        });
    }
    hammer(&Combined::new(Own::new(Duration::from_nanos(500))));
    hammer(&Combined::new(monotonic()));
}

/// Goal: C1 (combined reads).
#[test]
fn concurrent_reads_share_device_reads() {
    const THREADS: usize = 4;
    let reads_by = |read: fn(&Combined<Own>) -> u64| {
        let counter = Combined::new(Own::new(Duration::from_millis(2)));
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

/// Goal: C4 (stopped counters), C5 (handlers do not wait).
#[test]
fn a_stopped_counter_blocks_no_reader() {
    let counter = Combined::new(Own::new(Duration::from_micros(1)));
    counter.counter().stop();
    let stopped = counter.counter().stopped_at.load(Ordering::SeqCst);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..500).for_each(|_| assert_eq!(counter.read(), stopped)));
        }
    });
    assert_eq!(counter.read_directly(), stopped);
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

/// Goal: H4 (forks, exits, drops).
#[test]
fn a_waiter_takes_over_from_a_lost_reader() {
    let first_takes = Duration::from_secs(2);
    let until = std::time::Instant::now() + first_takes;
    let counter = Combined::new(Own { first_takes, ..Own::new(Duration::ZERO) });
    thread::scope(|s| {
        let first = s.spawn(|| counter.read());
        while counter.counter().reads.load(Ordering::SeqCst) <= AT_START {
            thread::yield_now();
        }
        let second = s.spawn(|| (counter.read(), std::time::Instant::now()));
        let (value, when) = second.join().unwrap();
        assert!(when < until, "it waited for the first");
        // The first reader may no longer publish its own reading.
        assert!(first.join().unwrap() >= value);
    });
}
