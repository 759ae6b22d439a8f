//! What every period brings, and what becomes of a period that cannot be kept.

use super::Group;
use crate::bandwidth::period::{STRETCH_MAX, pass_refills};
use crate::time::Ns;

/// After how many refills in a row that missed a period it is stretched.
const LATE_MAX: u32 = 3;

/// After how many refills in time a stretched period is tried at half its length.
const KEPT_MIN: u32 = 64;

/// What a refill did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refill {
    /// How many periods it was for: each more than one was missed.
    pub periods: u64,
    /// When the next one is due.
    pub next: Ns,
    /// From there, how long until the one after.
    pub period: Ns,
}

impl Group {
    /// The period as it is now, stretched or not.
    pub fn period(&self) -> Ns {
        Ns(self.settings.period.0 << self.stretch)
    }

    /// When the next refill is due.
    pub fn next_refill(&self) -> Ns {
        self.next
    }

    /// Would a refill change nothing? Then there need be none until somebody charges or asks.
    pub fn is_idle(&self) -> bool {
        self.held() >= self.capacity() && self.waiting() == 0
    }

    /// Brings what the periods up to `now` are worth; `None` if none has passed. Call it on the
    /// periodic timer, and whenever somebody asks while the timer is stopped. Afterwards let go
    /// who may go.
    pub fn refill(&mut self, now: Ns) -> Option<Refill> {
        if now < self.next {
            return None;
        }
        // At rest it has no timer that could have missed a period.
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

    /// The quota of the period as it is now.
    fn quota(&self) -> u64 {
        self.settings.quota << self.stretch
    }

    /// The most that may be held in the period as it is now.
    pub(super) fn capacity(&self) -> i128 {
        i128::from(self.quota()) + i128::from(self.settings.extra)
    }

    /// Puts into the pool what fits.
    fn bring(&mut self, amount: u128) {
        let room = (self.capacity() - self.held()).max(0).unsigned_abs();
        let fits = amount.min(room);
        self.counts.refilled += amount;
        self.counts.expired += amount - fits;
        // It fits the room, which is far below the range.
        self.pool += fits as i128;
    }

    /// Was the period kept? If not for long, it is stretched; if it is for long, relaxed.
    fn judge(&mut self, periods: u64) {
        if periods > 1 {
            self.late_in_row += 1;
            self.kept_in_row = 0;
        } else {
            self.late_in_row = 0;
            self.kept_in_row += 1;
        }
        if self.late_in_row >= LATE_MAX && self.stretch < STRETCH_MAX {
            // The next refill moves by the difference, so that a whole new period lies before it.
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
