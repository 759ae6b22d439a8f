//! Phases: the point within its period at which a periodic timer expires.
//!
//! Timers of one period that start at the same time keep expiring together: one wakeup for all of
//! them, and all of their work at once. Only the program knows which of the two matters more, so
//! the phase is a policy. It is applied once, when a timer starts, by choosing its first expiry;
//! forwarding ([`periodic::forward`](crate::periodic::forward)) does not depend on it.
//!
//! A phase is counted from the clock's zero: a timer of period P and phase p expires at the times
//! k x P + p. So *aligned* is phase 0, and two aligned timers of 10 and 20 ms meet at every expiry
//! of the slower one, whenever each of them was started.
//!
//! # Guarantees
//!
//! - A phase is chosen once; [`PhaseSlot::first_after`] returns an expiry that has this phase, for
//!   any time.
//! - [`Phase::Spread`] puts a timer into the middle of the largest gap on the circle of its period.
//!   After n timers have been added and none removed, the largest gap is less than twice the even
//!   gap (the period divided by n), and equal to the even gap if n is a power of two. After any
//!   removals, each new timer halves the largest gap.
//! - Each period has a circle of its own, on which the place of the first timer depends on the
//!   period: a single timer of 10 ms and a single one of 20 ms do not meet at the clock's zero.
//! - Choosing and freeing a phase cost O(log n) and allocate or free tree nodes.
//!
//! # Why gaps are halved
//!
//! Without moving timers that have started, the best rule reaches a largest gap of 1.44 times the
//! even one for all n at once (de Bruijn and Erdős, "Sequences of points on a circle", 1949), but
//! it puts two timers 0.585 of a period apart, not half a period. Few timers are the usual case, in
//! which a collision costs most, so gaps are halved. Of equal gaps the one is chosen that van der
//! Corput's sequence would choose.

use crate::time::Ns;
use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use core::ops::Bound::{Excluded, Unbounded};
use core::time::Duration;

/// How a periodic timer's phase is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Phase {
    /// The timer expires at the multiples of the period on the clock: all aligned timers of one
    /// period share a wakeup.
    Aligned,
    /// The timer expires as far as possible from others of its period that have a phase policy.
    Spread,
    /// Random but repeatable: from one seed, the n-th timer of a period always gets the same phase.
    Random(u64),
    /// The timer expires this long after each multiple of the period; less than one period.
    Fixed(Duration),
}

/// An invalid period or phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PhaseError {
    /// A period of zero has no phases.
    PeriodZero,
    /// The period is longer than [`PERIOD_MAX`].
    PeriodTooLong(Duration),
    /// A fixed phase is not shorter than the timer's period.
    BeyondPeriod {
        /// The requested phase.
        phase: Duration,
        /// The period of the timer.
        period: Duration,
    },
}

/// The longest period for which a phase can be chosen: 292 years, so that a second expiry is within
/// the clock's range.
pub const PERIOD_MAX: Ns = Ns(u64::MAX / 2);

impl fmt::Display for PhaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhaseError::PeriodZero => {
                f.write_str("a period of zero has no phases; use at least 1 ns")
            }
            PhaseError::PeriodTooLong(period) => {
                write!(f, "a period of {period:?} never comes twice; use at most 292 years")
            }
            PhaseError::BeyondPeriod { phase, period } => {
                write!(f, "a phase of {phase:?} is not below its period of {period:?}")
            }
        }
    }
}

impl core::error::Error for PhaseError {}

/// A phase that a timer uses: its place among the timers of the same period. Return the slot to
/// [`Phases::leave`], because the phase of a dropped slot stays in use.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a slot that is not handed back stays taken"]
pub struct PhaseSlot {
    period: Ns,
    phase: Ns,
    turn: Turn,
}

impl PhaseSlot {
    /// Returns the period of its circle.
    pub fn period(&self) -> Ns {
        self.period
    }

    /// Returns how long after each multiple of the period the timer expires; less than a period.
    pub fn phase(&self) -> Ns {
        self.phase
    }

