//! The event device of one base (one CPU's timers), whatever its kind. It wakes the base's driver
//! thread, or the program's event loop, when the base's first timer is due.

use super::fallback::{Device, RefusedCall};
use super::futex::{Doorbell, Starter};
use super::own_loop::LoopDevice;
#[cfg(linux_platform)]
use super::timerfd::EpollDevice;
use crate::platform::clock::HostClock;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

#[derive(Debug)]
pub struct BaseDevice {
    bell: Doorbell,
    /// How long before its deadline the driver wakes, to spin, in ns. Only the driver writes this.
    margin: AtomicU64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Futex,
    #[cfg(linux_platform)]
    Timerfd(EpollDevice),
    Loop(LoopDevice),
}

impl BaseDevice {
    pub fn futex() -> BaseDevice {
        BaseDevice::new(Kind::Futex)
    }

    /// Makes a device whose driver thread `starter` starts when the device is first rung.
    pub fn futex_started_by(starter: Arc<Starter>) -> BaseDevice {
        BaseDevice { bell: Doorbell::started_by(starter), ..BaseDevice::futex() }
    }

    #[cfg(linux_platform)]
    pub fn timerfd() -> Result<BaseDevice, RefusedCall> {
        let device = EpollDevice::new()?;
        Ok(BaseDevice::new(Kind::Timerfd(device)))
    }

    pub fn own_loop(device: LoopDevice) -> BaseDevice {
        BaseDevice::new(Kind::Loop(device))
    }

    fn new(kind: Kind) -> BaseDevice {
        BaseDevice { bell: Doorbell::default(), margin: AtomicU64::new(0), kind }
    }

    /// Only the driver calls this, while the device is not armed.
    pub fn set_margin(&self, margin: Ns) {
        // Relaxed: threads that program the device do so under the lock of the base. The driver
        // takes that lock next, and so publishes the margin to them.
        self.margin.store(margin.0, Ordering::Relaxed);
    }

    fn margin(&self) -> Ns {
        Ns(self.margin.load(Ordering::Relaxed))
    }

    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub fn as_loop(&self) -> Option<&LoopDevice> {
        match &self.kind {
            Kind::Loop(device) => Some(device),
            _ => None,
        }
    }

    #[cfg(feature = "tokio-time")]
    #[inline]
    pub fn disarmed(&self) {
        if let Kind::Loop(device) = &self.kind {
            device.disarmed();
        }
    }

    pub fn name(&self) -> Option<Device> {
        match &self.kind {
            #[cfg(linux_platform)]
            Kind::Timerfd(device) if device.refused().is_none() => Some(Device::Timerfd),
            #[cfg(linux_platform)]
            Kind::Timerfd(_) => Some(Device::Futex),
            Kind::Futex => Some(Device::Futex),
            Kind::Loop(_) => None,
        }
    }

    pub fn refused(&self) -> Option<RefusedCall> {
        match &self.kind {
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => device.refused(),
            _ => None,
        }
    }

    /// Programs the device, under the lock of the base. Returns what the caller must do afterwards.
    pub fn program(&self, clock: &HostClock, cpu: CpuId, at: Ns) -> Rearm {
        match &self.kind {
            Kind::Futex => self.bell.set(at),
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => {
                let margin = self.margin();
                let wake_at = if margin == Ns::ZERO || at == Ns::NEVER {
                    at
                } else {
                    // While the driver spins before the deadline, it checks the bell, not the
                    // timerfd: set both.
                    self.bell.set(at);
                    at.since(margin)
                };
                if device.set(clock.to_system(wake_at)) {
                    return Rearm::Keep;
                }
                self.bell.set(at);
            }
            Kind::Loop(device) => {
                if device.set(at, clock) {
                    return Rearm::Keep;
                }
            }
        }
        Rearm::Kick(cpu)
    }

    /// Wakes the driver or event loop if it must check the deadline again. The caller holds no
    /// lock.
    pub fn ring(&self) {
        match &self.kind {
            Kind::Futex => self.bell.ring(),
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => {
                self.bell.ring();
                device.call();
            }
            Kind::Loop(device) => {
                if device.ring() {
                    self.bell.wakes.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    pub fn ring_to_end(&self, clock: &HostClock, cpu: CpuId) {
        match &self.kind {
            Kind::Loop(_) => {
                // The result does not matter: `ring` is called below in any case.
                let _ = self.program(clock, cpu, Ns::ZERO);
            }
            _ => self.bell.set(Ns::ZERO),
        }
        self.ring();
    }

    pub fn quiet(&self) {
        match &self.kind {
            Kind::Loop(device) => device.quiet(),
            _ => self.bell.quiet(),
        }
    }

    /// Sleeps until the deadline of the device, but no longer than until `limit`, and spins for the
    /// last part, the margin. Returns early if the deadline changes or `stop` is set. Only driver
    /// threads call this.
    pub fn sleep(&self, clock: &HostClock, limit: Ns, stop: &AtomicBool, waking: &mut Waking) {
        let margin = self.margin();
        let sleep_from = waking.spins().then(|| (clock.now(), self.bell.rings()));
        match &self.kind {
            #[cfg(linux_platform)]
            Kind::Timerfd(device) if device.refused().is_none() => {
                self.bell.sleeps.fetch_add(1, Ordering::Relaxed);
                let left = limit - clock.now();
                device.wait((limit != Ns::NEVER).then_some(left));
            }
            _ if sleep_from.is_some_and(|(at, _)| self.bell.is_near(margin, at)) => {}
            _ => self.bell.sleep(clock, margin, limit, stop),
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
        match &self.kind {
            Kind::Futex => 0,
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => device.calls(),
            Kind::Loop(device) => device.calls(),
        }
    }
}
