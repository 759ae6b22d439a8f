//! What wakes a base when its next timer is due.
//!
//! | file | device | a write costs | waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a call if its driver sleeps past it | a driver |
//! | `timerfd` | a timerfd in an epoll | one call, and nobody wakes | a driver |
//! | `own_loop` | a timerfd, or a callback | one call, or what the callback does | the program |
//!
//! The core decides what a device is told (`tickless_core::rearm`), under the lock of its base;
//! here is how. Every base has a doorbell, whatever its device is: a timerfd that the system
//! takes away leaves its driver there, with every timer.

pub mod futex;
pub mod own_loop;
pub mod timerfd;

use super::Host;
use super::clock::HostClock;
use core::fmt;
use core::sync::atomic::AtomicBool;
use futex::Doorbell;
use own_loop::LoopDevice;
use rustix::io::Errno;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};
use timerfd::EpollDevice;

/// What driver threads wait in; see [`Builder::device`](crate::Builder::device).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Device {
    /// A futex with a timeout: three file descriptors fewer, and no system call for a deadline
    /// that is not the earliest or comes while the driver is awake. An earlier deadline wakes a
    /// sleeping driver, which looks and sleeps again.
    #[default]
    Futex,
    /// A timerfd in an epoll: each write of the device is a system call of the thread that arms,
    /// and the driver sleeps on. Three file descriptors for each base.
    Timerfd,
}

/// Why timers do not run on the event device that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceFallback {
    /// The system call that was refused.
    pub call: &'static str,
    /// What the system said: an `errno`.
    pub errno: i32,
}

impl DeviceFallback {
    pub(crate) fn new(call: &'static str, errno: Errno) -> DeviceFallback {
        DeviceFallback { call, errno: errno.raw_os_error() }
    }
}

impl fmt::Display for DeviceFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, errno } = *self;
        let said = std::io::Error::from_raw_os_error(errno);
        write!(
            f,
            "the system refused {call} ({said}), so timers wait on a futex; let the seccomp \
             filter of this process allow it, or raise its limit on open files"
        )
    }
}

/// The event device of one base.
#[derive(Debug)]
pub struct BaseDevice {
    bell: Doorbell,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Futex,
    Timerfd(EpollDevice),
    Loop(LoopDevice),
}

impl BaseDevice {
    /// A futex.
    pub fn futex() -> BaseDevice {
        BaseDevice { bell: Doorbell::default(), kind: Kind::Futex }
    }

    /// A timerfd in an epoll, if the system allows that.
    pub fn timerfd() -> Result<BaseDevice, DeviceFallback> {
        let device = EpollDevice::new()?;
        Ok(BaseDevice { bell: Doorbell::default(), kind: Kind::Timerfd(device) })
    }

    /// A loop of the program's.
    pub fn own_loop(device: LoopDevice) -> BaseDevice {
        BaseDevice { bell: Doorbell::default(), kind: Kind::Loop(device) }
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
            Kind::Timerfd(device) if device.refused().is_none() => Some(Device::Timerfd),
            Kind::Futex | Kind::Timerfd(_) => Some(Device::Futex),
            Kind::Loop(_) => None,
        }
    }

    /// Why it does not work any more as it did at first.
    pub fn refused(&self) -> Option<DeviceFallback> {
        match &self.kind {
            Kind::Timerfd(device) => device.refused(),
            _ => None,
        }
    }

    /// Programs it, under its base's lock. Returns what is left to be done without.
    pub fn program(&self, clock: &HostClock, cpu: CpuId, at: Ns) -> Rearm {
        match &self.kind {
            Kind::Futex => self.bell.set(at),
            Kind::Timerfd(device) => {
                if device.set(clock.to_system(at)) {
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
            Kind::Futex | Kind::Timerfd(_) => self.bell.set(Ns::ZERO),
            Kind::Loop(_) => {
                // What is left to be done follows in any case.
                let _ = self.program(clock, cpu, Ns::ZERO);
            }
        }
        self.ring();
    }

    /// Whoever waits in it is about to look at the base: what was armed counts as never (R5).
    pub fn quiet(&self) {
        match &self.kind {
            Kind::Futex | Kind::Timerfd(_) => self.bell.quiet(),
            Kind::Loop(device) => device.quiet(),
        }
    }

    /// Sleeps until the deadline, or until there is another one, or until told to stop; in any
    /// case no longer than until `limit`. For driver threads.
    pub fn sleep(&self, host: &Host, limit: Ns, stop: &AtomicBool) {
        match &self.kind {
            Kind::Timerfd(device) if device.refused().is_none() => {
                self.bell.count_sleep();
                let left = limit - host.clock.now();
                device.wait((limit != Ns::NEVER).then_some(left));
            }
            _ => self.bell.sleep(host, limit, stop),
        }
    }

    /// System calls that programmed it.
    pub fn calls(&self) -> u64 {
        match &self.kind {
            Kind::Futex => 0,
            Kind::Timerfd(device) => device.calls(),
            Kind::Loop(device) => device.calls(),
        }
    }
}
