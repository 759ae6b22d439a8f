//! Clocks on counters that misbehave, on virtual time.
//!
//! A simulated machine has three counters over one true time: the counter in use, which goes wrong
//! in one of the ways that real counters do, and two good ones. The test reads the time every
//! millisecond and maintains the clocks every half second. In every case time does not go back
//! (C8), the watchdog identifies the bad counter (C9), time continues on another counter, and the
//! report gives the time that was lost or gained.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless_core::clock::counter::{Counter, Width};
use tickless_core::clock::ratchet::Ratchet;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::sources::Fault;
use tickless_core::clock::timekeeper::{ClockReader, Report, Timekeeper};
use tickless_core::time::Ns;

/// Each test runs on one thread, so accesses need no ordering.
const RELAXED: Ordering = Ordering::Relaxed;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;

/// The time that a bad counter shows, given the time at which it went wrong and the true time since
/// then.
type Distortion = fn(since: u64, begin: u64) -> u64;

/// A counter over true time that goes wrong at `bad_from`.
struct Virtual {
    truth: Arc<AtomicU64>,
    hertz: u64,
    bits: u32,
    rating: u16,
    bad_from: u64,
    distortion: Distortion,
    takes: u64,
    /// An interrupt occurs at every nth reading: n, and the interrupt's duration.
    disturbed: Option<(u64, u64)>,
    readings: AtomicU64,
}

impl Virtual {
    fn boxed(self) -> Held {
        Box::new(self)
    }
}

impl Counter for Virtual {
    fn read(&self) -> u64 {
        let mut now = self.truth.fetch_add(self.takes, RELAXED) + self.takes;
        let readings = self.readings.fetch_add(1, RELAXED);
        if let Some((every, length)) = self.disturbed
            && readings.is_multiple_of(every)
        {
            now = self.truth.fetch_add(length, RELAXED) + length;
        }
        let shown = match now.checked_sub(self.bad_from) {
            None => now,
            Some(since) => (self.distortion)(since, self.bad_from),
        };
        let count = u128::from(shown) * u128::from(self.hertz) / u128::from(SECOND);
        count as u64 & Width::bits(self.bits).mask()
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn hertz(&self) -> u64 {
        self.hertz
    }

    fn rating(&self) -> u16 {
        self.rating
    }

    fn name(&self) -> &str {
        "virtual"
    }
}

/// The true time at which machines start. It is not zero, so that counters can go back.
const START: u64 = 10 * HOUR;
/// The true time at which the counter in use goes wrong.
const BAD_FROM: u64 = START + 5 * SECOND + 123 * MS;

/// Boxed, because a counter that may go back is wrapped in a `Ratchet` and the good ones are not.
type Held = Box<dyn Counter>;
type Keeper = Timekeeper<AtomicU64, Held, fn(u32)>;
type SharedReader = Arc<ClockReader<AtomicU64, Held, fn(u32)>>;

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

struct Machine {
    truth: Arc<AtomicU64>,
    keeper: Keeper,
    reader: SharedReader,
    last: Ns,
    reports: Vec<Report>,
    /// The largest lag of the clock behind true time.
    behind: u64,
    /// The largest lead of the clock over true time.
    ahead: u64,
}

fn good(truth: &Arc<AtomicU64>, hertz: u64, bits: u32, rating: u16) -> Virtual {
    Virtual {
        truth: Arc::clone(truth),
        hertz,
        bits,
        rating,
        bad_from: u64::MAX,
        distortion: |since, begin| begin + since,
        takes: 20,
        disturbed: None,
        readings: AtomicU64::new(0),
    }
}

impl Machine {
    /// A machine with a fast counter that goes wrong, a narrow one, and one in nanoseconds.
    fn new(distortion: Distortion) -> Machine {
        let truth = Arc::new(AtomicU64::new(START));
        let fast =
            Virtual { bad_from: BAD_FROM, distortion, ..good(&truth, 2_994_375_731, 64, 300) };
        let counters: Vec<Held> = vec![
            good(&truth, 14_318_180, 32, 250).boxed(),
            Box::new(Ratchet::<AtomicU64, _>::new(fast)),
            good(&truth, 1_000_000_000, 64, 110).boxed(),
        ];
        Machine::with(truth, counters)
    }

    fn with(truth: Arc<AtomicU64>, counters: Vec<Held>) -> Machine {
        let relax: fn(u32) = |_| panic!("a single thread never waits");
        let keeper = Timekeeper::new(counters, relax).unwrap();
        let reader = Arc::clone(keeper.reader());
        let reports = Vec::new();
        Machine { truth, keeper, reader, last: Ns::ZERO, reports, behind: 0, ahead: 0 }
    }

