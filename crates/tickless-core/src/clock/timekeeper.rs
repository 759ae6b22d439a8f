//! The monotonic, boottime and realtime clocks, computed from the best counter of a machine.
//!
//! All threads read a [`ClockReader`], without locks. One thread at a time maintains it through its
//! [`Timekeeper`].
//!
//! # Guarantees
//!
//! - No time is lost as long as [`tick`](Timekeeper::tick) is called at least once in
//!   [`max_idle`](Timekeeper::max_idle).
//! - Monotonic time never goes back, for any thread and across threads that are ordered by
//!   happens-before, even when another counter is chosen as the source or the watchdog acts. This
//!   requires that the source does not go back. A counter that may go back belongs behind a
//!   [ratchet](super::ratchet); without one, time goes back as far as the last tick.
//! - [`watch`](Timekeeper::watch) compares the counters. If the one in use is bad, it switches to
//!   the best remaining one and reports that. Time that the bad counter has lost since it was last
//!   known to be good is added, as measured by the reference counter. Time that it has gained
//!   cannot be taken back, and is reported.
//! - Monotonic time stops during a suspend, and boottime continues. Realtime may be set; threads
//!   that wait for a time on it learn of that from [`ClockReader::steps`].
//!
//! # Ground rules
//!
//! The list of counters never changes. Only the timekeeper, which is not shared, writes the line
//! from counts to time. The two offsets are single words: boottime is monotonic time plus one of
//! them, realtime monotonic time plus the other. So when realtime is set or a suspend ends, a
//! reader sees the clock either as it was before or as it is after that *step*. A reader that has
//! seen the number of steps increase sees the clock after the step.

use crate::clock::counter::{Counter, max_idle};
use crate::clock::line::Line;
use crate::clock::segment::{Segment, SourceId};
use crate::clock::slope::Point;
use crate::clock::sources::{Fault, Sources};
use crate::clock::watchdog::{Comparison, Sample, Scale, Tolerance, judge};
use crate::time::Ns;
use crate::word::{Ordering, Relax, Word};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// The clocks, which all threads read.
#[derive(Debug)]
pub struct ClockReader<W, C, R> {
    line: Line<W>,
    counters: Vec<C>,
    relax: R,
    /// Boottime minus monotonic: the total time that the machine was suspended.
    slept: W,
    /// Realtime minus monotonic, wrapping.
    wall: W,
    /// The number of times that realtime was set or the machine was suspended. Written after the
    /// two offsets above, so that a reader of a new number sees the new offsets.
    steps: W,
}

impl<W: Word, C: Counter, R: Relax> ClockReader<W, C, R> {
    /// Returns the time since the timekeeper was made, without suspends. Takes no lock, and waits
    /// only while the line from counts to time is being replaced.
    #[inline]
    pub fn monotonic(&self) -> Ns {
        let mut round = 0;
        loop {
            if let Some(now) = self.line.try_at(|source| self.read(source)) {
                return now;
            }
            self.relax.relax(round);
            round = round.saturating_add(1);
        }
    }

    /// Returns the time since the timekeeper was made, including suspends.
    #[inline]
    pub fn boottime(&self) -> Ns {
        let monotonic = self.monotonic();
        monotonic.after(Ns(self.slept.load(Ordering::Relaxed)))
    }

    /// Returns the wall-clock time, in nanoseconds since the epoch that callers of
    /// [`Timekeeper::set_realtime`] count from.
    #[inline]
    pub fn realtime(&self) -> Ns {
        let monotonic = self.monotonic();
        Ns(monotonic.0.wrapping_add(self.wall.load(Ordering::Relaxed)))
    }

    /// Returns a number that increases whenever realtime was set or the machine was suspended. The
    /// deadlines of timers on realtime or boottime must then be checked again.
    pub fn steps(&self) -> u64 {
        // Acquire: pairs with the Release in `stepped`.
        self.steps.load(Ordering::Acquire)
    }

