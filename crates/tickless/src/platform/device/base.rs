//! The event device of one base, whichever it is.

use super::fallback::{Device, RefusedCall};
use super::futex::Doorbell;
use super::own_loop::LoopDevice;
#[cfg(linux_platform)]
use super::timerfd::EpollDevice;
use crate::platform::clock::HostClock;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The event device of one base.
#[derive(Debug)]
pub struct BaseDevice {
    bell: Doorbell,
    /// So long before its deadline its driver gets up, in ns. Written by the driver alone.
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
    /// A futex.
    pub fn futex() -> BaseDevice {
        BaseDevice::new(Kind::Futex)
    }

    /// A timerfd in an epoll, if the system allows that.
    #[cfg(linux_platform)]
    pub fn timerfd() -> Result<BaseDevice, RefusedCall> {
        let device = EpollDevice::new()?;
        Ok(BaseDevice::new(Kind::Timerfd(device)))
    }

    /// A loop of the program's.
    pub fn own_loop(device: LoopDevice) -> BaseDevice {
        BaseDevice::new(Kind::Loop(device))
    }

    fn new(kind: Kind) -> BaseDevice {
        BaseDevice { bell: Doorbell::default(), margin: AtomicU64::new(0), kind }
    }

    /// What is armed from now on has its driver up so long before, to spin until then. For its
    /// driver, when nothing is armed.
    pub fn set_margin(&self, margin: Ns) {
        // Relaxed: whoever arms does so under the lock of the base, which the driver takes next.
        self.margin.store(margin.0, Ordering::Relaxed);
    }

    fn margin(&self) -> Ns {
        Ns(self.margin.load(Ordering::Relaxed))
    }

    /// Where its driver sleeps, if it is a futex.
    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }

    /// The loop that it wakes, if it is one of the program's.
    pub fn as_loop(&self) -> Option<&LoopDevice> {
        match &self.kind {
            Kind::Loop(device) => Some(device),
            _ => None,
        }
    }

    /// What its driver waits in; `None` if it has none.
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

    /// Why it does not work any more as it did at first.
    pub fn refused(&self) -> Option<RefusedCall> {
        match &self.kind {
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => device.refused(),
            _ => None,
        }
    }

    /// Programs it, under its base's lock. Returns what is left to be done without.
    pub fn program(&self, clock: &HostClock, cpu: CpuId, at: Ns) -> Rearm {
        match &self.kind {
            Kind::Futex => self.bell.set(at),
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => {
                let margin = self.margin();
                let get_up = if margin == Ns::ZERO || at == Ns::NEVER {
                    at
                } else {
                    // A driver that is up and spins looks there.
                    self.bell.set(at);
                    at.since(margin)
                };
                if device.set(clock.to_system(get_up)) {
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

    /// Has whoever waits in it look again, if that is needed. Without any lock.
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
                    self.bell.count_wake();
                }
            }
        }
    }

    /// Has whoever waits in it look again, to find that everything is over.
    pub fn ring_to_end(&self, clock: &HostClock, cpu: CpuId) {
        match &self.kind {
            Kind::Loop(_) => {
                // What is left to be done follows in any case.
                let _ = self.program(clock, cpu, Ns::ZERO);
            }
            _ => self.bell.set(Ns::ZERO),
        }
        self.ring();
    }

    /// Whoever waits in it is about to look at the base: what was armed counts as never (R5).
    pub fn quiet(&self) {
        match &self.kind {
            Kind::Loop(device) => device.quiet(),
            _ => self.bell.quiet(),
        }
    }

    /// Sleeps until the deadline, or until there is another one, or until told to stop; in any
    /// case no longer than until `limit`. With a margin it spins for the last part of that. For
    /// driver threads.
    pub fn sleep(&self, clock: &HostClock, limit: Ns, stop: &AtomicBool, waking: &mut Waking) {
        let margin = self.margin();
        let lies_down = waking.spins().then(|| (clock.now(), self.bell.rings()));
        match &self.kind {
            #[cfg(linux_platform)]
            Kind::Timerfd(device) if device.refused().is_none() => {
                self.bell.count_sleep();
                let left = limit - clock.now();
                device.wait((limit != Ns::NEVER).then_some(left));
            }
            _ if lies_down.is_some_and(|(at, _)| self.bell.is_near(margin, at)) => {}
            _ => self.bell.sleep(clock, margin, limit, stop),
        }
        if let Some((at, heard)) = lies_down {
            if self.bell.rings() == heard {
                self.bell.note_woken(clock, margin, at, waking);
            }
            if margin != Ns::ZERO {
                self.bell.spin(clock, margin, stop, waking);
            }
        }
    }

    /// System calls that programmed it.
    pub fn calls(&self) -> u64 {
        match &self.kind {
            Kind::Futex => 0,
            #[cfg(linux_platform)]
            Kind::Timerfd(device) => device.calls(),
            Kind::Loop(device) => device.calls(),
        }
    }
}
