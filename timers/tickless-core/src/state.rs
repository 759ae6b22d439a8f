//! A timer's state in one atomic word.
//!
//! The transitions, and what a thread needs to make each (a "base" is one CPU's timers, with the
//! lock that guards them):
//!
//! | from | to | by | requires |
//! |---|---|---|---|
//! | fresh | migrating | first start | compare-and-swap |
//! | fresh | idle | first start by the timer's creator | exclusive access |
//! | idle | pending | start | lock of its base |
//! | pending | pending | rearm, reduce; the next pass, if it is late | lock of its base |
//! | pending | unchanged | push-out of a coarse timer | nothing: see `link::push_out` |
//! | pending | idle | cancel | lock of its base |
//! | pending | idle | expiry, after the base's `running` names the timer | lock of its base |
//! | idle, pending | migrating | start on another base | lock of the old base |
//! | migrating | pending | the same start | lock of the new base |
//! | fresh | shut | shutdown | compare-and-swap |
//! | any but migrating | shut | shutdown; the timer is never armed again (X5) | lock of its base |
//! | idle, pending | idle, being cancelled | cancel that waits for a callback | lock of its base |
//!
//! `bases::decide` has the decisions that lead to these transitions.
//!
//! The word names a base, whose lock guards the timer. A thread that has taken that lock reads the
//! word again: if the word still names this base, the word does not change until the thread
//! unlocks. There is no "running" state: once a callback has started, its timer has possibly been
//! freed. So the *base* records the timer that it runs, by an address that is compared and never
//! dereferenced.
//!
//! A pending precise (high-resolution) timer is late if it was armed for a time that the last pass
//! of the base's handler had already covered. It waits outside the queue for the next pass.
//!
//! While cancellers wait for the callback of a timer, the timer is not armed: an attempt to arm it
//! counts as an arming that was cancelled at once, so that a callback which rearms its timer cannot
//! keep its canceller waiting (X3). The word counts the waiting cancellers. A canceller that gives
//! up decrements the count; when it reaches zero the timer can be armed again. The count only has
//! an effect while the base runs the timer.
//!
//! The generation counts armings. A thread that does not hold the lock can tell by it whether the
//! timer has been armed since the thread last read the word.

use crate::rearm::Urgency;
use crate::time::CpuId;

/// A timer's state, decoded from its atomic word. The type of the atomic is the platform's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life(u64);

/// The bits of the state, of which at most one is set. If none is set, the timer is idle.
const STATE: u64 = PENDING | MIGRATING;
const IDLE: u64 = 0;
const PENDING: u64 = 1;
const MIGRATING: u64 = 2;
const SHUT: u64 = 1 << 2;
const LATE: u64 = 1 << 3;
const IN_HANDLER: u64 = 1 << 4;
const REFUSED: u64 = 1 << 5;
const LAZY: u64 = 1 << 6;
/// The number of cancellers that wait for the callback. If all bits are set, there are too many to
/// count: then the number does not change until the timer is armed again.
const CANCELLERS: u64 = 0xff << 8;
const CANCELLER: u64 = 1 << 8;
const BASE_AT: u32 = 16;
const BASE: u64 = 0xffff << BASE_AT;
/// The level of a pending coarse timer in the wheel, and whether it is deferrable: see `Held`.
const HELD_AT: u32 = 32;
const HELD: u64 = 0b1_1111 << HELD_AT;
const GENERATION_AT: u32 = 37;

impl Life {
    /// A timer that was never armed and belongs to no base.
    pub const FRESH: Life = Life(BASE | IDLE);

    /// Decodes the atomic word.
    pub const fn from_word(word: u64) -> Life {
        Life(word)
    }

    /// Encodes the atomic word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The base whose lock guards the timer; `None` before the first arming.
    pub const fn base(self) -> Option<CpuId> {
        let base = (self.0 & BASE) >> BASE_AT;
        if base == 0xffff { None } else { Some(CpuId(base as u16)) }
    }

    /// Returns whether the timer belongs to this base, is idle, and can be armed: it is not shut
    /// down, and not being cancelled.
    #[inline]
    pub(crate) const fn is_idle_at(self, base: CpuId) -> bool {
        self.0 & (BASE | STATE | SHUT | CANCELLERS) == (base.0 as u64) << BASE_AT
    }

