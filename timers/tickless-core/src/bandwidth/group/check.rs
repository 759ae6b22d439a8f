//! A consistency check that walks the whole group, for tests.

use super::{Group, Member};
use crate::invariant::BrokenInvariant;

impl Group {
    /// Checks the group's consistency in O(members).
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        let signed = |amount: u128| i128::try_from(amount).unwrap_or(i128::MAX);
        let refilled = signed(self.counts.refilled);
        let found = signed(self.counts.used) + signed(self.counts.expired) + self.held();
        if refilled != found {
            return Err(BrokenInvariant("bandwidth group: an amount is not accounted for (P6)"));
        }
        let lent: i128 = self.members.iter().map(|slot| slot.balance).sum();
        if lent != self.lent {
            return Err(BrokenInvariant("bandwidth group: the sum of the balances is wrong"));
        }
        // If the pool is empty, amounts given back to members can make up more than the capacity.
        if self.pool > 0 && self.held() > self.capacity() {
            return Err(BrokenInvariant("bandwidth group: it holds more than its capacity"));
        }
        let waits = |slot: &&super::Slot| matches!(slot.state, Member::Waiting { .. });
        let found = self.members.iter().filter(waits).count();
        if found != self.waiting() {
            return Err(BrokenInvariant("bandwidth group: the number of waiting members is wrong"));
        }
        if self.stale > self.waiting() {
            return Err(BrokenInvariant("bandwidth group: most members in the queue have left"));
        }
        let has_enough = |slot: &super::Slot| match slot.state {
            Member::Waiting { want, .. } => slot.balance >= i128::from(want),
            Member::Free | Member::Running => false,
        };
        if self.members.iter().any(has_enough) {
            return Err(BrokenInvariant("bandwidth group: a member waits in vain"));
        }
        Ok(())
    }
}
