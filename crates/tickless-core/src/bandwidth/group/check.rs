//! A consistency check that walks the whole group, for tests.

use super::{Group, State};
use core::fmt;

/// An inconsistency in a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BandwidthFault {
    /// The refilled amount is not the sum of what was used, expired and held.
    Unaccounted {
        /// The amount that refills have added.
        refilled: i128,
        /// The sum of the used, expired and held amounts.
        found: i128,
    },
    /// The sum of the members' balances is not the recorded sum.
    Lent {
        /// The recorded sum.
        recorded: i128,
        /// The actual sum.
        found: i128,
    },
    /// The group holds more than quota and extra.
    Overfull(i128),
    /// The number of waiting members is not the length of the queue.
    Queue {
        /// The length of the queue.
        recorded: usize,
        /// The number of waiting members.
        found: usize,
    },
    /// Most members in the queue have left.
    Stale(usize),
    /// A member waits although its balance is enough.
    WaitsInVain,
}

impl fmt::Display for BandwidthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for BandwidthFault {}

impl Group {
    /// Checks the group's consistency in O(members).
    pub fn check(&self) -> Result<(), BandwidthFault> {
        let signed = |amount: u128| i128::try_from(amount).unwrap_or(i128::MAX);
        let refilled = signed(self.counts.refilled);
        let found = signed(self.counts.used) + signed(self.counts.expired) + self.held();
        if refilled != found {
            return Err(BandwidthFault::Unaccounted { refilled, found });
        }
        let lent: i128 = self.members.iter().map(|slot| slot.balance).sum();
        if lent != self.lent {
            return Err(BandwidthFault::Lent { recorded: self.lent, found: lent });
        }
        // With an empty pool the group may hold more than its capacity: members keep refunds, and
        // keep their balances when a stretched period is halved.
        if self.pool > 0 && self.held() > self.capacity() {
            return Err(BandwidthFault::Overfull(self.held()));
        }
        let waits = |slot: &&super::Slot| matches!(slot.state, State::Waiting { .. });
        let found = self.members.iter().filter(waits).count();
        if found != self.waiting() {
            return Err(BandwidthFault::Queue { recorded: self.waiting(), found });
        }
        if self.stale > self.waiting() {
            return Err(BandwidthFault::Stale(self.stale));
        }
        let has_enough = |slot: &super::Slot| match slot.state {
            State::Waiting { want, .. } => slot.balance >= i128::from(want),
            State::Free | State::Running => false,
        };
        if self.members.iter().any(has_enough) {
            return Err(BandwidthFault::WaitsInVain);
        }
        Ok(())
    }
}
