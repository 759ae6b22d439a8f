//! A group: what is in its pool and with its members, and how they ask for more.

mod check;
mod line;
mod refill;

use crate::bandwidth::counts::Counts;
use crate::bandwidth::permits::Permits;
use crate::bandwidth::settings::{AMOUNT_MAX, Settings, SettingsError};
use crate::time::Ns;
use crate::word::Word;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use check::BandwidthFault;
pub use refill::Refill;

/// A group of members that share a quota.
#[derive(Debug)]
pub struct Group {
    settings: Settings,
    /// How often the period is doubled at present.
    stretch: u32,
    /// When the next refill is due.
    next: Ns,
    /// What is there to be taken; below zero if members have left in debt.
    pool: i128,
    /// The sum of all members' balances.
    lent: i128,
    members: Vec<Slot>,
    free: Vec<u32>,
    /// Who waits, the longest waiting first. May name some that have left.
    waiting: VecDeque<MemberId>,
    /// How many of those have left.
    stale: usize,
    batch_left: u32,
    /// When the next batch may go, once this one is used up.
    batch_at: Ns,
    late_in_row: u32,
    kept_in_row: u32,
    /// What was in the pool when it was opened to those that take no lock.
    opened: u64,
    counts: Counts,
}

/// A member of a group; used up by [`Group::leave`], unknown afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemberId {
    place: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    balance: i128,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Running,
    Waiting { want: u64, since: Ns },
}

/// What came of asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// Go on; this much is left before asking again.
    Run(u64),
    /// Wait until [`Group::pop_released`] names this member.
    Wait,
}

/// Why asking is in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskError {
    /// More than quota and extra together: it is never there at once. Ask for less at a time.
    NeverEnough {
        /// The most that can be asked for.
        most: u64,
    },
    /// This member has left.
    Left,
}

impl core::fmt::Display for AskError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AskError::NeverEnough { most } => {
                write!(f, "more than {most} are never there at once; ask for less at a time")
            }
            AskError::Left => f.write_str("this member has left its group; join again"),
        }
    }
}

impl core::error::Error for AskError {}

impl Group {
    /// A group with its quota in the pool, whose first refill is due at `first`.
    pub fn new(settings: Settings, first: Ns) -> Result<Group, SettingsError> {
        Group::with_pool(settings, settings.quota, first)
    }