    /// Returns the first expiry after `now`, at most a period later; [`Ns::NEVER`] at the end of
    /// the clock's range.
    pub fn first_after(&self, now: Ns) -> Ns {
        let multiple = now.0 - now.0 % self.period.0;
        let this_round = Ns(multiple).after(self.phase);
        if this_round > now { this_round } else { this_round.after(self.period) }
    }
}

/// The phases in use, for all periods. The bases of all CPUs share one such set, because timers of
/// equal periods are spread across all CPUs together.
#[derive(Debug, Default)]
pub struct Phases {
    circles: BTreeMap<Ns, Circle>,
}

impl Phases {
    /// Returns a set in which no phase is in use.
    pub const fn new() -> Phases {
        Phases { circles: BTreeMap::new() }
    }

    /// Chooses the phase of a timer that starts, and marks it as in use. O(log n), can allocate.
    ///
    /// # Errors
    ///
    /// [`PhaseError`] if the period is zero or too long, or a fixed phase is not below it.
    pub fn take(&mut self, period: Ns, phase: Phase) -> Result<PhaseSlot, PhaseError> {
        if period == Ns::ZERO {
            return Err(PhaseError::PeriodZero);
        }
        if period > PERIOD_MAX {
            return Err(PhaseError::PeriodTooLong(period.to_duration()));
        }
        match phase {
            Phase::Fixed(phase) if phase >= period.to_duration() => {
                return Err(PhaseError::BeyondPeriod { phase, period: period.to_duration() });
            }
            _ => {}
        }
        let circle = self.circles.entry(period).or_insert_with(|| Circle::new(period));
        let turn = circle.choose(phase, period);
        circle.occupy(turn);
        // A fixed phase is used as it is: converted to a turn (a fraction of the period) and back,
        // it could be rounded.
        let phase = match phase {
            Phase::Fixed(phase) => Ns::from_duration(phase),
            _ => turn.of_period(period),
        };
        Ok(PhaseSlot { period, phase, turn })
    }

    /// Frees the phase of a timer that will not be started again. O(log n), can free memory.
    pub fn leave(&mut self, slot: PhaseSlot) {
        let Some(circle) = self.circles.get_mut(&slot.period) else { return };
        circle.vacate(slot.turn);
        if circle.is_empty() {
            self.circles.remove(&slot.period);
        }
    }

    /// Returns how the timers of a period are spread; `None` if there are none. O(log n).
    pub fn view(&self, period: Ns) -> Option<CircleView> {
        let circle = self.circles.get(&period)?;
        let (span, _) = *circle.gaps.last()?;
        let gap = Ns(((u128::from(span) + 1) * u128::from(period.0)).div_ceil(1 << 64) as u64);
        Some(CircleView { timers: circle.timers, gap_max: gap.to_duration() })
    }
}

/// How the timers of one period are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CircleView {
    /// The number of timers.
    pub timers: usize,
    /// The longest time between two expiries of these timers, rounded up to a nanosecond.
    pub gap_max: Duration,
}

/// A place in a period, as a fraction of a full turn in units of 2^-64: a full turn can be halved
/// exactly 64 times. With numbers of nanoseconds, halves would be rounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn(u64);

impl Turn {
    fn from_phase(phase: Ns, period: Ns) -> Turn {
        Turn(((u128::from(phase.0) << 64) / u128::from(period.0)) as u64)
    }

    fn of_period(self, period: Ns) -> Ns {
        Ns(((u128::from(self.0) * u128::from(period.0)) >> 64) as u64)
    }
}

/// The timers of one period. Each has a place on a circle, which is its phase within the period.
#[derive(Debug)]
struct Circle {
    /// The phase of a timer with `Phase::Spread` on a circle without other timers.
    origin: Turn,
    /// The phases in use, with the number of timers at each.
    taken: BTreeMap<Turn, usize>,
    /// The gaps between neighbouring phases, each as a pair: its size minus one, so that a full
    /// turn fits in 64 bits, and its rank among gaps of that size, from which its start is
    /// computed. The last gap in the set is divided next.
    gaps: BTreeSet<(u64, u64)>,
    timers: usize,
    /// The number of timers ever added. Each random phase depends on it, so that they differ.
    arrivals: u64,
}