    fn now(&mut self) -> Ns {
        let now = self.reader.monotonic();
        assert!(now >= self.last, "C8: {now:?} after {:?}", self.last);
        self.last = now;
        let truth = self.truth.load(RELAXED) - START;
        self.behind = self.behind.max(truth.saturating_sub(now.0));
        self.ahead = self.ahead.max(now.0.saturating_sub(truth));
        now
    }

    fn run(&mut self, ms: u64) {
        for step in 1..=ms {
            self.truth.fetch_add(MS, RELAXED);
            self.now();
            if step % 500 == 0 {
                self.maintain();
            }
        }
    }

    fn maintain(&mut self) {
        self.keeper.tick();
        self.reports.extend(self.keeper.watch());
        self.now();
    }

    /// Returns the clock's difference from true time; positive if the clock is ahead.
    fn apart(&mut self) -> i64 {
        let now = self.now();
        now.0.cast_signed() - (self.truth.load(RELAXED) - START).cast_signed()
    }
}

/// Returns the only report, after checking that it names the counter that was in use.
fn report(machine: &Machine) -> Report {
    assert_eq!(machine.reports.len(), 1, "{:?}", machine.reports);
    assert_eq!(machine.reports[0].bad, 1);
    machine.reports[0]
}

/// Goal: good counters are not reported, and a narrow counter loses no time (C7).
#[test]
fn good_counters_are_left_alone() {
    let truth = Arc::new(AtomicU64::new(START));
    let counters = vec![
        good(&truth, 14_318_180, 32, 300).boxed(),
        good(&truth, 1_000_000_000, 64, 110).boxed(),
    ];
    let mut machine = Machine::with(truth, counters);
    assert!((Ns::from_secs(149)..Ns::from_secs(150)).contains(&machine.keeper.max_idle()));
    for _ in 0..30 {
        machine.truth.fetch_add(120 * SECOND, RELAXED);
        machine.maintain();
    }
    assert_eq!(machine.reports, []);
    assert!(machine.apart().abs() < 5_000, "{} ns apart", machine.apart());
}

/// Goal: the watchdog replaces a bad counter, adds lost time, and reports gained time (C9). While
/// the counter is behind, time stops and does not follow it (C8).
#[test]
fn a_bad_counter_is_replaced() {
    let cases: [(&str, Distortion, u64); 5] = [
        ("it stops", |_, begin| begin, 0),
        ("it slows down", |since, begin| begin + since / 2, 0),
        ("it jumps ahead", |since, begin| begin + since + 3 * HOUR, 3 * HOUR),
        ("it jumps back", |since, begin| begin + since - 2 * HOUR, 0),
        (
            "it wraps early, as if it had fewer bits",
            |since, begin| (begin + since) & 0xffff_ffff,
            0,
        ),
    ];
    for (case, distortion, gained) in cases {
        let mut machine = Machine::new(distortion);
        machine.run(12_000);
        let report = report(&machine);
        assert_eq!(report.switched_to, Some(0), "{case}");
        assert!(nanos(report.ahead).abs_diff(gained) < MS, "{case}: {report:?}");
        let lead = nanos(report.ahead).cast_signed();
        assert!((machine.apart() - lead).abs() < 10_000, "{case}: {} ns apart", machine.apart());
        assert!(machine.ahead <= nanos(report.ahead) + MS, "{case}: no earlier than reported");
        if gained > 0 {
            assert!(matches!(report.fault, Fault::Fast(_)), "{case}: {report:?}");
        } else {
            let is_slow = matches!(report.fault, Fault::Frozen | Fault::Slow(_));
            assert!(is_slow, "{case}: {report:?}");
            let lost = nanos(report.made_good);
            assert!((100 * MS..1_100 * MS).contains(&lost), "{case}: {report:?}");
            assert!(machine.behind <= lost + MS, "{case}: no later than reported");
        }
    }
}

/// Goal: a bad reference is reported, the good counter stays in use, and time goes on (C9).
#[test]
fn a_bad_reference_does_not_affect_time() {
    let distortions: [Distortion; 4] = [
        |_, begin| begin,
        |since, begin| begin + since / 2,
        |since, begin| begin + since + 1_400 * SECOND,
        |since, begin| begin + since - 70 * SECOND,
    ];
    for distortion in distortions {
        let truth = Arc::new(AtomicU64::new(START));
        let counters = vec![
            good(&truth, 2_994_375_731, 64, 300).boxed(),
            Virtual { bad_from: BAD_FROM, distortion, ..good(&truth, 14_318_180, 32, 250) }.boxed(),
            good(&truth, 1_000_000_000, 64, 110).boxed(),
        ];
        let mut machine = Machine::with(truth, counters);
        machine.run(12_000);
        let report = report(&machine);
        assert_eq!(report.switched_to, None, "{report:?}");
        assert_eq!(machine.reader.source(), SourceId(0));
        assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
    }
}

/// Goal: no good counter is reported for disturbed readings, which are repeated: if some of them
/// are undisturbed, a counter that stops is found (C9).
#[test]
fn disturbed_readings_are_repeated() {
    for (every, finds) in [(3, 1), (1, 0)] {
        let truth = Arc::new(AtomicU64::new(START));
        let disturbed = Some((every, 3 * MS));
        let stops = |_, begin| begin;
        let fast = good(&truth, 2_994_375_731, 64, 300);
        let counters = vec![
            Virtual { disturbed, ..good(&truth, 14_318_180, 32, 250) }.boxed(),
            Virtual { bad_from: BAD_FROM, distortion: stops, ..fast }.boxed(),
        ];
        let mut machine = Machine::with(truth, counters);
        machine.run(4_500);
        assert_eq!(machine.reports, []);
        machine.run(15_000);
        let bad: Vec<_> = machine.reports.iter().map(|report| report.bad).collect();
        assert_eq!(bad, vec![1; finds], "{:?}", machine.reports);
    }
}

/// Goal: after hours without maintenance no counter is reported (C7, C9).
#[test]
fn late_maintenance_blames_no_counter() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(2_000);
    for hours in [1, 7, 24, 500] {
        machine.truth.fetch_add(hours * HOUR + 777 * MS, RELAXED);
        machine.maintain();
        machine.run(1_000);
    }
    assert_eq!(machine.reports, []);
    assert!(machine.apart().abs() < 500_000, "{} ns apart", machine.apart());
}

