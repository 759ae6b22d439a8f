//! Monotonic, boottime and realtime, over the best counter that a machine has.
//!
//! A [`ClockReader`] is what everybody reads, without locks; a [`Timekeeper`] is what one thread
//! at a time uses to keep it right.
//!
//! # Guarantees
//!
//! - C7 No time is lost as long as [`tick`](Timekeeper::tick) is called at least once in
//!   [`max_idle`](Timekeeper::max_idle).
//! - C8 Monotonic time never goes back, for any thread and across threads that are ordered by
//!   happens-before: not when the source changes, not while the watchdog acts. That is as long
//!   as the source in use does not go back; one that may belongs behind a
//!   [ratchet](super::ratchet). Without one, time goes back to the last tick at most.
//! - C9 [`watch`](Timekeeper::watch) compares the sources, and when the one in use is bad goes
//!   over to the best that remains, and says so. What the bad one has lost since it was last
//!   known to be good is made good by the reference; what it has gained stays, and is told.
//! - H5 Monotonic time stands still over a suspend, boottime goes on; realtime may be set, and
//!   who waits for realtime learns of it by [`ClockReader::steps`].
//!
//! # Who may touch what
//!
//! The counters never change. The line is written by the timekeeper, which is not shared. The
//! two offsets are single words: boottime is monotonic time plus one, realtime plus the other,
//! so a reader has a clock from before the step or from after it, and who has seen the number of
//! steps go up has one from after it.

use crate::clock::counter::{Counter, max_idle};
use crate::clock::line::Line;
use crate::clock::segment::{Segment, SourceId};
use crate::clock::slope::{Point, Slope};
use crate::clock::sources::{Fault, Sources};
use crate::clock::watchdog::{Comparison, Look, Scale, Tolerance, judge};
use crate::time::Ns;
use crate::word::{Ordering, Relax, Word};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The clocks that everybody reads.
#[derive(Debug)]
pub struct ClockReader<W, C, R> {
    line: Line<W>,
    counters: Vec<C>,
    relax: R,
    /// Boottime minus monotonic: how long the machine has slept.
    slept: W,
    /// Realtime minus monotonic, wrapping.
    wall: W,
    /// How often realtime was set, and the machine slept. Written after the offsets.
    steps: W,
}

impl<W: Word, C: Counter, R: Relax> ClockReader<W, C, R> {
    /// Time since the beginning, without suspends. Takes no lock; waits only while the source
    /// or its slope changes.
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

    /// Time since the beginning, with suspends.
    #[inline]
    pub fn boottime(&self) -> Ns {
        let monotonic = self.monotonic();
        monotonic.after(Ns(self.slept.load(Ordering::Relaxed)))
    }

    /// The time of day, in nanoseconds since the epoch that was set.
    #[inline]
    pub fn realtime(&self) -> Ns {
        let monotonic = self.monotonic();
        Ns(monotonic.0.wrapping_add(self.wall.load(Ordering::Relaxed)))
    }

    /// Goes up whenever realtime was set or the machine has slept: a timer that waits for
    /// realtime or boottime must then be looked at anew (H5).
    pub fn steps(&self) -> u64 {
        // Acquire: pairs with the Release in `stepped`.
        self.steps.load(Ordering::Acquire)
    }

    /// Which counter is in use.
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

    /// The counters, in the order in which they were given.
    pub fn counters(&self) -> &[C] {
        &self.counters
    }

    #[inline]
    fn read(&self, source: SourceId) -> u64 {
        self.counters.get(source.index()).map_or(0, Counter::read)
    }
}

/// Keeps a [`ClockReader`] right. One thread at a time uses it.
#[derive(Debug)]
pub struct Timekeeper<W, C, R> {
    reader: Arc<ClockReader<W, C, R>>,
    sources: Sources,
    reference: SourceId,
    looks: Vec<Option<Look>>,
    /// The last moment at which the counter in use was known to be good.
    anchor: Option<Anchor>,
    tolerance: Tolerance,
    counts: WatchCounts,
}

/// What time it was when the reference stood there.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    reference: u64,
    time: Ns,
}

/// There is nothing to keep time with: give it a counter, if only a slow one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoCounter;

impl fmt::Display for NoCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no counter to keep time with; add one, if only a slow one")
    }
}

impl core::error::Error for NoCounter {}