    /// Returns whether the timer is armed.
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Returns whether the timer is being moved from one base to another.
    pub const fn is_migrating(self) -> bool {
        self.0 & MIGRATING != 0
    }

    /// Returns whether the timer was shut down.
    pub const fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }

    /// The state after the timer is armed: pending, with the next generation.
    #[must_use]
    pub const fn armed(self) -> Life {
        let generation = (self.0 >> GENERATION_AT).wrapping_add(1) << GENERATION_AT;
        let rest = !(STATE | LATE | CANCELLERS | REFUSED | HELD) & ((1 << GENERATION_AT) - 1);
        Life(self.0 & rest | PENDING | generation)
    }

    /// Records the timer's level in the wheel, and whether it is deferrable: see [`Held`].
    #[must_use]
    #[inline]
    pub(crate) const fn held(self, held: Held) -> Life {
        Life(self.0 & !HELD | (held.0 as u64) << HELD_AT)
    }

    /// Returns whether the timer is pending, and deferrable if and only if `held` is.
    #[inline]
    pub(crate) const fn is_pending_as(self, held: Held) -> bool {
        let deferrable = (Held::DEFERRABLE as u64) << HELD_AT;
        self.0 & (PENDING | deferrable) == PENDING | (held.0 as u64) << HELD_AT & deferrable
    }

    #[inline]
    pub(crate) const fn held_as(self) -> Held {
        Held((self.0 >> HELD_AT) as u8 & Held::ALL)
    }

    /// Records whether a pending precise timer is in the queue or waits for the next pass.
    #[must_use]
    pub(crate) const fn on(self, lane: Lane) -> Life {
        match lane {
            Lane::Queued => Life(self.0 & !LATE),
            Lane::Late => Life(self.0 | LATE),
        }
    }

    pub(crate) const fn lane(self) -> Lane {
        if self.0 & LATE != 0 { Lane::Late } else { Lane::Queued }
    }

    /// Records where a precise timer's callback runs.
    #[must_use]
    pub(crate) const fn fired_in(self, place: FiresIn) -> Life {
        match place {
            FiresIn::Handler => Life(self.0 | IN_HANDLER),
            FiresIn::Thread => Life(self.0 & !IN_HANDLER),
        }
    }

    /// Where the callback of an armed precise timer runs: in the handler or in an expiry thread.
    pub(crate) const fn fires_in(self) -> FiresIn {
        if self.0 & IN_HANDLER != 0 { FiresIn::Handler } else { FiresIn::Thread }
    }

    /// Makes the timer lazy for its lifetime: the event device need not follow its changes. See
    /// [`Urgency`](crate::rearm::Urgency).
    #[must_use]
    pub(crate) const fn lazy(self) -> Life {
        Life(self.0 | LAZY)
    }

    /// The state of a timer that was never armed, with the urgency (prompt or lazy) of this one.
    #[must_use]
    pub(crate) const fn never_armed(self) -> Life {
        Life(Life::FRESH.0 | self.0 & LAZY)
    }

    /// Whether the event device must follow the timer's changes (prompt) or need not (lazy).
    #[inline]
    pub(crate) const fn urgency(self) -> Urgency {
        if self.0 & LAZY != 0 { Urgency::Lazy } else { Urgency::Prompt }
    }

    /// Counts one more canceller that waits for the callback to return.
    #[must_use]
    pub(crate) const fn with_canceller(self) -> Life {
        if self.0 & CANCELLERS == CANCELLERS { self } else { Life(self.0 + CANCELLER) }
    }

    /// Counts one canceller less, because it has given up waiting.
    #[must_use]
    pub(crate) const fn without_canceller(self) -> Life {
        let is_counted = self.0 & CANCELLERS != CANCELLERS && self.is_being_cancelled();
        if is_counted { Life(self.0 - CANCELLER) } else { self }
    }

    /// Returns whether a canceller waits for the callback, or has waited since the last arming.
    pub(crate) const fn is_being_cancelled(self) -> bool {
        self.0 & CANCELLERS != 0
    }

    /// Returns whether the timer has not been armed since it had the `earlier` state.
    pub(crate) const fn is_same_arming(self, earlier: Life) -> bool {
        self.0 >> GENERATION_AT == earlier.0 >> GENERATION_AT
    }

    /// Records that an arming was refused because the timer is being cancelled.
    #[must_use]
    pub(crate) const fn refused(self) -> Life {
        Life(self.0 | REFUSED)
    }

    /// Returns whether an arming has been refused since the timer was last armed.
    pub(crate) const fn was_refused(self) -> bool {
        self.0 & REFUSED != 0
    }

    /// Not armed.
    #[must_use]
    pub const fn idle(self) -> Life {
        Life(self.0 & !(STATE | LATE))
    }

    /// On its way to another base.
    #[must_use]
    pub const fn migrating_to(self, base: CpuId) -> Life {
        Life(
            self.0 & !(STATE | LATE | CANCELLERS | REFUSED | BASE)
                | MIGRATING
                | (base.0 as u64) << BASE_AT,
        )
    }

    /// Shut down: never armed again.
    #[must_use]
    pub const fn shut(self) -> Life {
        Life(self.0 | SHUT)
    }
}

