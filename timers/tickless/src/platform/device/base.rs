//! The event device of one base (one CPU's timers), whatever its kind. It wakes the base's driver
//! thread, or the program's event loop, when the base's first timer is due.

use super::futex::{Doorbell, Starter};
use super::own_loop::LoopDevice;
use crate::platform::clock::HostClock;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

#[derive(Debug)]
pub struct BaseDevice {
    bell: Doorbell,
    /// The device of a base that the program's loop drives; `None` for a driver thread, which waits
    /// on a futex.
    own_loop: Option<LoopDevice>,
}

impl BaseDevice {
    pub fn futex() -> BaseDevice {
        BaseDevice { bell: Doorbell::default(), own_loop: None }
    }

    /// Makes a device for a driver thread that `starter` starts when the device is first rung.
    pub fn futex_started_by(starter: Arc<Starter>) -> BaseDevice {
        BaseDevice { bell: Doorbell::started_by(starter), ..BaseDevice::futex() }
    }

    pub fn own_loop(device: LoopDevice) -> BaseDevice {
        BaseDevice { own_loop: Some(device), ..BaseDevice::futex() }
    }

    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub fn as_loop(&self) -> Option<&LoopDevice> {
        self.own_loop.as_ref()
    }

    /// Programs the device. The caller holds the base's lock, and then does what this returns.
    pub fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        match &self.own_loop {
            Some(device) if device.set(at) => return Rearm::Keep,
            Some(_) => {}
            None => self.bell.set(at),
        }
        Rearm::Kick(cpu)
    }

    /// Wakes the driver or event loop if it must check its deadline. The caller holds no lock.
    pub fn ring(&self) {
        match &self.own_loop {
            None => self.bell.ring(),
            Some(device) => {
                if device.ring() {
                    self.bell.wakes.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Wakes the driver, so that it sees that it must end.
    pub fn ring_to_end(&self, cpu: CpuId) {
        // The result does not matter: `ring` is called below in any case.
        let _ = self.program(cpu, Ns::ZERO);
        self.ring();
    }

    pub fn quiet(&self) {
        match &self.own_loop {
            Some(device) => device.quiet(),
            None => self.bell.quiet(),
        }
    }

    /// Sleeps until the deadline of the device, but no longer than until `limit`, and spins for the
    /// last part, the margin. Returns early if the deadline changes or `stop` is set. Only driver
    /// threads call this.
    pub fn sleep(
        &self,
        clock: &HostClock,
        margin: Ns,
        limit: Ns,
        stop: &AtomicBool,
        waking: &mut Waking,
    ) {
        let sleep_from = waking.spins().then(|| (clock.now(), self.bell.rings()));
        if !sleep_from.is_some_and(|(at, _)| self.bell.is_near(margin, at)) {
            self.bell.sleep(margin, limit, stop);
        }
        if let Some((at, seen)) = sleep_from {
            if self.bell.rings() == seen {
                self.bell.note_woken(clock, margin, at, waking);
            }
            if margin != Ns::ZERO {
                self.bell.spin(clock, margin, stop, waking);
            }
        }
    }

    pub fn calls(&self) -> u64 {
        self.own_loop.as_ref().map_or(0, LoopDevice::calls)
    }
}