impl Circle {
    fn new(period: Ns) -> Circle {
        // Multiplication by the golden ratio scatters the origins over the circle: those for
        // periods of 10, 20 and 40 ms are as unrelated as those for 97 and 103 ms.
        let origin = Turn(period.0.wrapping_mul(GOLDEN));
        let (taken, gaps) = (BTreeMap::new(), BTreeSet::new());
        Circle { origin, taken, gaps, timers: 0, arrivals: 0 }
    }

    fn is_empty(&self) -> bool {
        self.timers == 0
    }

    /// Chooses a position on the circle. With `Spread` it is the middle of the largest gap.
    fn choose(&self, phase: Phase, period: Ns) -> Turn {
        match phase {
            Phase::Aligned => Turn(0),
            Phase::Fixed(phase) => Turn::from_phase(Ns::from_duration(phase), period),
            Phase::Random(seed) => Turn(scatter(seed ^ scatter(self.arrivals))),
            Phase::Spread => match self.gaps.last() {
                None => self.origin,
                Some(&(span, rank)) => {
                    let half = span / 2 + span % 2;
                    Turn(self.start(rank).0.wrapping_add(half))
                }
            },
        }
    }

    /// Adds a timer at a position, which splits the gap that it is in.
    fn occupy(&mut self, at: Turn) {
        self.timers += 1;
        self.arrivals += 1;
        let here = self.taken.entry(at).or_insert(0);
        *here += 1;
        if *here == 1 {
            let (before, behind) = self.neighbours(at);
            if before != at {
                self.gaps.remove(&self.gap(before, behind));
                self.gaps.insert(self.gap(before, at));
            }
            self.gaps.insert(self.gap(at, behind));
        }
    }

    /// Removes a timer from a position. After the last one, the gaps on both sides become one.
    fn vacate(&mut self, at: Turn) {
        let Some(here) = self.taken.get_mut(&at) else { return };
        self.timers -= 1;
        *here -= 1;
        if *here == 0 {
            let (before, behind) = self.neighbours(at);
            self.taken.remove(&at);
            self.gaps.remove(&self.gap(at, behind));
            if before != at {
                self.gaps.remove(&self.gap(before, at));
                self.gaps.insert(self.gap(before, behind));
            }
        }
    }

    /// Returns the phases in use before and after `at` on the circle of the period; `at` itself for
    /// both if it is the only one.
    fn neighbours(&self, at: Turn) -> (Turn, Turn) {
        let before = self.taken.range(..at).next_back().or_else(|| self.taken.last_key_value());
        let behind = self.taken.range((Excluded(at), Unbounded)).next();
        let behind = behind.or_else(|| self.taken.first_key_value());
        (before.map_or(at, |(&turn, _)| turn), behind.map_or(at, |(&turn, _)| turn))
    }

    /// Returns the gap from one phase in use to the next, as an entry of `gaps`. From a phase to
    /// itself it is a full turn.
    fn gap(&self, from: Turn, to: Turn) -> (u64, u64) {
        (to.0.wrapping_sub(from.0).wrapping_sub(1), self.rank(from))
    }

    /// Returns the rank, among gaps of one size, of the gap that begins at `start`: the gap of the
    /// highest rank is used first. That is the gap whose start, with its bits reversed, is the
    /// smallest, so that gaps are used in the order of van der Corput's sequence.
    fn rank(&self, start: Turn) -> u64 {
        !start.0.wrapping_sub(self.origin.0).reverse_bits()
    }

    fn start(&self, rank: u64) -> Turn {
        Turn((!rank).reverse_bits().wrapping_add(self.origin.0))
    }
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles `seed` with one step of SplitMix64 (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
fn scatter(seed: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