/// Where a timer's callback runs if the bases have expiry threads. Without them, all callbacks run
/// in the event device's handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FiresIn {
    /// The callback runs in the event device's handler: at once, but it delays the base's other
    /// timers, and in a kernel all other work of its CPU. Linux calls such timers hard.
    #[default]
    Handler,
    /// The callback runs in the expiry thread, as all coarse timers' do. Linux calls them soft.
    Thread,
}

/// Where a pending precise timer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// In the queue.
    Queued,
    /// The timer is outside the queue: it was armed for a time that the handler's last pass over
    /// the queue had already covered. The next pass moves it to the queue before any timer fires.
    Late,
}

/// How a wheel holds a pending timer: on which level, and whether the timer is deferrable. Threads
/// that push the timer out (set a later deadline) read this without the wheel's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held(u8);

impl Held {
    const ALL: u8 = 0b1_1111;
    const DEFERRABLE: u8 = 1;

    /// Decodes the five lowest bits: the lowest is set for a deferrable timer, the next four are
    /// the level. Ignores the other bits.
    #[inline]
    pub const fn from_bits(bits: u64) -> Held {
        Held(bits as u8 & Held::ALL)
    }

    /// The level, below 16.
    #[inline]
    pub const fn level(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Returns whether the timer is deferrable: no event is programmed for it, and it fires with
    /// the first event after it is due.
    #[inline]
    pub const fn is_deferrable(self) -> bool {
        self.0 & Held::DEFERRABLE != 0
    }
}

/// Where on its base a timer is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingIn {
    /// On a level of the wheel.
    Level(u8),
    /// The timer is in the wheel, on the list of timers that are due and have not fired yet.
    Due,
    /// The timer is in the queue of the precise timers whose callbacks run in this place.
    Queue(FiresIn),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_change_their_own_bits_only() {
        let life = Life::FRESH;
        assert_eq!((life.base(), life.is_pending(), life.is_shut()), (None, false, false));
        let life = life.migrating_to(CpuId(479));
        assert!(life.is_migrating() && !life.is_pending());
        let life = life.idle().armed();
        assert_eq!((life.base(), life.is_pending()), (Some(CpuId(479)), true));
        assert_ne!(life, life.armed(), "each arming has its own generation");
        assert!(life.shut().armed().is_shut(), "a shutdown is permanent");
        let lazy = Life::FRESH.lazy().migrating_to(CpuId(1)).idle().armed().idle();
        assert_eq!((lazy.urgency(), life.urgency()), (Urgency::Lazy, Urgency::Prompt));
        assert_eq!(life.shut().idle().base(), Some(CpuId(479)));
    }

    /// Goal: a canceller that gives up reduces the count by 1; a count at its maximum stays there.
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
    fn generations_wrap_without_changing_other_bits() {
        let last = Life::from_word(u64::MAX << GENERATION_AT | 3 << BASE_AT);
        let next = last.armed();
        assert_eq!(
            (next.base(), next.is_pending(), next.word() >> HELD_AT),
            (Some(CpuId(3)), true, 0)
        );
    }
}
