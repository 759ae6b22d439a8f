//! A bandwidth group: its pool, the balances of its members, and how members ask for more.

mod check;
mod queue;
mod refill;

use crate::bandwidth::counts::Counts;
use crate::bandwidth::period::refilled_at;
use crate::bandwidth::permits::Permits;
use crate::bandwidth::settings::{BandwidthError, Settings};
use crate::time::Ns;
use crate::word::Word;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A group of members that share a quota.
#[derive(Debug)]
pub struct Group {
    settings: Settings,
    /// When the next refill is due.
    next: Ns,
    /// The amount that members can take. Negative if members have left the group in debt.
    pool: i128,
    /// The sum of all members' balances.
    lent: i128,
    members: Vec<Slot>,
    free: Vec<u32>,
    /// The waiting members, oldest first. Can contain members that have left the group.
    waiting: VecDeque<MemberId>,
    /// How many members in `waiting` have left.
    stale: usize,
    batch_left: u32,
    /// The time at which the next batch can be released; used once `batch_left` is 0.
    batch_at: Ns,
    /// The amount that callers could take without a lock when [`Group::open`] was last called.
    opened: u64,
    counts: Counts,
}

/// Identifies a member of a group, until the member leaves the group ([`Group::leave`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemberId {
    place: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    balance: i128,
    state: Member,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Member {
    Free,
    Running,
    Waiting { want: u64, since: Ns },
}

/// The result of [`Group::ask`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// The member can continue, and spend this amount before it asks again.
    Run(u64),
    /// The member must wait until [`Group::pop_released`] returns it.
    Wait,
}

/// Why [`Group::ask`] or [`Group::try_take`] failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskError {
    /// The amount is greater than quota and extra together, so it is never available at once.
    /// Ask for less at a time.
    NeverEnough {
        /// The largest amount that can be asked for.
        most: u64,
    },
    /// This member has left the group.
    Left,
}

impl core::fmt::Display for AskError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AskError::NeverEnough { most } => {
                write!(f, "more than {most} are never available at once; ask for less at a time")
            }
            AskError::Left => f.write_str("this member has left its group; join again"),
        }
    }
}

impl core::error::Error for AskError {}

impl Group {
    /// Makes a group with its quota in the pool. The first refill is due at `first`.
    pub fn new(settings: Settings, first: Ns) -> Result<Group, BandwidthError> {
        Group::with_pool(settings, settings.quota, first)
    }

    /// Makes a group with the amount `pool` in its pool, but at most the sum of quota and extra.
    pub fn with_pool(settings: Settings, pool: u64, first: Ns) -> Result<Group, BandwidthError> {
        settings.check()?;
        let pool = pool.min(settings.most());
        Ok(Group {
            settings,
            next: first,
            pool: i128::from(pool),
            lent: 0,
            members: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            stale: 0,
            batch_left: settings.release.batch,
            batch_at: Ns::ZERO,
            opened: 0,
            counts: Counts { refilled: u128::from(pool), ..Counts::default() },
        })
    }

    /// Returns the settings that the group was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the sum of the pool and all members' balances. Negative if debts are larger.
    pub fn held(&self) -> i128 {
        self.pool + self.lent
    }

    /// Returns the amount in the pool.
    pub fn pool(&self) -> i128 {
        self.pool
    }

