//! Bandwidth groups: so much in every period, and then a pause (P6).
//!
//! A group has a pool, which every period fills up by the quota. Members take slices out of the
//! pool and spend them without asking; who finds the pool empty waits. A refill lets those that
//! wait go again, the longest waiting first. It is the mechanism of the kernel's CPU bandwidth
//! control, for threads, permits, or the simulated machine: the group knows neither clock nor
//! thread, so the present is passed in, and who is to be woken is handed out.
//!
//! # Guarantees
//!
//! - Every unit is accounted for, always: `refilled = used + expired + held`, where `held` is what
//!   is in the pool and with the members. Who charges more than it has owes the difference, and
//!   pays it out of the next slice; who leaves in debt leaves the debt to the pool.
//! - At most `quota + extra` are held at any time, but for refunds that members keep. So in N
//!   periods no more is used than `(N + 1) x quota + extra` and what members owe at the end.
//! - First come, first served: whoever asks while others wait, waits behind them.
//! - After a refill members are let go in batches ([`Release`]), not as a herd, and only as many
//!   as there is quota for.
//! - A refill that comes late brings what all periods since are worth, as far as there is room.
//!   If three in a row miss a whole period, and the group was not at rest, the period cannot be
//!   kept: it is doubled, with the quota, so that the rate stays; after 64 that come in time it is
//!   halved again. Both are counted.
//! - A clock that steps back only makes a refill wait; one that steps ahead brings no more than
//!   there is room for.
//!
//! # Cost
//!
//! O(1) for everything, amortised where somebody left while waiting. Joining and waiting may
//! allocate; charging, refilling and letting go do not.

mod check;
mod permits;
mod settings;

use crate::time::Ns;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use tickless_clock::word::Word;

pub use check::BandwidthFault;
pub use permits::{Permits, Take};
use settings::STRETCH_MAX;
pub use settings::{AMOUNT_MAX, PERIOD_LIMIT, PERIOD_MIN, Release, Settings, SettingsError};

/// After how many refills in a row that missed a period it is stretched.
const LATE_MAX: u32 = 3;

/// After how many refills in time a stretched period is tried at half its length.
const KEPT_MIN: u32 = 64;

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

/// What has happened in a limiter or throttle. Amounts are permits, or nanoseconds of CPU time. A
/// *member* is a caller of a limiter, or a worker of a throttle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// What refills have brought, `expired` included. What is neither `used` nor `expired` is still
    /// there to be taken, or held by members.
    pub refilled: u128,
    /// What members have used.
    pub used: u128,
    /// What was left over at a refill and could not be kept for later.
    pub expired: u128,
    /// How often it was refilled.
    pub refills: u64,
    /// Periods that passed without a refill of their own, because one came late.
    pub missed: u64,
    /// How often a member had to wait.
    pub throttled: u64,
    /// How often a member that waited was let go on.
    pub released: u64,
    /// How long members waited until they were let go on, all together.
    pub waited: Duration,
    /// How often the period was doubled, because refills could not keep up with it.
    pub stretched: u64,
    /// How often the period was halved again afterwards.
    pub relaxed: u64,
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

/// Passes the refills that are due by `now`, the next of them included. Returns how many.
fn pass_refills(next: &mut Ns, period: Ns, now: Ns) -> u64 {
    let periods = (now.0 - next.0) / period.0 + 1;
    *next = next.after(Ns(periods.saturating_mul(period.0)));
    periods
}

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

    /// The period as it is now, stretched or not.
    pub fn period(&self) -> Ns {
        Ns(self.settings.period.0 << self.stretch)
    }

    /// When the next refill is due.
    pub fn next_refill(&self) -> Ns {
        self.next
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

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.stale
    }

    /// Would a refill change nothing? Then there need be none until somebody charges or asks.
    pub fn is_idle(&self) -> bool {
        self.held() >= self.capacity() && self.waiting() == 0
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

    /// The next member that may go, having got what it asked for. Call it until `None`, then
    /// again at [`Group::next_release`].
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
            slot.state = State::Running;
        }
        self.counts.released += 1;
        self.counts.waited += now - since;
        self.batch_left -= 1;
        if self.batch_left == 0 {
            self.batch_at = now + self.settings.release.gap;
        }
        Some(id)
    }

    /// When the next batch may go; `None` if nobody waits or there is nothing until the refill.
    pub fn next_release(&self) -> Option<Ns> {
        let has_more = self.waiting() > 0 && self.pool > 0;
        has_more.then_some(if self.batch_left == 0 { self.batch_at } else { Ns::ZERO })
    }

    /// The quota of the period as it is now.
    fn quota(&self) -> u64 {
        self.settings.quota << self.stretch
    }

    fn capacity(&self) -> i128 {
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

    fn first_waiting(&mut self) -> Option<(MemberId, u64, Ns)> {
        loop {
            let id = *self.waiting.front()?;
            if let Some(&mut Slot { state: State::Waiting { want, since }, .. }) = self.slot(id) {
                return Some((id, want, since));
            }
            self.waiting.pop_front();
            self.stale -= 1;
        }
    }

    /// Sweeps those that have left out of the line when they are the most of it: each of them
    /// pays for itself and one other.
    fn sweep(&mut self) {
        if self.stale > self.waiting() {
            let members = &self.members;
            self.waiting.retain(|id| members[id.place as usize].generation == id.generation);
            self.stale = 0;
        }
    }

    fn slot(&mut self, id: MemberId) -> Option<&mut Slot> {
        let slot = self.members.get_mut(id.place as usize)?;
        (slot.generation == id.generation && slot.state != State::Free).then_some(slot)
    }
}
