//! Classes of timers: the duration that the timers of a class share, and the spans of time in which
//! the timers were started.

use super::{FixedTimeouts, LocalError, SPANS};
use crate::time::Ns;
use core::time::Duration;

/// The duration of a class is divided into this many spans. Timers that are started within one span
/// share a chain.
const SPANS_OF_DURATION: u64 = 32;
/// The most spans that a class's duration can cover after it has grown: fewer than [`SPANS`], to
/// leave chains for timers that are started before the timers of the oldest span have fired.
const SPANS_OF_DURATION_MAX: u64 = SPANS as u64 - 8;
const CLASSES_MAX: usize = 1 << 16;

/// Identifies a class of one [`FixedTimeouts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub(super) u32);

pub(super) struct ClassState {
    created_with: Ns,
    /// The duration without the factor.
    after: Ns,
    factor: f64,
    /// The duration multiplied by the factor.
    pub(super) scaled: Ns,
    /// The length of its spans in nanoseconds.
    pub(super) span: u64,
    /// The first span that can have timers.
    pub(super) first: u64,
    /// The earliest start time of the timers that were started before the first span but are on its
    /// chain: they had come due before the duration was increased. [`Ns::NEVER`] if there are none.
    pub(super) oldest_misplaced: Ns,
}

impl ClassState {
    fn rescale(&mut self) {
        self.scaled = multiplied(self.after, self.factor);
    }

    /// Returns whether the length of the spans of start times suits the duration: short enough for
    /// timers to be late by at most a sixteenth of the duration, and long enough for the start
    /// times of all pending timers to fit into the spans that have chains.
    pub(super) fn spans_fit(&self) -> bool {
        self.span <= 2 * self.span_for_duration()
            && self.scaled.0 / self.span <= SPANS_OF_DURATION_MAX
    }

    /// If the length of the spans of start times does not suit the duration, changes it. In this
    /// case no span must have timers, and timers that are put into spans afterwards must have been
    /// started at `oldest` or later.
    pub(super) fn fit_spans(&mut self, oldest: Ns) {
        if !self.spans_fit() {
            self.span = self.span_for_duration();
            self.first = oldest.0 / self.span;
            self.oldest_misplaced = Ns::NEVER;
        }
    }

    fn span_for_duration(&self) -> u64 {
        span_for(self.created_with.max(self.scaled))
    }

    /// Returns when a span of start times comes due: all its timers fire then unless restarted.
    pub(super) fn due_at(&self, span: u64) -> Ns {
        Ns((span + 1).saturating_mul(self.span)).after(self.scaled)
    }
}

/// Returns a duration times a factor, rounded up so that no timer fires early. Uses integers, as a
/// multiplication in `f64` would be inexact for durations beyond 104 days.
fn multiplied(after: Ns, factor: f64) -> Ns {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let exponent = (factor.to_bits() >> MANTISSA_BITS) as i32;
    let mantissa = factor.to_bits() & ((1 << MANTISSA_BITS) - 1);
    // A subnormal factor has no implicit leading one bit, and its exponent counts as 1.
    let (mantissa, exponent) = match exponent {
        0 => (mantissa, 1),
        _ => (mantissa | 1 << MANTISSA_BITS, exponent),
    };
    // At most 117 bits.
    let product = u128::from(after.0) * u128::from(mantissa);
    let shift = exponent - f64::MAX_EXP + 1 - MANTISSA_BITS as i32;
    let scaled = match (shift, product) {
        (_, 0) => 0,
        (..=-128, _) => 1,
        (..0, _) => product.div_ceil(1 << -shift),
        (0..11, _) => product << shift,
        _ => u128::MAX,
    };
    Ns(u64::try_from(scaled).unwrap_or(u64::MAX))
}

/// Returns the length of the spans of start times for a duration: at least a microsecond, because
/// no program calls `advance` more often than that.
fn span_for(after: Ns) -> u64 {
    (after.0 / SPANS_OF_DURATION).max(1_000)
}

impl<T> FixedTimeouts<T> {
    /// Adds a class, whose timers fire when the duration `after` has passed since they were
    /// started. Takes 1 KiB of memory.
    ///
    /// # Errors
    ///
    /// [`LocalError::Full`] if there are 2^16 classes.
    pub fn add_class(&mut self, after: Duration) -> Result<Class, LocalError> {
        if self.classes.len() >= CLASSES_MAX {
            return Err(LocalError::Full);
        }
        let after = Ns::from_duration(after);
        self.classes.push(ClassState {
            created_with: after,
            after,
            factor: 1.0,
            scaled: after,
            span: span_for(after),
            first: 0,
            oldest_misplaced: Ns::NEVER,
        });
        self.chains.add_chains(SPANS);
        self.chains.reserve(self.table.capacity());
        Ok(Class(self.classes.len() as u32 - 1))
    }

    /// Changes the duration of a class, for pending timers as well. Keeps the class's factor. O(1);
    /// the next advance examines each pending timer of the class once if the duration has grown
    /// more than threefold, or if it shrinks after such a growth.
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchClass`] if the class belongs to another set of timers.
    pub fn set_after(&mut self, class: Class, after: Duration) -> Result<(), LocalError> {
        let state = self.class(class)?;
        state.after = Ns::from_duration(after);
        state.rescale();
        Ok(())
    }

    /// Multiplies the duration that a class was given by `factor`, for pending timers as well; 1
    /// restores the given duration. Rounds up to the nanosecond. Timers that are overdue by the new
    /// duration fire with the next advance. Costs as much as [`set_after`](Self::set_after).
    ///
    /// # Errors
    ///
    /// [`LocalError::NoSuchClass`] if the class belongs to another set of timers,
    /// [`LocalError::BadFactor`] if the factor is negative, infinite or not a number.
    pub fn scale(&mut self, class: Class, factor: f64) -> Result<(), LocalError> {
        if !(factor >= 0.0 && factor.is_finite()) {
            return Err(LocalError::BadFactor);
        }
        let state = self.class(class)?;
        state.factor = factor;
        state.rescale();
        Ok(())
    }

    /// Returns all classes, in the order in which they were added.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> + use<T> {
        (0..self.classes.len() as u32).map(Class)
    }

    pub(super) fn class(&mut self, class: Class) -> Result<&mut ClassState, LocalError> {
        self.classes.get_mut(class.0 as usize).ok_or(LocalError::NoSuchClass)
    }
}
