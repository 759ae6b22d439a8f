//! A simple model of the timers under test, which decides whether they keep their promises.

use crate::fault::Fault;
use crate::timers::{Cancel, NextEvent, Order, Rounding, Timers};
use core::marker::PhantomData;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Pending {
    first: u64,
    last: u64,
    /// The timer's place in the order of firing: the tick of its deadline, then the number of its
    /// arming. `None` if the deadline had passed when the timer was armed: such a timer is allowed
    /// to fire before or after any other.
    place: Option<(u64, u64)>,
}

/// Knows what must be true of a set of timers after each operation.
#[derive(Debug)]
pub(crate) struct Judge<T> {
    pub(crate) now: u64,
    pending: BTreeMap<u32, Pending>,
    armings: u64,
    /// The timer that fired last in the current `advance`: its key and its place in the order.
    fired: Option<(u32, (u64, u64))>,
    timers: PhantomData<fn() -> T>,
}

impl<T: Timers> Judge<T> {
    pub(crate) fn new() -> Judge<T> {
        let timers = PhantomData;
        Judge { now: 0, pending: BTreeMap::new(), armings: 0, fired: None, timers }
    }

    pub(crate) fn is_pending(&self, key: u32) -> bool {
        self.pending.contains_key(&key)
    }

    pub(crate) fn count(&self) -> usize {
        self.pending.len()
    }

    /// Notes when the timer is allowed to fire, when it must, and its place in the order of firing.
    pub(crate) fn arm(&mut self, key: u32, deadline: u64) {
        let (first, last) = T::may_fire(self.now, deadline).into_inner();
        self.armings += 1;
        let tick = T::GRANULARITY.max(1);
        let due = match T::ROUNDING {
            Rounding::Up => deadline.div_ceil(tick),
            Rounding::Down => deadline / tick,
            Rounding::Nearest => deadline.saturating_add(tick / 2) / tick,
        };
        let place = (deadline > self.now).then_some((due, self.armings));
        self.pending.insert(key, Pending { first, last, place });
    }

    /// Forgets the timer. `returned`: whether the cancel claims that the timer was pending.
    #[expect(clippy::fn_params_excessive_bools, reason = "the result of the call")]
    pub(crate) fn cancel(&mut self, key: u32, returned: bool) -> Result<(), Fault> {
        let was_pending = self.pending.remove(&key).is_some();
        match T::CANCEL {
            Cancel::Reports if returned != was_pending => {
                Err(Fault::CancelResult { key, returned })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        self.fired = None;
    }

    /// Checks that a timer that fires is pending, not early, and in order.
    pub(crate) fn fire(&mut self, key: u32) -> Result<(), Fault> {
        let now = self.now;
        let Some(Pending { first, place, .. }) = self.pending.remove(&key) else {
            return Err(Fault::NotPending { key, now });
        };
        if now < first {
            return Err(Fault::Early { key, now, first });
        }
        let Some((due, armed)) = place else { return Ok(()) };
        let place = match T::ORDER {
            Order::Any => (0, 0),
            Order::Deadline => (due, 0),
            Order::DeadlineThenArming => (due, armed),
        };
        match self.fired.replace((key, place)) {
            Some((after, before)) if place < before => Err(Fault::OutOfOrder { key, after }),
            _ => Ok(()),
        }
    }

    /// Returns a timer that must have fired by now: its key, and the time by which it had to.
    pub(crate) fn overdue(&self) -> Option<(u32, u64)> {
        let first = self.most_urgent()?;
        (first.1 <= self.now).then_some(first)
    }

    /// Returns the timer that must fire first: its key, and the time by which it must.
    pub(crate) fn most_urgent(&self) -> Option<(u32, u64)> {
        self.pending.iter().map(|(&key, timer)| (key, timer.last)).min_by_key(|&(_, last)| last)
    }

    /// Checks `next_event`'s result: not after a timer must fire and, if exact, not before one can.
    pub(crate) fn next_event(&self, returned: Option<u64>) -> Result<(), Fault> {
        let first = self.pending.values().map(|timer| timer.first).min();
        if let Some((key, last)) = self.most_urgent()
            && returned.is_none_or(|returned| returned > last)
        {
            return Err(Fault::NextEventLate { key, returned, last });
        }
        match returned {
            // If a timer is allowed to fire now, then any time up to now is a correct result of
            // `next_event`.
            Some(returned)
                if T::NEXT_EVENT == NextEvent::Exact
                    && first.is_none_or(|first| returned < first && first > self.now) =>
            {
                Err(Fault::NextEventForNothing { returned, first })
            }
            _ => Ok(()),
        }
    }
}
