//! What each refill adds.

use super::Group;
use crate::bandwidth::period::pass_refills;
use crate::time::Ns;

impl Group {
    /// When the next refill is due.
    pub fn next_refill(&self) -> Ns {
        self.next
    }

    /// Returns whether a refill would change nothing. If so, the caller can stop the refill timer.
    pub fn is_idle(&self) -> bool {
        self.held() >= self.capacity() && self.waiting() == 0
    }

    /// Adds the quota of the periods that have passed until `now`. Returns the number of periods.
    /// Call it from the periodic timer, and before a member asks while that timer is stopped.
    /// Afterwards, call [`pop_released`](Group::pop_released): it can release waiting members.
    pub fn refill(&mut self, now: Ns) -> u64 {
        if now < self.next {
            return 0;
        }
        // While the group is idle its refill timer is stopped, so that no period is missed.
        let had_timer = !self.is_idle();
        let periods = pass_refills(&mut self.next, self.settings.period, now);
        self.bring(u128::from(periods) * u128::from(self.settings.quota));
        self.counts.refills += 1;
        self.batch_left = self.settings.release.batch;
        if had_timer {
            self.counts.missed += periods - 1;
        }
        periods
    }

    /// The largest amount that the group can hold.
    pub(super) fn capacity(&self) -> i128 {
        i128::from(self.settings.most())
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
}
