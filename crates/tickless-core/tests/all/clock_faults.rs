//! Clocks on counters that misbehave, on virtual time.
//!
//! A machine has three counters over one true time: the one in use, which goes wrong in one of
//! the ways that counters do, and two good ones. Somebody reads the time every millisecond and
//! maintains the clocks every half second. Whatever happens: time does not go back (C8), the
//! culprit is found and named (C9), time goes on over another counter, and what was lost or
//! gained is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::clock::ratchet::Ratchet;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::sources::Fault;
use tickless_core::clock::timekeeper::{ClockReader, Report, Timekeeper};
use tickless_core::local::LocalTimers;
use tickless_core::time::Ns;

/// Tests read these by one thread; the order among them means nothing.
const RELAXED: Ordering = Ordering::Relaxed;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;

/// What a counter makes of the true time since it went wrong, and of the time when it did.
type Illness = fn(since: u64, begin: u64) -> u64;

/// A counter over true time that goes wrong at some time.
struct Virtual {
    truth: Arc<AtomicU64>,
    hertz: u64,
    bits: u32,
    rating: u16,
    ill_from: u64,
    illness: Illness,
    /// Every reading takes this long.
    takes: u64,
    /// Every so many readings there is an interrupt, of this length.
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
        let shown = match now.checked_sub(self.ill_from) {
            None => now,
            Some(since) => (self.illness)(since, self.ill_from),
        };
        let count = u128::from(shown) * u128::from(self.hertz) / u128::from(SECOND);
        count as u64 & self.width().mask()
    }

    fn width(&self) -> Width {
        Width::bits(self.bits)
    }

    fn frequency(&self) -> Hertz {
        Hertz::new(self.hertz)
    }

    fn rating(&self) -> Rating {
        Rating(self.rating)
    }

    fn name(&self) -> &str {
        "virtual"
    }
}

/// Where machines start: not at zero, so that counters can go back.
const START: u64 = 10 * HOUR;
/// When the counter in use goes wrong.
const ILL_FROM: u64 = START + 5 * SECOND + 123 * MS;

/// The one that falls ill is behind a ratchet, since it may go back.
type Held = Box<dyn Counter>;
type Keeper = Timekeeper<AtomicU64, Held, fn(u32)>;
type SharedReader = Arc<ClockReader<AtomicU64, Held, fn(u32)>>;

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// A machine, whoever reads its time, and what its watchdog had to say.
struct Machine {
    truth: Arc<AtomicU64>,
    keeper: Keeper,
    reader: SharedReader,
    last: Ns,
    reports: Vec<Report>,
    /// How far time was behind and ahead of the truth at most.
    behind: u64,
    ahead: u64,
}

fn good(truth: &Arc<AtomicU64>, hertz: u64, bits: u32, rating: u16) -> Virtual {
    let (truth, readings) = (Arc::clone(truth), AtomicU64::new(0));
    let healthy: Illness = |since, begin| begin + since;
    let ill_from = u64::MAX;
    let (takes, disturbed) = (20, None);
    Virtual { truth, hertz, bits, rating, ill_from, illness: healthy, takes, disturbed, readings }
}

impl Machine {
    /// A fast counter that falls ill, a narrow one, and one in nanoseconds.
    fn new(illness: Illness) -> Machine {
        let truth = Arc::new(AtomicU64::new(START));
        let fast = Virtual { ill_from: ILL_FROM, illness, ..good(&truth, 2_994_375_731, 64, 300) };
        let counters: Vec<Held> = vec![
            good(&truth, 14_318_180, 32, 250).boxed(),
            Box::new(Ratchet::<AtomicU64, _>::new(fast)),
            good(&truth, 1_000_000_000, 64, 110).boxed(),
        ];
        Machine::with(truth, counters)
    }

    fn with(truth: Arc<AtomicU64>, counters: Vec<Held>) -> Machine {
        let relax: fn(u32) = |_| panic!("nobody waits where there is one thread");
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

    /// How far time is from the truth now, ahead of it if positive.
    fn apart(&mut self) -> i64 {
        let now = self.now();
        now.0.cast_signed() - (self.truth.load(RELAXED) - START).cast_signed()
    }
}

/// The one report that there should be: about the counter that was in use.
fn report(machine: &Machine) -> Report {
    assert_eq!(machine.reports.len(), 1, "{:?}", machine.reports);
    assert_eq!(machine.reports[0].bad, SourceId(1));
    machine.reports[0]
}

/// Goal: C7: good counters are left alone, and over an hour no time is lost: a narrow counter in
/// use wraps a dozen times.
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
    assert!(machine.keeper.watch_counts().good >= 29);
}