    /// Returns the counter in use.
    pub fn source(&self) -> SourceId {
        let mut round = 0;
        loop {
            if let Some(segment) = self.line.try_segment() {
                return segment.source;
            }
            self.relax.relax(round);
            round = round.saturating_add(1);
        }
    }

    /// Returns the counters, in the order of [`Timekeeper::new`].
    pub fn counters(&self) -> &[C] {
        &self.counters
    }

    #[inline]
    fn read(&self, source: SourceId) -> u64 {
        self.counters.get(source.index()).map_or(0, Counter::read)
    }
}

/// Maintains a [`ClockReader`]. One thread at a time uses it.
#[derive(Debug)]
pub struct Timekeeper<W, C, R> {
    reader: Arc<ClockReader<W, C, R>>,
    sources: Sources,
    reference: SourceId,
    samples: Vec<Option<Sample>>,
    /// The last moment at which the counter in use was known to be good.
    anchor: Option<Anchor>,
    tolerance: Tolerance,
}

/// A reading of the reference counter, and the time at which it was read.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    reference: u64,
    time: Ns,
}

/// A counter that was found to be bad, and how time continued. Counters are numbered by their index
/// in the list that the clock was made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The bad counter.
    pub bad: usize,
    /// Its fault.
    pub fault: Fault,
    /// If the clock was running on the bad counter: the counter that it has run on since, the best
    /// remaining one, or still the bad one if there is no other.
    pub switched_to: Option<usize>,
    /// The time that the bad counter had lost against the counter that it was compared with, if the
    /// clock was running on it. The clock has stepped ahead by this time.
    pub made_good: Duration,
    /// The time that the bad counter had gained, if the clock was running on it. Time cannot go
    /// back, so the clock stays ahead by this time.
    pub ahead: Duration,
}

impl Report {
    /// Reports a counter that the clock was not running on.
    #[doc(hidden)]
    pub const fn of(bad: usize, fault: Fault) -> Report {
        let (made_good, ahead) = (Duration::ZERO, Duration::ZERO);
        Report { bad, fault, switched_to: None, made_good, ahead }
    }
}

impl<W: Word, C: Counter, R: Relax> Timekeeper<W, C, R> {
    /// Makes a timekeeper that starts at zero and uses the best of these counters. The second best
    /// is the reference, with which the watchdog compares the others. Returns `None` without a
    /// counter.
    pub fn new(counters: Vec<C>, relax: R) -> Option<Timekeeper<W, C, R>> {
        let sources = Sources::new(&counters);
        let best = sources.best()?;
        let counter = counters.get(best.index())?;
        let segment = Segment::over(best, counter, counter.read(), Point::default());
        let reader = ClockReader {
            line: Line::new(segment),
            relax,
            slept: W::new(0),
            wall: W::new(0),
            steps: W::new(0),
            counters,
        };
        Some(Timekeeper {
            reference: sources.best_besides(best).unwrap_or(best),
            samples: sources.ids().map(|_| None).collect(),
            anchor: None,
            sources,
            reader: Arc::new(reader),
            tolerance: Tolerance::DEFAULT,
        })
    }