/// What a watchdog has been through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WatchCounts {
    /// Comparisons that were judged and found good.
    pub good: u64,
    /// Looks that were disturbed every time, and not judged.
    pub disturbed: u64,
    /// Looks that came too late to be judged.
    pub late: u64,
    /// Sources found to be bad.
    pub bad: u64,
}

/// What the watchdog has found and done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The counter that is bad.
    pub bad: SourceId,
    /// What is wrong with it.
    pub fault: Fault,
    /// What became of the time, if the bad one was in use.
    pub change: Option<Change>,
}

/// How time went on when the counter in use was found to be bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The counter in use now: the best that remains, or the bad one if there is no other.
    pub to: SourceId,
    /// What the bad counter had lost by the reference, up to now; time made a step ahead by it.
    pub made_good: Duration,
    /// What it had gained by the reference. Time cannot go back, so it stays ahead by that.
    pub ahead: Duration,
}

impl<W: Word, C: Counter, R: Relax> Timekeeper<W, C, R> {
    /// Keeps time by the best of these counters, from zero. The best of the rest is the
    /// watchdog's reference.
    pub fn new(counters: Vec<C>, relax: R) -> Result<Timekeeper<W, C, R>, NoCounter> {
        let sources = Sources::new(&counters);
        let best = sources.best().ok_or(NoCounter)?;
        let counter = counters.get(best.index()).ok_or(NoCounter)?;
        let segment = Segment::over(best, counter, counter.read(), Point::default());
        let reader = ClockReader {
            line: Line::new(segment),
            relax,
            slept: W::new(0),
            wall: W::new(0),
            steps: W::new(0),
            counters,
        };
        Ok(Timekeeper {
            reference: sources.best_besides(best).unwrap_or(best),
            looks: sources.ids().map(|_| None).collect(),
            anchor: None,
            sources,
            reader: Arc::new(reader),
            tolerance: Tolerance::USUAL,
            counts: WatchCounts::default(),
        })
    }