/// Goal: C9: a counter that stands still is found out, and what it lost is made good.
#[test]
fn a_frozen_counter() {
    let mut machine = Machine::new(|_, begin| begin);
    machine.run(12_000);
    let report = report(&machine);
    let change = report.change.unwrap();
    assert!(matches!(report.fault, Fault::Frozen | Fault::Slow(_)), "{report:?}");
    assert_eq!(change.to, SourceId(0));
    assert!(
        nanos(change.made_good) > 300 * MS && nanos(change.made_good) < 1_100 * MS,
        "{change:?}"
    );
    assert!(machine.behind <= nanos(change.made_good) + MS, "no later than was told");
    assert_eq!(change.ahead, Duration::ZERO);
    assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
}

/// Goal: C9: a counter that slows down is found out, and what it lost is made good.
#[test]
fn a_slow_counter() {
    let mut machine = Machine::new(|since, begin| begin + since / 2);
    machine.run(12_000);
    let report = report(&machine);
    assert!(matches!(report.fault, Fault::Slow(_)), "{report:?}");
    assert!(nanos(report.change.unwrap().made_good) > 100 * MS, "{report:?}");
    assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
}

/// Goal: C9: a counter that jumps by hours is found out. Time has been ahead and cannot go back:
/// by how much is told, and from there on it runs as it should.
#[test]
fn a_jumping_counter() {
    let mut machine = Machine::new(|since, begin| begin + since + 3 * HOUR);
    machine.run(12_000);
    let report = report(&machine);
    let change = report.change.unwrap();
    assert!(matches!(report.fault, Fault::Fast(_)), "{report:?}");
    assert!(nanos(change.ahead).abs_diff(3 * HOUR) < MS, "{change:?}");
    assert!((machine.apart() - nanos(change.ahead).cast_signed()).abs() < 10_000);
    assert!(machine.ahead <= nanos(change.ahead) + MS, "no earlier than was told");
}

/// Goal: C8, C9: a counter that goes back by hours stops time, is found out, and what was lost
/// is made good.
#[test]
fn a_backwards_counter() {
    let mut machine = Machine::new(|since, begin| begin + since - 2 * HOUR);
    machine.run(12_000);
    let report = report(&machine);
    assert!(matches!(report.fault, Fault::Frozen | Fault::Slow(_)), "{report:?}");
    assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
}

/// Goal: C7, C9: a counter that begins to wrap early, as if it had fewer bits, is found out.
#[test]
fn a_counter_that_wraps_early() {
    let mut machine = Machine::new(|since, begin| (begin + since) & 0xffff_ffff);
    machine.run(12_000);
    assert_eq!(report(&machine).bad, SourceId(1));
    assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
}

/// Goal: C9: when the reference is the bad one it is outvoted, or gives itself away; the good
/// counter stays in use and time does not notice.
#[test]
fn a_bad_reference() {
    let illnesses: [Illness; 4] = [
        |_, begin| begin,
        |since, begin| begin + since / 2,
        |since, begin| begin + since + 1_400 * SECOND,
        |since, begin| begin + since - 70 * SECOND,
    ];
    for illness in illnesses {
        let truth = Arc::new(AtomicU64::new(START));
        let counters = vec![
            good(&truth, 2_994_375_731, 64, 300).boxed(),
            Virtual { ill_from: ILL_FROM, illness, ..good(&truth, 14_318_180, 32, 250) }.boxed(),
            good(&truth, 1_000_000_000, 64, 110).boxed(),
        ];
        let mut machine = Machine::with(truth, counters);
        machine.run(12_000);
        let report = report(&machine);
        assert_eq!(report.change, None, "{report:?}");
        assert_eq!(machine.reader.source(), SourceId(0));
        assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
    }
}

/// Goal: C9: readings that were disturbed are taken again and held against nobody, even if all
/// of them were.
#[test]
fn disturbed_readings() {
    for (every, all_are_disturbed) in [(3, false), (1, true)] {
        let truth = Arc::new(AtomicU64::new(START));
        let disturbed = Some((every, 3 * MS));
        let counters = vec![
            good(&truth, 2_994_375_731, 64, 300).boxed(),
            Virtual { disturbed, ..good(&truth, 14_318_180, 32, 250) }.boxed(),
        ];
        let mut machine = Machine::with(truth, counters);
        machine.run(20_000);
        assert_eq!(machine.reports, []);
        let counts = machine.keeper.watch_counts();
        assert_eq!(counts.disturbed > 0, all_are_disturbed, "{counts:?}");
        assert_eq!(counts.good > 0, !all_are_disturbed, "{counts:?}");
    }
}