    /// Sets the watchdog's tolerances.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Self {
        Timekeeper { tolerance, ..self }
    }

    /// Returns the reader of the clocks, for all threads.
    pub fn reader(&self) -> &Arc<ClockReader<W, C, R>> {
        &self.reader
    }

    /// Returns the counters and their faults.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the longest time that may pass between two calls of [`tick`](Self::tick). Beyond it
    /// the clocks lose time.
    pub fn max_idle(&self) -> Ns {
        self.counter(self.reader.source()).map_or(Ns::NEVER, max_idle)
    }

    /// Begins a new segment at the counter's current value, so that the counter may count for
    /// nearly half its width again before time is lost.
    pub fn tick(&mut self) {
        self.reader.line.redraw(|old| old.continued(self.reader.read(old.source), old.slope));
    }

    /// Sets realtime. Monotonic time and boottime do not change.
    pub fn set_realtime(&mut self, realtime: Ns) {
        let wall = realtime.0.wrapping_sub(self.reader.monotonic().0);
        self.reader.wall.store(wall, Ordering::Relaxed);
        self.stepped();
    }

    /// Records that the machine is about to be suspended. No thread may read the clocks until
    /// [`resume`](Self::resume).
    pub fn suspend(&mut self) -> Suspended {
        self.tick();
        Suspended { monotonic: self.reader.monotonic() }
    }

    /// Records that the machine was suspended for `slept`, as measured by a clock that continued.
    /// Monotonic time continues from where it was, whatever the counter did during the suspend.
    pub fn resume(&mut self, suspended: Suspended, slept: Ns) {
        let Suspended { monotonic } = suspended;
        self.reader.line.redraw(|old| {
            let count0 = self.reader.read(old.source);
            Segment { count0, start: old.start.max(Point::at(monotonic)), ..old }
        });
        let total = self.reader.slept.load(Ordering::Relaxed).saturating_add(slept.0);
        let wall = self.reader.wall.load(Ordering::Relaxed).wrapping_add(slept.0);
        self.reader.slept.store(total, Ordering::Relaxed);
        self.reader.wall.store(wall, Ordering::Relaxed);
        self.stepped();
        self.forget_samples();
    }

    fn stepped(&mut self) {
        let steps = self.reader.steps.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `steps`, so that a thread that reads the new number of
        // steps also reads the new offsets.
        self.reader.steps.store(steps.wrapping_add(1), Ordering::Release);
    }

    /// Compares all counters with the reference once. Returns a report for each counter that was
    /// found bad; if that was in use, the report names the counter on which time goes on. Call this
    /// about every half second.
    pub fn watch(&mut self) -> Vec<Report> {
        let comparisons: Vec<(SourceId, Comparison)> = self
            .sources
            .ids()
            .filter(|id| *id != self.reference && self.sources.fault(*id).is_none())
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(|id| Some((id, self.compare(id)?)))
            .collect();
        // A counter that differs from the reference has a fault, or one of the two has wrapped
        // because the samples are too far apart. They are not if any counter agrees with the
        // reference.
        let is_prompt = comparisons.iter().any(|(_, comparison)| *comparison == Comparison::Good);
        let mut blamed: Vec<(SourceId, Fault)> = Vec::new();
        match blame_of_reference(&comparisons) {
            Some(fault) => blamed.push((self.reference, fault)),
            None => {
                blamed.extend(comparisons.iter().filter_map(|(id, comparison)| match comparison {
                    Comparison::Bad(fault) => Some((*id, *fault)),
                    Comparison::TooLate(fault) if is_prompt => Some((*id, *fault)),
                    _ => None,
                }))
            }
        }
        blamed.into_iter().map(|(id, fault)| self.blame(id, fault)).collect()
    }

    /// Records a fault that the watchdog cannot detect: a skew between CPUs, or a device that went
    /// away.
    pub fn blame(&mut self, id: SourceId, fault: Fault) -> Report {
        self.sources.blame(id, fault);
        if id == self.reference {
            // The anchor came from the reference.
            self.anchor = None;
        }
        let mut report = Report::of(id.index(), fault);
        if id == self.reader.source() {
            self.switch_to_best(id, &mut report);
        }
        let used = self.reader.source();
        if id == self.reference || report.switched_to == Some(self.reference.index()) {
            self.reference = self.sources.best_besides(used).unwrap_or(used);
            self.forget_samples();
        }
        report
    }

    fn forget_samples(&mut self) {
        self.samples.fill(None);
        self.anchor = None;
    }

    fn switch_to_best(&mut self, in_use: SourceId, report: &mut Report) {
        let best = self.sources.best().and_then(|best| Some((best, self.counter(best)?)));
        report.switched_to = Some(best.map_or(in_use, |(best, _)| best).index());
        let Some((best, counter)) = best else { return };
        self.reader.line.redraw(|old| {
            // Readers may have seen the time that the old counter shows now, so the new segment
            // must not start before that time.
            let shown = old.at(self.reader.read(old.source));
            if let Some(right) = self.time_by_reference() {
                report.made_good = right - shown.ns;
                report.ahead = shown.ns - right;
            }
            let start = shown.max(Point::at(shown.ns + report.made_good));
            Segment::over(best, counter, counter.read(), start)
        });
        self.anchor = None;
    }

    /// Returns the current time according to the reference: the time of the last good sample, plus
    /// the time that the reference has counted since.
    fn time_by_reference(&self) -> Option<Ns> {
        let (anchor, reference) = (self.anchor?, self.counter(self.reference)?);
        let Scale { width, slope } = Scale::of(reference);
        Some(anchor.time.after(slope.ns(width.elapsed(anchor.reference, reference.read()))))
    }

    /// Compares one counter with the reference; `None` if there is no result.
    fn compare(&mut self, id: SourceId) -> Option<Comparison> {
        let (counter, reference) = (self.counter(id)?, self.counter(self.reference)?);
        let sample = Sample::take(reference, counter, &self.tolerance)?;
        let scales = (Scale::of(counter), Scale::of(reference));
        let last = self.samples.get_mut(id.index())?;
        let comparison = last.map(|from| judge(from, sample, scales.0, scales.1, &self.tolerance));
        if comparison == Some(Comparison::TooSoon) {
            return None;
        }
        *last = Some(sample);
        if matches!(comparison, None | Some(Comparison::Good)) {
            self.set_anchor(id, sample);
        }
        comparison
    }

    fn set_anchor(&mut self, id: SourceId, sample: Sample) {
        let segment = self.reader.line.try_segment().filter(|segment| segment.source == id);
        if let Some(segment) = segment {
            let time = segment.at(sample.count).ns;
            self.anchor = Some(Anchor { reference: sample.reference, time });
        }
    }

    fn counter(&self, id: SourceId) -> Option<&C> {
        self.reader.counters.get(id.index())
    }
}

