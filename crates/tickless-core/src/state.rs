//! A timer's life in one atomic word.
//!
//! | from | to | by | under |
//! |---|---|---|---|
//! | fresh | migrating | first start | compare-and-swap |
//! | fresh | idle | adoption by a base | having the timer for oneself |
//! | idle | pending | start | lock of its base |
//! | pending | pending | re-arm, reduce; the next pass begins (from late) | lock of its base |
//! | pending | the same | push-out of a coarse timer | nothing: see `link::push_out` |
//! | pending | idle | cancel | lock of its base |
//! | pending | idle | fire, after the base's `running` names the timer | lock of its base |
//! | idle, pending | migrating | start that takes it to another base | lock of the old base |
//! | migrating | pending | the same start | lock of the new base |
//! | fresh | shut | shut-down | compare-and-swap |
//! | any but migrating | shut | shut-down; never armed again (X5) | lock of its base |
//! | idle, pending | idle, being cancelled | cancel that waits for a callback | lock of its base |
//!
//! "Base" in the word is the base whose lock guards the timer. Who has taken that lock reads
//! the word again: if it has not changed, it cannot change until the lock is given back. There
//! is no "running" here: once a callback has started the timer may be gone, so the *base* says
//! which timer it runs, by an address that is compared and never followed.
//!
//! A pending precise timer may be late: armed for what the last pass over its base had already
//! seen, it waits beside the queue for the next one (`precise`).
//!
//! A timer that is being cancelled is armed by nobody for as long as its callback runs: such an
//! arming counts as made and cancelled, so that a callback which re-arms itself cannot keep its
//! canceller waiting (X3). The mark is the number of those that wait: one that gives up takes
//! itself off, and without the last the timer can be armed again. It says nothing by itself; the
//! base must also run the timer.
//!
//! The generation counts armings and tells two of them apart for whoever looks without the
//! lock.

use crate::rearm::Urgency;
use crate::time::CpuId;

/// The decoded word. The atomic itself belongs to the platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life(u64);

/// At most one of the state's bits is set.
const STATE: u64 = PENDING | MIGRATING;
const IDLE: u64 = 0;
const PENDING: u64 = 1;
const MIGRATING: u64 = 2;
const SHUT: u64 = 1 << 2;
const LATE: u64 = 1 << 3;
const IN_HANDLER: u64 = 1 << 4;
const REFUSED: u64 = 1 << 5;
const LAZY: u64 = 1 << 6;
/// How many wait for its callback. All ones: so many that nobody counts them any more.
const CANCELLERS: u64 = 0xff << 8;
const CANCELLER: u64 = 1 << 8;
const BASE_AT: u32 = 16;
const BASE: u64 = 0xffff << BASE_AT;
/// How its wheel holds it, if it is pending and coarse.
const HELD_AT: u32 = 32;
const HELD: u64 = 0b1_1111 << HELD_AT;
const GENERATION_AT: u32 = 37;

impl Life {
    /// Never armed: belongs to no base yet.
    pub const FRESH: Life = Life(BASE | IDLE);

    /// From what the atomic word held.
    pub const fn from_word(word: u64) -> Life {
        Life(word)
    }

    /// For the atomic word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The base whose lock guards the timer; `None` before the first arming.
    pub fn base(self) -> Option<CpuId> {
        let base = (self.0 & BASE) >> BASE_AT;
        if base == 0xffff { None } else { Some(CpuId(base as u16)) }
    }

    /// Is this the base whose lock guards the timer, which is not on its way to it, and is arming
    /// it there refused by nobody?
    #[inline]
    pub(crate) fn may_start_at(self, base: CpuId) -> bool {
        self.0 & (BASE | MIGRATING | SHUT | CANCELLERS) == u64::from(base.0) << BASE_AT
    }

    /// Is it armed?
    pub fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// On which base is it pending? That of no CPU if it is not.
    #[inline]
    pub(crate) fn pending_at(self) -> Option<CpuId> {
        self.is_pending().then_some(CpuId((self.0 >> BASE_AT) as u16))
    }