/// Goal: C7, C9: nobody looked for hours: narrow counters have wrapped, and nobody is blamed.
#[test]
fn nobody_looked_for_long() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(2_000);
    for hours in [1, 7, 24, 500] {
        machine.truth.fetch_add(hours * HOUR + 777 * MS, RELAXED);
        machine.maintain();
        machine.run(1_000);
    }
    assert_eq!(machine.reports, []);
    assert!(machine.keeper.watch_counts().late > 0);
    assert!(machine.apart().abs() < 500_000, "{} ns apart", machine.apart());
}

/// Goal: C9: as counters fail one after the other, the best that remains is used; the last one
/// stays in use whatever is said of it, and time goes on.
#[test]
fn one_after_the_other() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(1_000);
    let mut used = Vec::new();
    for _ in 0..3 {
        let bad = machine.reader.source();
        let report = machine.keeper.blame(bad, Fault::Withdrawn);
        used.push((bad.0, report.change.unwrap().to.0));
        machine.run(1_000);
        assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
    }
    assert_eq!(used, [(1, 0), (0, 2), (2, 2)]);
    assert_eq!(machine.keeper.sources().best(), None);
}

/// Goal: C8: the source changes before the watchdog has looked at anything: time goes on from
/// where readers have seen it.
#[test]
fn a_change_before_the_first_look() {
    let mut machine = Machine::new(|since, begin| begin + since);
    machine.run(300);
    let change = machine.keeper.blame(SourceId(1), Fault::Withdrawn).change;
    assert_eq!(
        change.map(|change| (change.to, change.made_good)),
        Some((SourceId(0), Duration::ZERO))
    );
    assert!(machine.apart().abs() < 10_000, "{} ns apart", machine.apart());
}

/// Goal: H5: realtime is set by hours to and fro, and monotonic time and boottime do not notice;
/// over a suspend monotonic time stands still and the others go on. Every step is told.
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
        assert!(machine.now().since(before).0 < 10_000, "monotonic time stood still");
        let near = |ns: Ns, expected: Ns| ns.0.abs_diff(expected.0) < 10_000;
        assert!(near(machine.reader.boottime(), boot.after(Ns(slept))));
        assert!(near(machine.reader.realtime(), real.after(Ns(slept))));
        assert_eq!(machine.reader.steps(), steps + 1);
        steps += 1;
        machine.truth.fetch_sub(counted, RELAXED);
        machine.keeper.steer(tickless_core::clock::slope::Slope::of(Hertz::new(2_994_375_731)));
    }
    assert_eq!(machine.reports, [], "a suspend is no fault");
}

/// Goal: timers on a clock whose counter fails: each fires once, none before its time on that
/// clock, and none later than by what the clock says it had lost.
#[test]
fn timers_on_a_failing_counter() {
    let illnesses: [Illness; 4] = [
        |_, begin| begin,
        |since, begin| begin + since / 3,
        |since, begin| begin + since + 2 * HOUR,
        |since, begin| (begin + since) & 0xffff_ffff,
    ];
    for illness in illnesses {
        let mut machine = Machine::new(illness);
        let mut timers = LocalTimers::new(machine.now().into());
        let deadlines: Vec<Ns> = (1..=100).map(|n| Ns(n * 100 * MS)).collect();
        for deadline in &deadlines {
            let key = timers.insert_precise(*deadline).unwrap();
            timers.start_at(key, (*deadline).into()).unwrap();
        }
        let mut fired = Vec::new();
        for _ in 0..26 {
            for _ in 0..500 {
                machine.truth.fetch_add(MS, RELAXED);
                let now = machine.now();
                timers.advance(now.into(), |timers, key| {
                    let deadline = *timers.value(key).unwrap();
                    assert!(now >= deadline, "early");
                    fired.push(deadline);
                });
            }
            machine.maintain();
        }
        fired.sort_unstable();
        assert_eq!(fired, deadlines, "lost or fired twice");
        assert_eq!(machine.reports.len(), 1);
    }
}