    /// Adds a member with a balance of zero. Can allocate.
    pub fn join(&mut self) -> MemberId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.members.push(Slot { generation: 0, balance: 0, state: Member::Free });
            (self.members.len() - 1) as u32
        });
        let slot = &mut self.members[place as usize];
        slot.state = Member::Running;
        MemberId { place, generation: slot.generation }
    }

    /// Records that a member has used an amount, which can be more than its balance.
    pub fn charge(&mut self, id: MemberId, used: u64) {
        let Some(slot) = self.slot(id) else { return };
        slot.balance -= i128::from(used);
        self.lent -= i128::from(used);
        self.counts.used += u128::from(used);
    }

    /// Gives back to a member an amount that it was charged for and did not use. If the group then
    /// holds more than its capacity, the excess expires from the pool.
    pub fn refund(&mut self, id: MemberId, unused: u64) {
        let Some(slot) = self.slot(id) else { return };
        slot.balance += i128::from(unused);
        self.lent += i128::from(unused);
        self.counts.used -= u128::from(unused).min(self.counts.used);
        self.expire_excess();
    }

    /// Asks for the amount `want`, or 1 if `want` is 0, on behalf of a member. If the settings'
    /// slice is more than `want`, the member gets a slice. A member that must wait joins the queue;
    /// asking again while it waits changes nothing.
    pub fn ask(&mut self, id: MemberId, want: u64, now: Ns) -> Result<Grant, AskError> {
        let most = self.settings.most();
        let slot = self.slot(id).ok_or(AskError::Left)?;
        if want > most {
            return Err(AskError::NeverEnough { most });
        }
        let want = want.max(1);
        let (balance, state) = (slot.balance, slot.state);
        if matches!(state, Member::Waiting { .. }) {
            return Ok(Grant::Wait);
        }
        if balance >= i128::from(want) {
            return Ok(Grant::Run(balance as u64));
        }
        let lent = if self.waiting() == 0 { self.lend(id, want) } else { None };
        if let Some(balance) = lent {
            return Ok(Grant::Run(balance));
        }
        if let Some(slot) = self.slot(id) {
            slot.state = Member::Waiting { want, since: now };
        }
        self.waiting.push_back(id);
        self.counts.throttled += 1;
        Ok(Grant::Wait)
    }

    /// Takes `amount` from the pool and counts it as used, for a caller that is not a member.
    /// Returns `false` if the pool has less, or if members are waiting.
    pub fn try_take(&mut self, amount: u64) -> Result<bool, AskError> {
        let most = self.settings.most();
        if amount > most {
            return Err(AskError::NeverEnough { most });
        }
        let is_there = self.waiting() == 0 && self.pool >= i128::from(amount);
        if is_there {
            self.pool -= i128::from(amount);
            self.counts.used += u128::from(amount);
        }
        Ok(is_there)
    }

    /// Returns when the refills will have added enough for [`try_take`](Group::try_take) to
    /// succeed, if no member asks for more until then. Fails as `try_take` does.
    pub fn available_at(&self, amount: u64, now: Ns) -> Result<Ns, AskError> {
        let most = self.settings.most();
        if amount > most {
            return Err(AskError::NeverEnough { most });
        }
        let owed = self.members.iter().map(|slot| match slot.state {
            Member::Waiting { want, .. } => i128::from(want) - slot.balance,
            Member::Running | Member::Free => 0,
        });
        let missing = i128::from(amount) + owed.sum::<i128>() - self.pool;
        let Settings { quota, period, .. } = self.settings;
        Ok(refilled_at(missing, quota, self.next, period, now))
    }

    /// Lets callers take amounts from `permits` without the group's lock until the next refill. If
    /// a member waits, they can take nothing. The caller must call [`close`](Group::close) before
    /// it calls any other method of the group.
    pub fn open<W: Word>(&mut self, permits: &Permits<W>) {
        let is_free = self.waiting() == 0;
        // The cast is exact: the pool holds at most the capacity, which is at most `AMOUNT_MAX`.
        self.opened = if is_free { self.pool.max(0) as u64 } else { 0 };
        permits.open(self.opened, self.next);
    }

    /// Closes the permits that [`open`](Group::open) opened, and counts the amount that callers
    /// took from them as used. Returns whether they were open.
    pub fn close<W: Word>(&mut self, permits: &Permits<W>) -> bool {
        let Some(left) = permits.close() else { return false };
        let taken = self.opened - left;
        self.pool -= i128::from(taken);
        self.counts.used += u128::from(taken);
        true
    }

    /// Moves a member's balance above `keep` back to the pool. Call it when the member is about to
    /// stop working. Afterwards, call [`pop_released`](Group::pop_released): the pool perhaps has
    /// enough for waiting members.
    pub fn rest(&mut self, id: MemberId, keep: u64) {
        let Some(slot) = self.slot(id) else { return };
        let back = (slot.balance - i128::from(keep)).max(0);
        slot.balance -= back;
        self.lent -= back;
        self.pool += back;
        self.expire_excess();
    }

    /// Removes a member, which can be waiting. The pool takes over its balance or its debt.
    /// Afterwards, call [`pop_released`](Group::pop_released): it can release waiting members.
    pub fn leave(&mut self, id: MemberId) {
        let Some(slot) = self.slot(id) else { return };
        let (balance, state) = (slot.balance, slot.state);
        *slot =
            Slot { generation: slot.generation.wrapping_add(1), balance: 0, state: Member::Free };
        self.lent -= balance;
        self.pool += balance;
        self.expire_excess();
        self.free.push(id.place);
        if matches!(state, Member::Waiting { .. }) {
            self.stale += 1;
            self.sweep();
        }
    }

    /// Removes from the pool the amount by which the group exceeds its capacity after a refund.
    /// Members keep their balances.
    fn expire_excess(&mut self) {
        let over = (self.held() - self.capacity()).clamp(0, self.pool.max(0));
        self.pool -= over;
        self.counts.expired += over.unsigned_abs();
    }

    /// Moves a slice (the amount that members take at a time), or `want` if that is more, to a
    /// member, or as much of it as the pool has. Returns the member's balance if that is at least
    /// `want`.
    fn lend(&mut self, id: MemberId, want: u64) -> Option<u64> {
        let fill = i128::from(want.max(self.settings.slice));
        let pool = self.pool;
        let slot = self.slot(id)?;
        let lent = (fill - slot.balance).min(pool).max(0);
        slot.balance += lent;
        let balance = slot.balance;
        self.pool -= lent;
        self.lent += lent;
        (balance >= i128::from(want)).then_some(balance as u64)
    }

    fn slot(&mut self, id: MemberId) -> Option<&mut Slot> {
        let slot = self.members.get_mut(id.place as usize)?;
        (slot.generation == id.generation && slot.state != Member::Free).then_some(slot)
    }
}
