//! A base and its event device: telling it what [`rearm`](crate::rearm) has decided, and looking
//! after bases whose device does not come (R13).

use super::base::Bases;
use crate::platform::{Lock, Platform};
use crate::rearm::{Device, Rearm};
use crate::time::{CpuId, Ns};

impl<P: Platform> Bases<P> {
    /// Looks after another base: has its event device been due for longer than `grace`, and not
    /// come? Then its CPU is made to look, which fires what is due and arms the device anew, and
    /// it is counted as lost ([`DeviceCounts::lost`](crate::rearm::DeviceCounts::lost)).
    ///
    /// An event or a kick that is lost on its way loses every timer of its base until somebody
    /// looks (R13): call this for the next CPU from each CPU's tick, with more grace than events
    /// are late by themselves. Takes that base's lock for a comparison; nothing else pays for it.
    pub fn look_after(&self, cpu: CpuId, grace: Ns) -> bool {
        if cpu.index() >= self.count() {
            return false;
        }
        let mut state = self.base(cpu).state.lock();
        let now = self.platform().now();
        let is_overdue = state.is_online && state.device.is_overdue(now, grace);
        drop(state);
        if is_overdue {
            self.platform().kick(cpu);
        }
        is_overdue
    }

    /// Programs a base's event device once, after a handler that put it off
    /// ([`HandlerEnd::Defers`](crate::rearm::HandlerEnd)); nothing otherwise. For the base's own
    /// CPU, once it knows what it does next and before it does it.
    pub fn settle_device(&self, cpu: CpuId) {
        if cpu.index() >= self.count() {
            return;
        }
        let mut state = self.base(cpu).state.lock();
        let (earliest, now) = (state.earliest(), self.platform().now());
        let rearm = state.device.settle(earliest, now);
        let left = self.carry_out(cpu, &mut state.device, rearm);
        drop(state);
        self.finish(left);
    }

    /// Carries out, under the base's lock, what its device must be told.
    #[inline]
    pub(crate) fn carry_out(&self, cpu: CpuId, device: &mut Device, rearm: Rearm) -> Rearm {
        match rearm {
            Rearm::Arm(at) => match self.platform().program(cpu, at) {
                Rearm::Arm(_) => self.insist(cpu, device),
                left => left,
            },
            rest => rest,
        }
    }

    /// Tells a device that has refused a deadline another one, until it takes it (R13).
    #[cold]
    fn insist(&self, cpu: CpuId, device: &mut Device) -> Rearm {
        let mut tries = 0;
        while let Some(at) = device.refused(tries, self.platform().now()) {
            match self.platform().program(cpu, at) {
                Rearm::Arm(_) => tries += 1,
                left => return left,
            }
        }
        Rearm::Keep
    }

    /// Carries out, without the lock, what was left to be done.
    #[inline]
    pub(crate) fn finish(&self, left: Rearm) {
        if let Rearm::Kick(cpu) = left {
            self.platform().kick(cpu);
        }
    }
}
