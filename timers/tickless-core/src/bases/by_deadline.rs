//! Coarse timers that fire exactly at their deadlines, for virtual time: see [`CoarseExpiry`].

use super::base::{BaseState, Bases};
use super::settings::CoarseExpiry;
use crate::link::{TimerRef, WheelLink, WheelRef};
use crate::platform::{Lock, Platform};
use crate::queues::wheel::Wheel;
use crate::time::{CpuId, Ns};

impl<P: Platform> Bases<P> {
    /// Returns when a base's next timer is due, like [`next_event`](Bases::next_event), but uses
    /// the deadlines of coarse timers instead of their buckets if [these are
    /// exact](super::CoarseExpiry::AtDeadline). Sorts the lists that have changed, under the lock:
    /// O(n log n) for n timers on them.
    pub fn exact_next_event(&self, cpu: CpuId) -> Ns {
        let Some(base) = self.used_base(cpu) else { return Ns::NEVER };
        let mut state = base.state.lock();
        let next = state.earliest();
        self.exact(&mut state, next)
    }

    /// Does the same for a base whose earliest event is `next`, by the buckets of coarse timers.
    #[inline]
    pub(super) fn exact(&self, state: &mut BaseState, next: Ns) -> Ns {
        let wheel = &mut state.queues.wheel;
        if self.settings().coarse == CoarseExpiry::WithBucket || !wheel.is_marked() {
            return next;
        }
        // Continue even if `next` is `NEVER`: a bucket whose end is beyond the range of `Ns` never
        // comes due, but the deadlines of its timers are possibly within the range.
        next.min(wheel.earliest_deadline(deadline_of::<P>))
    }
}

/// Moves the coarse timers whose deadlines have passed to the wheel's due list, in the order of
/// their deadlines and before their buckets come due.
#[cold]
pub(super) fn gather_by_deadline<P: Platform>(wheel: &mut Wheel, now: Ns) {
    loop {
        let by = wheel.earliest_deadline(deadline_of::<P>).min(now);
        let has_gathered = wheel.gather(by, deadline_of::<P>);
        // The last call also moves deferrable timers, which `earliest_deadline` ignores.
        if by == now {
            return;
        }
        if !has_gathered {
            wheel.gather(now, deadline_of::<P>);
            return;
        }
    }
}

/// The deadline of a pending coarse timer. The caller holds the lock of the timer's base.
fn deadline_of<P: Platform>(node: WheelRef) -> Ns {
    TimerRef::<P, WheelLink<P::Word>>::of_wheel(node).node().deadline()
}
