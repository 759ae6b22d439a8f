//! Classes: the duration that their timers share, and the spans in which these were started.

use super::{FixedError, FixedTimeouts, SPANS};
use crate::time::Ns;
use core::time::Duration;

/// How many spans the duration is divided into that a class is created with.
const SPANS_OF_DURATION: u64 = 32;
const CLASSES_MAX: usize = 1 << 16;

/// Identifies a class of one [`FixedTimeouts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub(super) u32);

/// The state of a class.
pub(super) struct ClassState {
    /// The duration without the factor.
    after: Ns,
    factor: f64,
    /// The duration multiplied by the factor.
    pub(super) scaled: Ns,
    /// The length of its spans in nanoseconds.
    pub(super) span: u64,
    /// The first span that may have timers.
    pub(super) first: u64,
    /// The earliest start time of timers that are on the first chain but were started before its
    /// span: they had come due when the duration was increased. [`Ns::NEVER`] if there are none.
    pub(super) oldest_misplaced: Ns,
}

impl ClassState {
    fn rescale(&mut self) {
        self.scaled = Ns((self.after.0 as f64 * self.factor) as u64);
    }

    /// Returns when a span comes due: all its timers fire then unless they were restarted.
    pub(super) fn due_at(&self, span: u64) -> Ns {
        Ns((span + 1).saturating_mul(self.span)).after(self.scaled)
    }
}

impl<T> FixedTimeouts<T> {
    /// Adds a class of timers that fire the duration `after` they are started. Takes 1 KiB.
    ///
    /// # Errors
    ///
    /// [`FixedError::Full`] if there are 2^16 classes.
    pub fn add_class(&mut self, after: Duration) -> Result<Class, FixedError> {
        if self.classes.len() >= CLASSES_MAX {
            return Err(FixedError::Full);
        }
        let after = Ns::from_duration(after);
        // At least a microsecond: a program does not advance more often than that.
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

    /// Changes the duration of a class, for pending timers as well. Keeps the class's factor and the
    /// granularity that it was created with. O(1).
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchClass`] if the class belongs to other timers.
    pub fn set_after(&mut self, class: Class, after: Duration) -> Result<(), FixedError> {
        let state = self.class(class)?;
        state.after = Ns::from_duration(after);
        state.rescale();
        Ok(())
    }

    /// Multiplies the duration that a class was given by `factor`, for pending timers as well; a
    /// factor of 1 restores it. Timers that are overdue by the new duration fire with the next
    /// advance. O(1).
    ///
    /// # Errors
    ///
    /// [`FixedError::NoSuchClass`] if the class belongs to other timers, [`FixedError::NoFactor`] if
    /// the factor is negative, infinite or not a number.
    pub fn scale(&mut self, class: Class, factor: f64) -> Result<(), FixedError> {
        if !(factor >= 0.0 && factor.is_finite()) {
            return Err(FixedError::NoFactor(factor));
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

    pub(super) fn class(&mut self, class: Class) -> Result<&mut ClassState, FixedError> {
        self.classes.get_mut(class.0 as usize).ok_or(FixedError::NoSuchClass(class))
    }
}
