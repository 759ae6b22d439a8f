//! The implementation of the core's [`Platform`] on this machine.

use crate::platform::clock::HostClock;
use crate::platform::cpu::CpuMap;
use crate::platform::device::base::BaseDevice;
use crate::platform::device::fallback::{Device, RefusedCall};
use crate::platform::device::futex::Starter;
use crate::platform::lock::BiasedLock;
use crate::platform::parking;
use crate::platform::relax::relax;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;
use tickless_core::platform::Platform;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The node by which a coarse timer is on a list of the wheel.
pub type WheelLink = tickless_core::link::WheelLink<AtomicU64>;

/// The core's platform on this machine, for timers with a task of type `T`.
#[derive(Debug)]
pub struct Host<T> {
    /// The clock that deadlines are given on.
    pub clock: HostClock,
    /// Maps the caller's CPU to a base.
    pub cpus: CpuMap,
    /// The event device of each base.
    pub devices: Box<[BaseDevice]>,
    /// The refused call that prevents the use of the requested device.
    refused: Option<RefusedCall>,
    /// The calls to the thread that starts drivers, if there is one.
    pub starter: Option<Arc<Starter>>,
    task: PhantomData<fn() -> T>,
}

impl<T> Host<T> {
    /// Creates a host with a futex as the device of each base.
    pub fn new(clock: HostClock, cpus: CpuMap) -> Host<T> {
        let devices = (0..cpus.bases()).map(|_| BaseDevice::futex()).collect();
        Host::with_devices(clock, cpus, devices)
    }

    /// Creates a host with a futex as the device of each base. The driver of the first base runs
    /// from the beginning; this starter starts the others.
    pub fn with_starter(clock: HostClock, cpus: CpuMap, starter: &Arc<Starter>) -> Host<T> {
        let device = |base| match base {
            0 => BaseDevice::futex(),
            _ => BaseDevice::futex_started_by(Arc::clone(starter)),
        };
        let devices = (0..cpus.bases()).map(device).collect();
        Host { starter: Some(Arc::clone(starter)), ..Host::with_devices(clock, cpus, devices) }
    }

    /// Creates a host with this kind of device for each base, or with futexes if the system refuses
    /// it for any of them.
    pub fn with_device(clock: HostClock, cpus: CpuMap, device: Device) -> Host<T> {
        let one = |_| match device {
            Device::Futex => Ok(BaseDevice::futex()),
            #[cfg(linux_platform)]
            Device::Timerfd => BaseDevice::timerfd(),
        };
        let devices: Result<Vec<BaseDevice>, RefusedCall> = (0..cpus.bases()).map(one).collect();
        match devices {
            Ok(devices) => Host::with_devices(clock, cpus, devices),
            Err(refused) => Host { refused: Some(refused), ..Host::new(clock, cpus) },
        }
    }

    /// Creates a host with these devices, one per base.
    pub fn with_devices(clock: HostClock, cpus: CpuMap, devices: Vec<BaseDevice>) -> Host<T> {
        Host {
            clock,
            cpus,
            devices: devices.into(),
            refused: None,
            starter: None,
            task: PhantomData,
        }
    }

    /// Returns the refused call because of which a base does not use the requested device.
    pub fn device_fallback(&self) -> Option<RefusedCall> {
        self.refused.or_else(|| self.devices.iter().find_map(BaseDevice::refused))
    }
}

// SAFETY: words are atomics, and `BiasedLock` excludes. Reading the clock, finding the CPU and
// programming a device neither unwind nor use the bases. For a base without a device, `program`
// and `kick` do nothing.
unsafe impl<T: Copy + Send + 'static> Platform for Host<T> {
    type Word = AtomicU64;
    type ParkingWord = AtomicU32;
    type Lock<S: Send> = BiasedLock<S>;
    type Task = T;

    #[inline]
    fn now(&self) -> Ns {
        self.clock.now()
    }

    #[inline]
    fn here(&self) -> CpuId {
        self.cpus.here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        match self.devices.get(cpu.index()) {
            Some(device) => device.program(&self.clock, cpu, at),
            None => Rearm::Keep,
        }
    }

    fn kick(&self, cpu: CpuId) {
        if let Some(device) = self.devices.get(cpu.index()) {
            device.ring();
        }
    }

    fn relax(&self, round: u32) {
        relax(round);
    }

    fn park(&self, word: &AtomicU32, value: u32) {
        parking::park(word, value);
    }

    fn unpark(&self, word: &AtomicU32) {
        parking::unpark(word);
    }
}
