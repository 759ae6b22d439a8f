//! Clocks for programs: this machine's counters, slow counters read once for all, clocks that
//! fall back, and what is said when something cannot be had (C1-C9).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tickless::Timers;
use tickless::clock::ClockSource;
use tickless::clock::{
    Clock, ClockId, Combined, Counter, Fault, Hertz, OpenClockError, PtpClock, Rating, ReadPolicy,
    SourceId, SystemClock, Tolerance, Tsc, TscOrder, Width,
};
use tickless::time::Instant;

fn monotonic() -> SystemClock {
    SystemClock::open(ClockId::MONOTONIC).unwrap()
}

/// A program's own counter: nanoseconds by `Instant`, until it is told to stand still; slow, and
/// able to tell whether it is read by several at once.
struct Own {
    start: std::time::Instant,
    takes: Duration,
    stopped: AtomicBool,
    stopped_at: AtomicU64,
    inside: AtomicU64,
    most_inside: AtomicU64,
    reads: AtomicU64,
}

impl Own {
    fn new(takes: Duration) -> Own {
        Own {
            start: std::time::Instant::now(),
            takes,
            stopped: AtomicBool::new(false),
            stopped_at: AtomicU64::new(0),
            inside: AtomicU64::new(0),
            most_inside: AtomicU64::new(0),
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
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        self.reads.fetch_add(1, Ordering::SeqCst);
        let from = std::time::Instant::now();
        while from.elapsed() < self.takes {
            std::hint::spin_loop();
        }
        let now = self.start.elapsed().as_nanos() as u64;
        self.inside.fetch_sub(1, Ordering::SeqCst);
        match self.stopped.load(Ordering::SeqCst) {
            true => self.stopped_at.load(Ordering::SeqCst),
            false => now,
        }
    }

    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::PERFECT
    }

    fn name(&self) -> &str {
        "own"
    }
}

/// Goal: C8: threads that hand values to each other never see time go back, whether the counter
/// is this program's or the system's.
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

/// Goal: C1: reads at the same time are served by one device read, or by few; directly each is
/// one of its own.
#[test]
fn combining_saves_device_reads() {
    const THREADS: usize = 4;
    let reads_by = |policy: ReadPolicy| {
        let counter = Combined::new(Own::new(Duration::from_millis(2))).with_policy(policy);
        let before = counter.counter().reads.load(Ordering::SeqCst);
        let go = std::sync::Barrier::new(THREADS);
        thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    go.wait();
                    counter.read();
                });
            }
        });
        counter.counter().reads.load(Ordering::SeqCst) - before
    };
    assert_eq!(reads_by(ReadPolicy::Direct), THREADS as u64);
    // At least one of ten tries finds two of four threads at the counter together.
    let combined = (0..10).map(|_| reads_by(ReadPolicy::Combined)).min();
    assert!(combined < Some(THREADS as u64), "{combined:?}");
}

/// Goal: C4, C5: a counter that stands still lets all go, and direct reads pass everybody.
#[test]
fn a_stopped_counter_stops_nobody() {
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

/// Goal: C9: a program's own counter stands still: the clock goes over to the next best and says
/// so, and its time did not go back.
#[test]
fn a_clock_falls_back() {
    static OWN: std::sync::OnceLock<Own> = std::sync::OnceLock::new();
    let own = OWN.get_or_init(|| Own::new(Duration::ZERO));
    let tolerance = Tolerance { shortest: Duration::from_millis(10), ..Tolerance::DEFAULT };
    let counters: Vec<Box<dyn Counter>> = vec![Box::new(monotonic()), Box::new(own)];
    let clock = Clock::with_tolerance(counters, tolerance).unwrap();
    assert_eq!(clock.source_name(), "own");
    assert_eq!(clock.maintain(), []);
    let begin = std::time::Instant::now();
    let mut last = clock.monotonic();
    let mut reports = Vec::new();
    own.stop();
    while reports.is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(20), "nothing was noticed");
        thread::sleep(Duration::from_millis(15));
        reports = clock.maintain();
        let now = clock.monotonic();
        assert!(now >= last, "{now:?} after {last:?}");
        last = now;
    }
    assert_eq!((reports[0].bad, clock.source_name()), (SourceId(1), "CLOCK_MONOTONIC"));
    assert!(matches!(reports[0].fault, Fault::Frozen | Fault::Slow(_)), "{:?}", reports[0]);
    assert!(clock.fault(SourceId(1)).is_some() && clock.fault(SourceId(0)).is_none());
    assert!(clock.monotonic() >= last);
}

