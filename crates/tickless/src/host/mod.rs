//! The host: the core's platform for a program on Linux, and all its unsafe code.
//!
//! | file | what |
//! |---|---|
//! | `arena` | the memory that timers live in |
//! | `clock` | the monotonic clock: TSC or `clock_gettime`, or set by hand |
//! | `counter` | the time-stamp counter |
//! | `cpu` | which CPU, and so which base, the caller is on |
//! | `driver` | a base's event device: a thread that sleeps until the deadline |
//! | `embed` | timers in memory that somebody else owns |
//! | `entry` | a timer inside a future |
//! | `expirer` | expiry threads, for timers whose expiry is deferred |
//! | `fork` | telling the child of a fork from its parent |
//! | `frame` | which callbacks the calling thread is in |
//! | `hardware` | counters for programs: the TSC, system clocks, PTP clocks |
//! | `lock` | the lock around a base, biased towards its usual user |
//! | `membarrier` | a barrier on every running thread |
//! | `orphans` | timers that were dropped while their callback ran |
//! | `owned` | a timer with its callback in one allocation |
//! | `parking` | sleeping until a word changes |
//! | `process` | the timers of the process, for futures that name no others |
//! | `waits` | who waits for whom, which tells a wait from a deadlock |

pub(crate) mod arena;
pub(crate) mod clock;
mod counter;
pub(crate) mod cpu;
pub(crate) mod driver;
pub mod embed;
pub(crate) mod entry;
pub(crate) mod expirer;
pub(crate) mod fork;
pub(crate) mod frame;
pub(crate) mod hardware;
pub(crate) mod lock;
mod membarrier;
pub(crate) mod orphans;
pub(crate) mod owned;
mod parking;
pub(crate) mod process;
pub(crate) mod waits;

use clock::HostClock;
use core::sync::atomic::AtomicU64;
use cpu::CpuMap;
use driver::Doorbell;
use tickless_core::platform::Platform;
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The core's platform on this machine.
#[derive(Debug)]
pub struct Host {
    pub(crate) clock: HostClock,
    pub(crate) cpus: CpuMap,
    /// What wakes each base's driver.
    pub(crate) doorbells: Box<[Doorbell]>,
}

impl Host {
    /// A host with this clock and one base for each of these CPUs.
    pub fn new(clock: HostClock, cpus: CpuMap) -> Host {
        let doorbells = (0..cpus.bases()).map(|_| Doorbell::default()).collect();
        Host { clock, cpus, doorbells }
    }
}

impl Platform for Host {
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
        self.doorbells[cpu.index()].set(at);
        Rearm::Kick(cpu)
    }

    fn kick(&self, cpu: CpuId) {
        self.doorbells[cpu.index()].ring();
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
