//! The core's platform on this machine.

use crate::platform::clock::HostClock;
use crate::platform::cpu::CpuMap;
use crate::platform::device::base::BaseDevice;
use crate::platform::device::fallback::{Device, RefusedCall};
use crate::platform::lock::BiasedLock;
use crate::platform::parking;
use crate::platform::relax::relax;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64};
use tickless_core::platform::Platform;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// A coarse timer's node.
pub type WheelLink = tickless_core::link::WheelLink<AtomicU64>;

/// The core's platform on this machine, for timers that carry a `T`.
#[derive(Debug)]
pub struct Host<T> {
    /// The clock that deadlines are given on.
    pub clock: HostClock,
    /// Which base a caller is on.
    pub cpus: CpuMap,
    /// What wakes each base.
    pub devices: Box<[BaseDevice]>,
    /// Why that is not what was asked for.
    refused: Option<RefusedCall>,
    task: PhantomData<fn() -> T>,
}

impl<T> Host<T> {
    /// A host with this clock and one base for each of these CPUs, each with a futex.
    pub fn new(clock: HostClock, cpus: CpuMap) -> Host<T> {
        let devices = (0..cpus.bases()).map(|_| BaseDevice::futex()).collect();
        Host::with_devices(clock, cpus, devices)
    }

    /// The same with this device, or a futex if the system refuses it for any of the bases.
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

    /// The same with these, one a base.
    pub fn with_devices(clock: HostClock, cpus: CpuMap, devices: Vec<BaseDevice>) -> Host<T> {
        Host { clock, cpus, devices: devices.into(), refused: None, task: PhantomData }
    }

    /// Why some base has another device than was asked for.
    pub fn device_fallback(&self) -> Option<RefusedCall> {
        self.refused.or_else(|| self.devices.iter().find_map(BaseDevice::refused))
    }
}

// SAFETY: words are atomics, and `BiasedLock` excludes. Reading the clock, finding the CPU
// and telling a device neither unwind nor use the bases; of a base that has no device, nobody is
// told.
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