    /// Is it between two bases?
    pub fn is_migrating(self) -> bool {
        self.0 & MIGRATING != 0
    }

    /// Has it been shut down?
    pub fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }

    /// The same timer, armed once more.
    #[must_use]
    pub fn armed(self) -> Life {
        let generation = (self.0 >> GENERATION_AT).wrapping_add(1) << GENERATION_AT;
        let rest = !(STATE | LATE | CANCELLERS | REFUSED | HELD) & ((1 << GENERATION_AT) - 1);
        Life(self.0 & rest | PENDING | generation)
    }

    /// The same timer, held by its wheel like this: see [`Held`].
    #[must_use]
    #[inline]
    pub(crate) fn held(self, held: Held) -> Life {
        Life(self.0 & !HELD | u64::from(held.0) << HELD_AT)
    }

    /// How its wheel holds it, if it is pending and coarse.
    #[inline]
    pub(crate) fn held_as(self) -> Held {
        Held((self.0 >> HELD_AT) as u8 & Held::ALL)
    }

    /// The same timer, pending on this lane.
    #[must_use]
    pub(crate) fn on(self, lane: Lane) -> Life {
        match lane {
            Lane::Queued => Life(self.0 & !LATE),
            Lane::Late => Life(self.0 | LATE),
        }
    }

    /// Where it is, if it is pending and precise.
    pub(crate) fn lane(self) -> Lane {
        if self.0 & LATE != 0 { Lane::Late } else { Lane::Queued }
    }

    /// The same timer, if it is precise, fired by this one.
    #[must_use]
    pub(crate) fn fired_in(self, place: FiresIn) -> Life {
        match place {
            FiresIn::Handler => Life(self.0 | IN_HANDLER),
            FiresIn::Thread => Life(self.0 & !IN_HANDLER),
        }
    }

    /// Who fires it, if it is precise and has been armed.
    pub(crate) fn fires_in(self) -> FiresIn {
        if self.0 & IN_HANDLER != 0 { FiresIn::Handler } else { FiresIn::Thread }
    }

    /// The same timer, lazy for good: see [`Urgency`](crate::rearm::Urgency).
    #[must_use]
    pub(crate) fn lazy(self) -> Life {
        Life(self.0 | LAZY)
    }

    /// This timer before it was first armed: what it was made with stays with it.
    #[must_use]
    pub(crate) fn never_armed(self) -> Life {
        Life(Life::FRESH.0 | self.0 & LAZY)
    }

    /// What its device is to do for it.
    #[inline]
    pub(crate) fn urgency(self) -> Urgency {
        if self.0 & LAZY != 0 { Urgency::Lazy } else { Urgency::Prompt }
    }

    /// The same timer, with one more who waits for its callback to end.
    #[must_use]
    pub(crate) fn with_canceller(self) -> Life {
        if self.0 & CANCELLERS == CANCELLERS { self } else { Life(self.0 + CANCELLER) }
    }

    /// The same timer, after one of those that wait has given up.
    #[must_use]
    pub(crate) fn without_canceller(self) -> Life {
        let is_counted = self.0 & CANCELLERS != CANCELLERS && self.is_being_cancelled();
        if is_counted { Life(self.0 - CANCELLER) } else { self }
    }

    /// Was somebody waiting for its callback to end when it was last cancelled?
    pub(crate) fn is_being_cancelled(self) -> bool {
        self.0 & CANCELLERS != 0
    }

    /// Has it not been armed since it had this life?
    pub(crate) fn is_same_arming(self, earlier: Life) -> bool {
        self.0 >> GENERATION_AT == earlier.0 >> GENERATION_AT
    }

    /// The same timer, which somebody tried to arm while it was being cancelled.
    #[must_use]
    pub(crate) fn refused(self) -> Life {
        Life(self.0 | REFUSED)
    }

    /// Did anybody try to arm it while it was last being cancelled?
    pub(crate) fn was_refused(self) -> bool {
        self.0 & REFUSED != 0
    }

    /// The same timer, not armed.
    #[must_use]
    pub fn idle(self) -> Life {
        Life(self.0 & !(STATE | LATE))
    }

    /// The same timer, on its way to another base.
    #[must_use]
    pub fn migrating_to(self, base: CpuId) -> Life {
        Life(
            self.0 & !(STATE | LATE | CANCELLERS | REFUSED | BASE)
                | MIGRATING
                | u64::from(base.0) << BASE_AT,
        )
    }

    /// The same timer, never to be armed again.
    #[must_use]
    pub fn shut(self) -> Life {
        Life(self.0 | SHUT)
    }
}