    /// The same, with a watchdog of other tolerance.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Self {
        Timekeeper { tolerance, ..self }
    }

    /// The same, compared with this counter instead of the second best.
    #[must_use]
    pub fn with_reference(self, reference: SourceId) -> Self {
        Timekeeper { reference, ..self }
    }

    /// What everybody reads.
    pub fn reader(&self) -> &Arc<ClockReader<W, C, R>> {
        &self.reader
    }

    /// What is known of the counters.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// What the watchdog has been through.
    pub fn watch_counts(&self) -> WatchCounts {
        self.counts
    }

    /// How long may pass between two ticks without losing time (C7).
    pub fn max_idle(&self) -> Ns {
        self.counter(self.reader.source()).map_or(Ns::NEVER, max_idle)
    }

    /// Begins a new segment where the counter stands, so that its next wrap is far away again.
    pub fn tick(&mut self) {
        self.bend(|old| old.slope);
    }

    /// Lets time run at another slope from here on.
    pub fn steer(&mut self, slope: Slope) {
        self.bend(|_| slope);
    }

    fn bend(&mut self, slope: impl FnOnce(Segment) -> Slope) {
        self.reader.line.redraw(|old| old.continued(self.reader.read(old.source), slope(old)));
    }

    /// Sets realtime. Monotonic time and boottime do not notice.
    pub fn set_realtime(&mut self, realtime: Ns) {
        let wall = realtime.0.wrapping_sub(self.reader.monotonic().0);
        self.reader.wall.store(wall, Ordering::Relaxed);
        self.stepped();
    }

    /// The machine is about to sleep: nobody reads the clocks until [`resume`](Self::resume).
    pub fn suspend(&mut self) -> Suspended {
        self.tick();
        Suspended { monotonic: self.reader.monotonic() }
    }

    /// The machine has slept for so long, by a clock that went on. Monotonic time goes on from
    /// where it was, whatever the counter did meanwhile.
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
        self.forget_looks();
    }

    fn stepped(&mut self) {
        let steps = self.reader.steps.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `steps`. Who sees the step sees the new offset.
        self.reader.steps.store(steps.wrapping_add(1), Ordering::Release);
    }

    /// Compares all counters with the reference, once. Returns what was found to be bad and
    /// what was done about it; call it every half a second or so.
    pub fn watch(&mut self) -> Vec<Report> {
        let comparisons: Vec<(SourceId, Comparison)> = self
            .sources
            .ids()
            .filter(|id| *id != self.reference && self.sources.fault(*id).is_none())
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(|id| Some((id, self.look_at(id)?)))
            .collect();
        // If one counter agrees with the reference, nobody has slept.
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

    /// Holds something against a counter that the watchdog cannot see: a skew between CPUs, a
    /// device that went away.
    pub fn blame(&mut self, id: SourceId, fault: Fault) -> Report {
        self.counts.bad += 1;
        self.sources.blame(id, fault);
        if id == self.reference {
            // What it says of the others is worth nothing.
            self.anchor = None;
        }
        let change = (id == self.reader.source()).then(|| self.switch_to_best(id));
        let used = self.reader.source();
        if id == self.reference || change.is_some_and(|change| change.to == self.reference) {
            self.reference = self.sources.best_besides(used).unwrap_or(used);
            self.forget_looks();
        }
        Report { bad: id, fault, change }
    }

    fn forget_looks(&mut self) {
        self.looks.fill(None);
        self.anchor = None;
    }

    /// Goes over to the best counter that remains; stays where it is if none does.
    fn switch_to_best(&mut self, in_use: SourceId) -> Change {
        let mut change = Change { to: in_use, made_good: Duration::ZERO, ahead: Duration::ZERO };
        let best = self.sources.best().and_then(|best| Some((best, self.counter(best)?)));
        let Some((best, counter)) = best else {
            return change;
        };
        change.to = best;
        self.reader.line.redraw(|old| {
            // Readers may have seen all that the old counter shows by now (C8).
            let shown = old.at(self.reader.read(old.source));
            if let Some(right) = self.time_by_reference() {
                change.made_good = right - shown.ns;
                change.ahead = shown.ns - right;
            }
            let start = shown.max(Point::at(shown.ns + change.made_good));
            Segment::over(best, counter, counter.read(), start)
        });
        self.anchor = None;
        change
    }

    /// What time it should be, by the reference alone since the last good look.
    fn time_by_reference(&self) -> Option<Ns> {
        let (anchor, reference) = (self.anchor?, self.counter(self.reference)?);
        let Scale { width, slope } = Scale::of(reference);
        Some(anchor.time.after(slope.ns(width.elapsed(anchor.reference, reference.read()))))
    }

    /// Compares one counter with the reference; `None` while there is nothing to say.
    fn look_at(&mut self, id: SourceId) -> Option<Comparison> {
        let (counter, reference) = (self.counter(id)?, self.counter(self.reference)?);
        let Some(look) = Look::take(reference, counter, &self.tolerance) else {
            self.counts.disturbed += 1;
            return None;
        };
        let scales = (Scale::of(counter), Scale::of(reference));
        let last = self.looks.get_mut(id.index())?;
        let comparison = last.map(|from| judge(from, look, scales.0, scales.1, &self.tolerance));
        match comparison {
            Some(Comparison::TooSoon) => return None,
            Some(Comparison::Good) => self.counts.good += 1,
            Some(Comparison::TooLate(_)) => self.counts.late += 1,
            None | Some(Comparison::Bad(_) | Comparison::BadReference(_)) => {}
        }
        *last = Some(look);
        if matches!(comparison, None | Some(Comparison::Good)) {
            self.drop_anchor(id, look);
        }
        comparison
    }

    fn drop_anchor(&mut self, id: SourceId, look: Look) {
        let segment = self.reader.line.try_segment().filter(|segment| segment.source == id);
        if let Some(segment) = segment {
            let time = segment.at(look.count).ns;
            self.anchor = Some(Anchor { reference: look.reference, time });
        }
    }

    fn counter(&self, id: SourceId) -> Option<&C> {
        self.reader.counters.get(id.index())
    }
}

/// Where the machine stood when it went to sleep; hand it back when it wakes.
#[must_use = "a machine that has slept must resume, or its clocks go wrong"]
#[derive(Debug)]
pub struct Suspended {
    monotonic: Ns,
}

/// Is it the reference that is bad? It is if it gave itself away, or if at least two counters
/// are as far from it as from one another not at all.
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
        // They ran ahead of it: it fell behind.
        true if least > 0 => Some(Fault::Slow(by(least))),
        true if most < 0 => Some(Fault::Fast(by(most))),
        _ => None,
    }
}