/// Goal: H5: realtime that is set, and a sleep, as far as a program tells its clock of them.
#[test]
fn realtime_and_boottime() {
    let clock = Clock::over(vec![Box::new(monotonic())]).unwrap();
    clock.set_realtime(Instant::from_secs(1_000_000));
    let (mono, boot, real) = (clock.monotonic(), clock.boottime(), clock.realtime());
    assert!(real >= Instant::from_secs(1_000_000) && boot >= mono);
    clock.slept(Duration::from_secs(3600));
    assert!(clock.monotonic() - mono < Duration::from_secs(60));
    assert!(clock.boottime() >= boot + Duration::from_secs(3600));
    assert!(clock.realtime() >= real + Duration::from_secs(3600));
    assert_eq!(clock.steps(), 2);
    assert!(clock.max_idle() > Duration::from_secs(1 << 30));
}

/// Goal: what is not there says so, by name, and what to do.
#[test]
fn what_cannot_be_had_says_why() {
    let error = PtpClock::open("/dev/no-such-clock").unwrap_err();
    assert!(matches!(error, OpenClockError::NoDevice { .. }));
    assert!(error.to_string().contains("/dev/no-such-clock"));
    let error = PtpClock::open("/dev/null").unwrap_err();
    assert!(matches!(error, OpenClockError::NotAClock { .. }), "{error}");
    assert!(error.to_string().starts_with("/dev/null does not tell the time"));
    let error = SystemClock::open(ClockId(12_345)).unwrap_err();
    assert!(error.to_string().starts_with("clock 12345 does not tell the time"), "{error}");
    assert!(Clock::over(Vec::new()).unwrap_err().to_string().contains("no counter"));
}

/// Goal: a PTP clock whose path leads to something else, or nowhere, says which and what to do; a
/// program goes on with what it has. (That one may not be opened: `refused.rs`. A real one has
/// not been here.)
#[test]
fn a_ptp_device_that_is_none() {
    let place = std::env::temp_dir().join(format!("tickless-ptp-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let (file, link) = (place.join("ptp0"), place.join("ptp1"));
    std::fs::write(&file, "not a clock").unwrap();
    std::os::unix::fs::symlink(place.join("gone"), &link).unwrap();
    let mut counters: Vec<Box<dyn Counter>> = vec![Box::new(monotonic())];
    let mut said = Vec::new();
    for path in [&file, &link, &place] {
        match PtpClock::open(path) {
            Ok(clock) => counters.push(Box::new(clock)),
            Err(error) => {
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                said.push(error);
            }
        }
    }
    let clock = Clock::over(counters).unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    use OpenClockError::{NoDevice, NotAClock};
    assert!(matches!(said[..], [NotAClock { .. }, NoDevice { .. }, NotAClock { .. }]), "{said:?}");
    assert_eq!(clock.source_name(), "CLOCK_MONOTONIC");
}

/// Goal: the TSC, where there is one to trust: it runs as the system's clock does, its two ways
/// of reading agree, and CPUs read it alike. Where there is none, the timers say why as well.
#[test]
fn the_tsc_or_why_not() {
    let timers = Timers::start().unwrap();
    let tsc = match Tsc::new(TscOrder::Ordered) {
        Ok(tsc) => tsc,
        Err(why) => {
            assert_eq!(timers.clock_source(), ClockSource::ClockGettime);
            assert_eq!(timers.clock_fallback(), Some(why));
            return;
        }
    };
    assert_eq!(timers.clock_fallback(), None);
    let unordered = Tsc::new(TscOrder::Unordered).unwrap();
    assert!(unordered.read() <= tsc.read());
    let clock = Clock::over(vec![Box::new(tsc)]).unwrap();
    let (from, begin) = (clock.monotonic(), std::time::Instant::now());
    thread::sleep(Duration::from_millis(50));
    let (ours, system) = (clock.monotonic() - from, begin.elapsed());
    assert!(ours.abs_diff(system) < Duration::from_millis(5), "{ours:?} against {system:?}");
    let skew = tsc.skew();
    assert!(skew.is_none(), "{skew}");
}

/// Goal: a holder that lost its CPU holds nobody up: a waiter takes over. So it is in the child
/// of a fork, where the holder never comes back (H4).
#[test]
fn a_holder_that_does_not_come_back() {
    let until = std::time::Instant::now() + Duration::from_secs(2);
    let counter = Combined::new(Slow { until, reads: AtomicU64::new(0) });
    thread::scope(|s| {
        let first = s.spawn(|| counter.read());
        while counter.counter().reads.load(Ordering::SeqCst) <= AT_START {
            thread::yield_now();
        }
        let second = s.spawn(|| (counter.read(), std::time::Instant::now()));
        let (value, when) = second.join().unwrap();
        assert!(when < until, "it waited for the first");
        // The first may not publish its own any more.
        assert!(first.join().unwrap() >= value);
    });
}

/// A counter whose first reading after the calibration takes long.
struct Slow {
    until: std::time::Instant,
    reads: AtomicU64,
}

/// Readings that `Combined::new` makes.
const AT_START: u64 = 4;

impl Counter for Slow {
    fn read(&self) -> u64 {
        let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
        if number == AT_START + 1 {
            while std::time::Instant::now() < self.until {
                thread::yield_now();
            }
        }
        number
    }

    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        "slow"
    }
}
