//! Sets a base's event device to the time that [`rearm`](crate::rearm) has decided, and recovers
//! if the device loses an event.

use super::base::{Bases, Guard};
use crate::platform::{Lock, Platform};
use crate::rearm::Rearm;
use crate::time::{CpuId, Ns};

impl<P: Platform> Bases<P> {
    /// Checks another base's event device. If it should have fired more than `grace` ago, kicks its
    /// CPU, which then fires what is due, programs the device again, and counts a lost event
    /// ([`DeviceCounts::lost`](crate::rearm::DeviceCounts::lost)). Returns whether it was overdue.
    ///
    /// To bound the delay after a lost event (R13), each CPU's tick calls this for the next CPU.
    /// `grace` should be longer than the usual delay of events, so that an event that is only late
    /// is not counted as lost.
    pub fn recover_lost_event(&self, cpu: CpuId, grace: Ns) -> bool {
        let Some(base) = self.used_base(cpu) else { return false };
        let mut state = base.state.lock();
        let now = self.platform().now();
        let is_overdue = state.is_online && state.device.is_overdue(now, grace);
        drop(state);
        if is_overdue {
            self.platform().kick(cpu);
        }
        is_overdue
    }

    /// Programs a base's event device if the handler has left that to its caller
    /// ([`HandlerEnd::Defers`](crate::rearm::HandlerEnd)); does nothing otherwise. The base's own
    /// CPU calls this when it has chosen its next task, before it runs the task.
    pub fn settle_device(&self, cpu: CpuId) {
        let Some(base) = self.used_base(cpu) else { return };
        let mut state = base.state.lock();
        let (earliest, now) = (state.earliest(), self.platform().now());
        let rearm = state.device.settle(earliest, now);
        let after_unlock = self.carry_out(cpu, rearm);
        self.finish(state, after_unlock);
    }

    /// Programs the device if necessary, under the base's lock. Returns what to do after unlocking.
    #[inline]
    pub(crate) fn carry_out(&self, cpu: CpuId, rearm: Rearm) -> Rearm {
        match rearm {
            Rearm::Arm(at) => self.platform().program(cpu, at),
            rest => rest,
        }
    }

    /// Unlocks, and kicks another CPU if [`carry_out`](Bases::carry_out) returned `Rearm::Kick`.
    #[inline]
    pub(crate) fn finish(&self, state: Guard<'_, P>, after_unlock: Rearm) {
        drop(state);
        if let Rearm::Kick(cpu) = after_unlock {
            self.platform().kick(cpu);
        }
    }

    /// Unlocks like [`finish`](Bases::finish). If the base has gone offline while it fired timers,
    /// moves the remaining ones to other bases.
    pub(super) fn end_handling(&self, cpu: CpuId, state: Guard<'_, P>, after_unlock: Rearm) {
        let is_online = state.is_online;
        self.finish(state, after_unlock);
        if !is_online {
            self.evacuate(cpu);
        }
    }
}