/// Where a timer's callback runs, if expiry is deferred. Without that, everything runs
/// in the handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FiresIn {
    /// In the event device's handler: at once, and holding up everything behind it. The kernel
    /// calls such timers hard.
    #[default]
    Handler,
    /// In the expiry thread; coarse timers always do. The kernel calls such timers soft.
    Thread,
}

/// Where a pending precise timer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// In the queue.
    Queued,
    /// Armed for what the last pass had already seen: goes into the queue before the next one.
    Late,
}

/// How a wheel holds a pending timer, for those that put it off without the wheel's lock: on which
/// level, and whether it wakes anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held(u8);

impl Held {
    const ALL: u8 = 0b1_1111;

    /// From the level, below 16, in four bits, and behind it a bit for a deferrable timer. What is
    /// above these is left out.
    #[inline]
    pub fn from_bits(bits: u64) -> Held {
        Held(bits as u8 & Held::ALL)
    }

    /// The level, below 16.
    #[inline]
    pub fn level(self) -> usize {
        usize::from(self.0 >> 1)
    }

    /// Does it wake nobody?
    #[inline]
    pub fn is_deferrable(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Where on its base a timer is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingIn {
    /// On a level of the wheel.
    Level(u8),
    /// In the wheel, due, and about to be fired.
    Due,
    /// In the queue of precise timers, to be fired by this one.
    Queue(FiresIn),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life() {
        let life = Life::FRESH;
        assert_eq!((life.base(), life.is_pending(), life.is_shut()), (None, false, false));
        let life = life.migrating_to(CpuId(479));
        assert!(life.is_migrating() && !life.is_pending());
        let life = life.idle().armed();
        assert_eq!((life.base(), life.is_pending()), (Some(CpuId(479)), true));
        assert_ne!(life, life.armed(), "each arming can be told from the last");
        assert!(life.shut().armed().is_shut(), "shut for good");
        let lazy = Life::FRESH.lazy().migrating_to(CpuId(1)).idle().armed().idle();
        assert_eq!((lazy.urgency(), life.urgency()), (Urgency::Lazy, Urgency::Prompt));
        assert_eq!(life.shut().idle().base(), Some(CpuId(479)));
    }

    /// Goal: as many give up as have come, and no more; beyond what can be counted the mark stays.
    #[test]
    fn cancellers_are_counted() {
        let life = Life::FRESH.migrating_to(CpuId(1)).idle().armed().idle();
        assert_eq!(life.without_canceller(), life);
        let two = life.with_canceller().with_canceller();
        assert!(two.without_canceller().is_being_cancelled());
        assert_eq!(two.without_canceller().without_canceller(), life);
        let many = (0..1_000).fold(life, |life, _| life.with_canceller());
        assert!(many.without_canceller().is_being_cancelled());
        assert_eq!((many.base(), many.is_pending(), many.is_shut()), (life.base(), false, false));
        assert!(!many.armed().is_being_cancelled());
        assert!(many.is_same_arming(life) && !many.armed().is_same_arming(life));
    }

    #[test]
    fn generations_wrap_without_touching_the_rest() {
        let last = Life::from_word(u64::MAX << GENERATION_AT | 3 << BASE_AT);
        let next = last.armed();
        assert_eq!(
            (next.base(), next.is_pending(), next.word() >> HELD_AT),
            (Some(CpuId(3)), true, 0)
        );
    }
}