/// Goal: when counters fail in turn, the best remaining one is used, without a step back (C8, C9).
/// The last stays in use even if it is withdrawn.
#[test]
fn the_best_remaining_counter_is_used() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(300);
    let mut used = Vec::new();
    for _ in 0..3 {
        let bad = machine.reader.source();
        let report = machine.keeper.blame(bad, Fault::Withdrawn);
        assert!(report.made_good < Duration::from_micros(1), "{report:?}");
        used.push((bad.index(), report.switched_to.unwrap()));
        machine.run(1_000);
        assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
    }
    assert_eq!(used, [(1, 0), (0, 2), (2, 2)]);
    assert_eq!(machine.keeper.sources().best(), None);
}

/// Goal: setting realtime changes no other clock, and a suspend advances realtime and boottime, but
/// not monotonic time. Every step is counted (H5).
#[test]
fn steps_and_suspends() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(1_500);
    let mut steps = machine.reader.steps();
    for realtime in [5 * HOUR, 30 * HOUR, 2 * HOUR] {
        let before = machine.now();
        machine.keeper.set_realtime(Ns(realtime));
        let real = machine.reader.realtime();
        assert!(real.0 - realtime < 10_000, "{real:?}");
        assert!(machine.now().since(before).0 < 10_000);
        assert!(machine.reader.boottime().since(machine.last).0 < 1_000);
        steps += 1;
        assert_eq!(machine.reader.steps(), steps);
        machine.run(1_000);
    }
    for (slept, counter_goes_on) in [(8 * HOUR, true), (50 * HOUR, false)] {
        let (before, boot, real) =
            (machine.now(), machine.reader.boottime(), machine.reader.realtime());
        let suspended = machine.keeper.suspend();
        let counted = if counter_goes_on { slept } else { 0 };
        machine.truth.fetch_add(counted, RELAXED);
        machine.keeper.resume(suspended, Ns(slept));
        assert!(machine.now().since(before).0 < 10_000, "monotonic time stopped");
        let near = |ns: Ns, expected: Ns| ns.0.abs_diff(expected.0) < 10_000;
        assert!(near(machine.reader.boottime(), boot.after(Ns(slept))));
        assert!(near(machine.reader.realtime(), real.after(Ns(slept))));
        assert_eq!(machine.reader.steps(), steps + 1);
        steps += 1;
        machine.truth.fetch_sub(counted, RELAXED);
        machine.keeper.tick();
    }
    assert_eq!(machine.reports, [], "a suspend is not a fault");
}
