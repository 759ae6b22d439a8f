//! The host: the core's platform for a program on Linux, and all its unsafe code.
//!
//! | file | what |
//! |---|---|
//! | `arena` | the memory that timers live in |
//! | `bias` | the protocol of the lock, over any world's words |
//! | `chance` | numbers by chance, for orders that are shuffled |
//! | `clock` | the monotonic clock: TSC or `clock_gettime`, or set by hand |
//! | `counter` | the time-stamp counter |
//! | `cpu` | which CPU, and so which base, the caller is on |
//! | `device/` | what wakes a base when its next timer is due |
//! | `driver` | how a driver thread sleeps, and where it runs |
//! | `embed` | timers in memory that somebody else owns |
//! | `entry` | a timer inside a future |
//! | `expirer` | expiry threads, for timers whose expiry is deferred |
//! | `fork` | telling the child of a fork from its parent |
//! | `frame` | which callbacks the calling thread is in |
//! | `manual_clock` | a clock that the program moves |
//! | `hardware` | counters for programs: the TSC, system clocks, PTP clocks |
//! | `lock` | the lock around a base, biased towards its usual user |
//! | `membarrier` | a barrier on every running thread |
//! | `orphans` | timers that were dropped while their callback ran |
//! | `owned` | a timer with its callback in one allocation |
//! | `parking` | sleeping until a word changes |
//! | `process` | the timers of the process, for futures that name no others |
//! | `time_base` | realtime and boottime, for timers on these |
//! | `waits` | who waits for whom, which tells a wait from a deadlock |
//! | `wakers` | wakers that a batch of callbacks leaves to be woken |
//! | `watch` | being told when the time of day was set |
//! | `worker` | threads of ours, and waiting for their end |

pub(crate) mod arena;
mod bias;
pub(crate) mod chance;
pub(crate) mod clock;
mod counter;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod driver;
pub mod embed;
pub(crate) mod entry;
pub(crate) mod expirer;
pub(crate) mod fork;
pub(crate) mod frame;
pub(crate) mod hardware;
pub(crate) mod lock;
pub(crate) mod manual_clock;
mod membarrier;
pub(crate) mod orphans;
pub(crate) mod owned;
mod parking;
pub(crate) mod process;
pub(crate) mod time_base;
pub(crate) mod waits;
pub(crate) mod wakers;
pub(crate) mod watch;
pub(crate) mod worker;

use clock::HostClock;
use core::sync::atomic::AtomicU64;
use cpu::CpuMap;
use device::{BaseDevice, Device, DeviceFallback};
use tickless_core::platform::Platform;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The core's platform on this machine.
#[derive(Debug)]
pub struct Host {
    pub(crate) clock: HostClock,
    pub(crate) cpus: CpuMap,
    /// What wakes each base.
    pub(crate) devices: Box<[BaseDevice]>,
    /// Why that is not what was asked for.
    refused: Option<DeviceFallback>,
}

impl Host {
    /// A host with this clock and one base for each of these CPUs, each with a futex.
    pub fn new(clock: HostClock, cpus: CpuMap) -> Host {
        let devices = (0..cpus.bases()).map(|_| BaseDevice::futex()).collect();
        Host::with_devices(clock, cpus, devices)
    }

    /// The same with this device, or a futex if the system refuses it for any of the bases.
    pub fn with_device(clock: HostClock, cpus: CpuMap, device: Device) -> Host {
        let one = |_| match device {
            Device::Futex => Ok(BaseDevice::futex()),
            Device::Timerfd => BaseDevice::timerfd(),
        };
        let devices: Result<Vec<BaseDevice>, DeviceFallback> = (0..cpus.bases()).map(one).collect();
        match devices {
            Ok(devices) => Host::with_devices(clock, cpus, devices),
            Err(refused) => Host { refused: Some(refused), ..Host::new(clock, cpus) },
        }
    }

    /// The same with these, one a base.
    pub fn with_devices(clock: HostClock, cpus: CpuMap, devices: Vec<BaseDevice>) -> Host {
        Host { clock, cpus, devices: devices.into(), refused: None }
    }

    /// Why some base has another device than was asked for.
    pub fn device_fallback(&self) -> Option<DeviceFallback> {
        self.refused.or_else(|| self.devices.iter().find_map(BaseDevice::refused))
    }
}

// SAFETY: words are atomics, and `BiasedLock` excludes (`lock`). Reading the clock, finding the CPU
// and telling a device neither unwind nor use the bases.
unsafe impl Platform for Host {
    type Word = AtomicU64;
    type Lock<T: Send> = lock::BiasedLock<T>;
    type Task = owned::Task;

    #[inline]
    fn now(&self) -> Ns {
        self.clock.now()
    }

    #[inline]
    fn here(&self) -> CpuId {
        self.cpus.here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        self.devices[cpu.index()].program(&self.clock, cpu, at)
    }

    fn kick(&self, cpu: CpuId) {
        self.devices[cpu.index()].ring();
    }

    fn relax(&self, round: u32) {
        lock::relax(round);
    }

    fn park(&self, word: &AtomicU64, value: u64) {
        parking::park(word, value);
    }

    fn unpark(&self, word: &AtomicU64) {
        parking::unpark(word);
    }
}
