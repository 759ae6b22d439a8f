//! The queue of waiting members, and how they are released.

use super::{Group, Member, MemberId, Slot};
use crate::time::Ns;

impl Group {
    /// Returns the number of waiting members.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.stale
    }

    /// Releases the next waiting member, after lending it the amount that it asked for. Call it
    /// until it returns `None`, and again at [`Group::next_release`].
    pub fn pop_released(&mut self, now: Ns) -> Option<MemberId> {
        if self.batch_left == 0 {
            if now < self.batch_at {
                return None;
            }
            self.batch_left = self.settings.release.batch;
        }
        let (id, want, since) = self.first_waiting()?;
        self.lend(id, want)?;
        self.waiting.pop_front();
        self.sweep();
        if let Some(slot) = self.slot(id) {
            slot.state = Member::Running;
        }
        self.counts.released += 1;
        self.counts.waited += now - since;
        self.batch_left -= 1;
        if self.batch_left == 0 {
            self.batch_at = now + self.settings.release.gap;
        }
        Some(id)
    }

    /// Returns the time of the next release, or zero if it can be now. `None` if no member waits,
    /// or the pool is empty until the next refill.
    pub fn next_release(&self) -> Option<Ns> {
        let has_more = self.waiting() > 0 && self.pool > 0;
        has_more.then_some(if self.batch_left == 0 { self.batch_at } else { Ns::ZERO })
    }

    /// Returns the first member that still waits, the amount that it wants, and since when.
    fn first_waiting(&mut self) -> Option<(MemberId, u64, Ns)> {
        loop {
            let id = *self.waiting.front()?;
            if let Some(&mut Slot { state: Member::Waiting { want, since }, .. }) = self.slot(id) {
                return Some((id, want, since));
            }
            self.waiting.pop_front();
            self.stale -= 1;
        }
    }

    /// Removes the members that have left the group from the queue, once they outnumber the members
    /// that wait. So the sweeps cost at most two steps for each member that has left.
    pub(super) fn sweep(&mut self) {
        if self.stale > self.waiting() {
            let members = &self.members;
            self.waiting.retain(|id| members[id.place as usize].generation == id.generation);
            self.stale = 0;
        }
    }
}
