//! Implements the [`Platform`] trait for this machine: clock, CPUs, event devices and locks.

use crate::platform::clock::{ClockSource, HostClock};
use crate::platform::cpu::CpuMap;
use crate::platform::device::base::BaseDevice;
use crate::platform::device::futex::Starter;
use crate::platform::lock::BiasedLock;
use crate::platform::relax::relax;
use crate::platform::wait;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;
use tickless_core::platform::Platform;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The node that links a coarse timer into one of the lists of the timer wheel.
pub type WheelLink = tickless_core::link::WheelLink<AtomicU64>;

/// The machine as timers use it. A timer stores a `T`, and gives it back when it fires.
#[repr(C)]
#[derive(Debug)]
pub struct Host<T> {
    pub clock: HostClock,
    pub cpus: CpuMap,
    pub devices: Box<[BaseDevice]>,
    /// Wakes the thread that starts driver threads on demand, if there is such a thread.
    pub starter: Option<Arc<Starter>>,
    task: PhantomData<fn() -> T>,
}

impl<T> Host<T> {
    pub fn new(clock: HostClock, cpus: CpuMap) -> Host<T> {
        let devices = (0..cpus.bases()).map(|_| BaseDevice::futex()).collect();
        Host::with_devices(clock, cpus, devices)
    }

    /// Creates a host in which the driver thread of each base waits on a futex. `starter` starts
    /// the drivers when their bases are first used. The caller starts the driver of the first base.
    pub fn with_starter(clock: HostClock, cpus: CpuMap, starter: &Arc<Starter>) -> Host<T> {
        let device = |base| match base {
            0 => BaseDevice::futex(),
            _ => BaseDevice::futex_started_by(Arc::clone(starter)),
        };
        let devices = (0..cpus.bases()).map(device).collect();
        Host { starter: Some(Arc::clone(starter)), ..Host::with_devices(clock, cpus, devices) }
    }

    pub fn with_devices(clock: HostClock, cpus: CpuMap, devices: Vec<BaseDevice>) -> Host<T> {
        Host { clock, cpus, devices: devices.into(), starter: None, task: PhantomData }
    }
}

// SAFETY: the words are standard atomics, and a `BiasedLock` has one guard at a time. Reading the
// clock, finding the CPU and programming a device neither unwind nor use the bases. `program` and
// `kick` do nothing for a CPU number that has no device.
unsafe impl<T: Copy + Send + 'static> Platform for Host<T> {
    type Word = AtomicU64;
    type ParkingWord = AtomicU32;
    type Lock<S: Send> = BiasedLock<S>;
    type Task = T;

    #[inline]
    fn now(&self) -> Ns {
        self.clock.now()
    }

    #[cfg(feature = "tokio-time")]
    #[inline]
    fn due_until(&self) -> Ns {
        let (now, runtime) = (self.clock.now(), self.clock.runtime());
        runtime.map_or(now, |runtime| now.min(runtime.reached()))
    }

    #[inline]
    fn here(&self) -> CpuId {
        self.cpus.here()
    }

    #[inline(always)]
    fn try_here(&self) -> Option<CpuId> {
        self.cpus.try_here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        match self.devices.get(cpu.index()) {
            // No thread waits for a clock that the program moves.
            Some(device) if self.clock.source() != ClockSource::Manual => device.program(cpu, at),
            _ => Rearm::Keep,
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
        wait::wait(word, value, Ns::NEVER);
    }

    fn unpark(&self, word: &AtomicU32) {
        wait::wake_all(word);
    }
}