/// The time at which the machine was suspended; pass it to [`Timekeeper::resume`].
#[must_use = "pass this to `resume`, or the clocks are wrong after the suspend"]
#[derive(Debug)]
pub struct Suspended {
    monotonic: Ns,
}

/// Returns the reference's fault, if it is the reference that is bad: a comparison has shown that
/// directly, or all other counters, at least two, agree with each other and differ from it.
fn blame_of_reference(comparisons: &[(SourceId, Comparison)]) -> Option<Fault> {
    let itself = comparisons.iter().find_map(|(_, comparison)| match comparison {
        Comparison::BadReference(fault) => Some(*fault),
        _ => None,
    });
    if itself.is_some() {
        return itself;
    }
    let apart = |comparison: &Comparison| match comparison {
        Comparison::Bad(Fault::Fast(by)) => i128::try_from(by.as_nanos()).ok(),
        Comparison::Bad(Fault::Slow(by)) => i128::try_from(by.as_nanos()).ok().map(|by| -by),
        _ => None,
    };
    if comparisons.len() < 2 {
        return None;
    }
    let all: Option<Vec<i128>> =
        comparisons.iter().map(|(_, comparison)| apart(comparison)).collect();
    let all = all?;
    let (least, most) = (*all.iter().min()?, *all.iter().max()?);
    let agree = most - least <= least.abs().min(most.abs()) / 4;
    let by = |apart: i128| Duration::from_nanos(apart.unsigned_abs() as u64);
    match agree {
        // All other counters ran ahead of the reference, so the reference fell behind.
        true if least > 0 => Some(Fault::Slow(by(least))),
        true if most < 0 => Some(Fault::Fast(by(most))),
        _ => None,
    }
}