    /// The same with so much in the pool, up to what it may hold.
    pub fn with_pool(settings: Settings, pool: u64, first: Ns) -> Result<Group, SettingsError> {
        settings.check()?;
        let pool = pool.min(settings.most());
        Ok(Group {
            settings,
            stretch: 0,
            next: first,
            pool: i128::from(pool),
            lent: 0,
            members: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            stale: 0,
            batch_left: settings.release.batch,
            batch_at: Ns::ZERO,
            late_in_row: 0,
            kept_in_row: 0,
            opened: 0,
            counts: Counts { refilled: u128::from(pool), ..Counts::default() },
        })
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What has happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What is in the pool and with the members; below zero if they owe more than there is.
    pub fn held(&self) -> i128 {
        self.pool + self.lent
    }

    /// What is in the pool.
    pub fn pool(&self) -> i128 {
        self.pool
    }

    /// A new member, with nothing. May allocate.
    pub fn join(&mut self) -> MemberId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.members.push(Slot { generation: 0, balance: 0, state: State::Free });
            (self.members.len() - 1) as u32
        });
        let slot = &mut self.members[place as usize];
        slot.state = State::Running;
        MemberId { place, generation: slot.generation }
    }

    /// A member has used so much. It may be more than it had.
    pub fn charge(&mut self, id: MemberId, used: u64) {
        let Some(slot) = self.slot(id) else { return };
        slot.balance -= i128::from(used);
        self.lent -= i128::from(used);
        self.counts.used += u128::from(used);
    }

    /// A member has not used what it charged after all. What there is no room for any more
    /// expires when it comes back to the pool.
    pub fn refund(&mut self, id: MemberId, unused: u64) {
        let Some(slot) = self.slot(id) else { return };
        slot.balance += i128::from(unused);
        self.lent += i128::from(unused);
        self.counts.used -= u128::from(unused).min(self.counts.used);
        self.expire_excess();
    }

    /// A member asks for at least `want`, at least 1, and is given a slice if that is more. If
    /// it must wait it lines up; asking again while it waits changes nothing.
    pub fn ask(&mut self, id: MemberId, want: u64, now: Ns) -> Result<Grant, AskError> {
        let most = self.settings.most();
        let slot = self.slot(id).ok_or(AskError::Left)?;
        if want > most {
            return Err(AskError::NeverEnough { most });
        }
        let want = want.max(1);
        let (balance, state) = (slot.balance, slot.state);
        if matches!(state, State::Waiting { .. }) {
            return Ok(Grant::Wait);
        }
        if balance >= i128::from(want) {
            return Ok(Grant::Run(balance as u64));
        }
        if self.waiting() == 0
            && let Some(balance) = self.lend(id, want)
        {
            return Ok(Grant::Run(balance));
        }
        if let Some(slot) = self.slot(id) {
            slot.state = State::Waiting { want, since: now };
        }
        self.waiting.push_back(id);
        self.counts.throttled += 1;
        Ok(Grant::Wait)
    }

    /// Uses `amount` at once, without being a member; `false` if it is not there or others wait
    /// for it.
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

    /// Lets the pool be taken without a lock until the next refill; nothing of it while somebody
    /// waits. From then until [`close`](Group::close) nothing else may be done with the group.
    pub fn open<W: Word>(&mut self, permits: &Permits<W>) {
        let is_free = self.waiting() == 0;
        // The pool never holds more than `AMOUNT_MAX` and refunds.
        self.opened = if is_free { self.pool.clamp(0, i128::from(AMOUNT_MAX)) as u64 } else { 0 };
        permits.open(self.opened, self.next);
    }

    /// Ends what [`open`](Group::open) began: what was taken counts as used. Returns whether it
    /// was open.
    pub fn close<W: Word>(&mut self, permits: &Permits<W>) -> bool {
        let Some(left) = permits.close() else { return false };
        let taken = self.opened - left;
        self.pool -= i128::from(taken);
        self.counts.used += u128::from(taken);
        true
    }

    /// A member that is about to rest gives back what it has above `keep`. Afterwards others may
    /// be let go.
    pub fn rest(&mut self, id: MemberId, keep: u64) {
        let Some(slot) = self.slot(id) else { return };
        let back = (slot.balance - i128::from(keep)).max(0);
        slot.balance -= back;
        self.lent -= back;
        self.pool += back;
        self.expire_excess();
    }

    /// A member leaves, waiting or not: what it has goes back to the pool, or what it owes is
    /// taken from it. Afterwards others may be let go.
    pub fn leave(&mut self, id: MemberId) {
        let Some(slot) = self.slot(id) else { return };
        let (balance, state) = (slot.balance, slot.state);
        *slot =
            Slot { generation: slot.generation.wrapping_add(1), balance: 0, state: State::Free };
        self.lent -= balance;
        self.pool += balance;
        self.expire_excess();
        self.free.push(id.place);
        if matches!(state, State::Waiting { .. }) {
            self.stale += 1;
            self.sweep();
        }
    }

    /// Takes out of the pool what there is no room for, after a refund, or since half the quota
    /// has half the room; members keep what they have.
    fn expire_excess(&mut self) {
        let over = (self.held() - self.capacity()).clamp(0, self.pool.max(0));
        self.pool -= over;
        self.counts.expired += over.unsigned_abs();
    }

    /// Gives a member what the pool has, up to a slice or what it wants. What it then has, if
    /// that is enough.
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
        (slot.generation == id.generation && slot.state != State::Free).then_some(slot)
    }
}
