//! Is a group in order? Walks all of it; for tests and for who doubts.

use super::{Group, State};
use core::fmt;

/// What is wrong with a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BandwidthFault {
    /// Refilled is not used, expired and held together.
    Unaccounted {
        /// What refills have brought.
        refilled: i128,
        /// What has become of it.
        found: i128,
    },
    /// The sum of the balances is not what members are said to have.
    Lent {
        /// What they are said to have.
        said: i128,
        /// What they have.
        found: i128,
    },
    /// More is held than quota and extra.
    Overfull(i128),
    /// Members that wait are not those in line.
    Line {
        /// How many stand in line.
        said: usize,
        /// How many wait.
        found: usize,
    },
    /// Most of those in line have left.
    Stale(usize),
    /// Somebody waits who has what it waits for.
    WaitsInVain,
}

impl fmt::Display for BandwidthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for BandwidthFault {}

impl Group {
    /// Looks for faults. O(members).
    pub fn check(&self) -> Result<(), BandwidthFault> {
        let signed = |amount: u128| i128::try_from(amount).unwrap_or(i128::MAX);
        let refilled = signed(self.counts.refilled);
        let found = signed(self.counts.used) + signed(self.counts.expired) + self.held();
        if refilled != found {
            return Err(BandwidthFault::Unaccounted { refilled, found });
        }
        let lent: i128 = self.members.iter().map(|slot| slot.balance).sum();
        if lent != self.lent {
            return Err(BandwidthFault::Lent { said: self.lent, found: lent });
        }
        // What members were refunded, or had when a stretched period was relaxed, stays with them.
        if self.pool > 0 && self.held() > self.capacity() {
            return Err(BandwidthFault::Overfull(self.held()));
        }
        let waits = |slot: &&super::Slot| matches!(slot.state, State::Waiting { .. });
        let found = self.members.iter().filter(waits).count();
        if found != self.waiting() {
            return Err(BandwidthFault::Line { said: self.waiting(), found });
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
