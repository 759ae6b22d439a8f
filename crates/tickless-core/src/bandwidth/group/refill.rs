//! What each refill adds, and how a period is stretched, that is doubled, when its timer cannot
//! keep up.

use super::Group;
use crate::bandwidth::period::{STRETCH_MAX, pass_refills};
use crate::time::Ns;

/// The period is doubled after this many consecutive refills that missed a period.
const LATE_MAX: u32 = 3;

/// A doubled period is halved after this many consecutive refills in time.
const KEPT_MIN: u32 = 64;

/// The result of a refill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refill {
    /// The number of periods whose quota this refill added. All but one of these periods had no
    /// refill of their own.
    pub periods: u64,
    /// When the next refill is due.
    pub next: Ns,
    /// The time from `next` to the refill after it.
    pub period: Ns,
}

impl Group {
    /// Returns the current period, which may be a multiple of the period in the settings.
    pub fn period(&self) -> Ns {
        Ns(self.settings.period.0 << self.stretch)
    }

    /// When the next refill is due.
    pub fn next_refill(&self) -> Ns {
        self.next
    }

    /// Returns whether a refill would change nothing. Then the refill timer may stop until a
    /// member charges or asks.
    pub fn is_idle(&self) -> bool {
        self.held() >= self.capacity() && self.waiting() == 0
    }

    /// Adds the quota of the periods that have passed until `now`; `None` if none has passed. Call
    /// it from the periodic timer, and before a member asks while that timer is stopped.
    /// Afterwards, call [`pop_released`](Group::pop_released), as after [`rest`](Group::rest).
    pub fn refill(&mut self, now: Ns) -> Option<Refill> {
        if now < self.next {
            return None;
        }
        // An idle group has no refill timer that could have missed a period.
        let had_timer = !self.is_idle();
        let period = self.period();
        let periods = pass_refills(&mut self.next, period, now);
        self.bring(u128::from(periods) * u128::from(self.quota()));
        self.counts.refills += 1;
        self.batch_left = self.settings.release.batch;
        if had_timer {
            self.counts.missed += periods - 1;
            self.judge(periods);
        }
        Some(Refill { periods, next: self.next, period: self.period() })
    }

    pub(super) fn quota(&self) -> u64 {
        self.settings.quota << self.stretch
    }

    /// The largest amount that may be held in the current period.
    pub(super) fn capacity(&self) -> i128 {
        i128::from(self.quota()) + i128::from(self.settings.extra)
    }

    /// Adds an amount to the pool, up to the capacity.
    fn bring(&mut self, amount: u128) {
        let room = (self.capacity() - self.held()).max(0).unsigned_abs();
        let fits = amount.min(room);
        self.counts.refilled += amount;
        self.counts.expired += amount - fits;
        // The cast is exact: the amount is at most `room`, which is far below the type's range.
        self.pool += fits as i128;
    }

    /// Doubles the period after several late refills, and halves it again after many in time.
    fn judge(&mut self, periods: u64) {
        if periods > 1 {
            self.late_in_row += 1;
            self.kept_in_row = 0;
        } else {
            self.late_in_row = 0;
            self.kept_in_row += 1;
        }
        if self.late_in_row >= LATE_MAX && self.stretch < STRETCH_MAX {
            // The next refill is moved to a later time by the difference between the new period and
            // the old one, so that the period before it has its new length.
            self.next = self.next.after(self.period());
            self.stretch += 1;
            self.late_in_row = 0;
            self.counts.stretched += 1;
        } else if self.kept_in_row >= KEPT_MIN && self.stretch > 0 {
            self.stretch -= 1;
            self.next = Ns(self.next.0 - self.period().0);
            self.kept_in_row = 0;
            self.counts.relaxed += 1;
            self.expire_excess();
        }
    }
}
