//! Classes: the duration of all their timers, and the spans in which these were started.

use super::{FixedError, FixedTimeouts, SPANS};
use crate::time::Ns;
use core::time::Duration;

/// Spans in the duration that a class was made with.
const SPANS_OF_DURATION: u64 = 32;
const CLASSES_MAX: usize = 1 << 16;

/// Names a class of one [`FixedTimeouts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub(super) u32);

/// What there is to know of a class.
pub(super) struct ClassState {
    /// The duration without the factor.
    after: Ns,
    factor: f64,
    /// The duration with it.
    pub(super) scaled: Ns,
    /// How long its spans are.
    pub(super) span: u64,
    /// The chains of all spans before this one are empty.
    pub(super) first: u64,
    /// The earliest stamp among timers that are in the oldest chain but older than its span: they
    /// were in line to fire when the class was stretched. [`Ns::NEVER`] if there are none.
    pub(super) oldest_misplaced: Ns,
}

impl ClassState {
    fn rescale(&mut self) {
        self.scaled = Ns((self.after.0 as f64 * self.factor) as u64);
    }

    /// When the timers of a span are looked at: all those that were not started again are due.
    pub(super) fn due_at(&self, span: u64) -> Ns {
        Ns((span + 1).saturating_mul(self.span)).after(self.scaled)
    }
}

impl<T> FixedTimeouts<T> {
    /// Adds a class of timers that fire so long `after` they are started. A class takes 1 KiB.
    ///
    /// # Errors
    ///
    /// [`FixedError::Full`] if there are 2^16 classes.
    pub fn add_class(&mut self, after: Duration) -> Result<Class, FixedError> {
        if self.classes.len() >= CLASSES_MAX {
            return Err(FixedError::Full);
        }
        let after = Ns::from_duration(after);
        // A microsecond at least: nobody advances as often as that.
        let span = (after.0 / SPANS_OF_DURATION).max(1_000);
        self.classes.push(ClassState {
            after,
            factor: 1.0,
            scaled: after,
            span,
            first: 0,
            oldest_misplaced: Ns::NEVER,
        });
        self.chains.add_chains(SPANS);
        self.chains.reserve(self.table.capacity());
        Ok(Class(self.classes.len() as u32 - 1))
    }

    /// Gives a class another duration, for timers that are pending too. It keeps its factor and
    /// the granularity that it was made with.
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchClass`] if the class is another table's.
    pub fn set_after(&mut self, class: Class, after: Duration) -> Result<(), FixedError> {
        let state = self.class(class)?;
        state.after = Ns::from_duration(after);
        state.rescale();
        Ok(())
    }

    /// Scales the duration of a class by a factor, for timers that are pending too: under 1
    /// shortens it, 1 is as it was given. What is overdue by that fires with the next advance.
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchClass`] if the class is another table's, [`FixedError::NoFactor`] if the
    /// factor is negative or no number.
    pub fn scale(&mut self, class: Class, factor: f64) -> Result<(), FixedError> {
        if !(factor >= 0.0 && factor.is_finite()) {
            return Err(FixedError::NoFactor(factor));
        }
        let state = self.class(class)?;
        state.factor = factor;
        state.rescale();
        Ok(())
    }

    /// All classes, in the order in which they were added.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> + use<T> {
        (0..self.classes.len() as u32).map(Class)
    }

    pub(super) fn class(&mut self, class: Class) -> Result<&mut ClassState, FixedError> {
        self.classes.get_mut(class.0 as usize).ok_or(FixedError::NoSuchClass(class))
    }
}
