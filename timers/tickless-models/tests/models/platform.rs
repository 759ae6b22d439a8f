//! The core's platform under a checker: two CPUs, and a clock that stands while threads run.
//!
//! The clock and the devices are memory that no checker observes. A model moves the clock, and
//! reads the devices, only while one thread runs.

use crate::checker::{self, CheckedLock, CheckedParking, CheckedWord};
use std::sync::atomic::AtomicU64;
use tickless_core::bases::Family;
use tickless_core::platform::{Ordering, ParkingWord, Platform};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

pub const CPUS: u16 = 2;

/// Relaxed: the platform's own state must not order anything for the code under test.
const RELAXED: Ordering = Ordering::Relaxed;

pub struct ModelPlatform {
    clock: AtomicU64,
    devices: [AtomicU64; CPUS as usize],
    parking: CheckedParking,
}

pub trait Kind: Family<ModelPlatform> + 'static {}

impl<L: Family<ModelPlatform> + 'static> Kind for L {}

impl ModelPlatform {
    pub fn new(now: Ns) -> Self {
        let devices = [(); CPUS as usize].map(|()| AtomicU64::new(Ns::NEVER.0));
        let (clock, parking) = (AtomicU64::new(now.0), CheckedParking::new());
        ModelPlatform { clock, devices, parking }
    }

    pub fn set_time(&self, now: Ns) {
        self.clock.store(now.0, RELAXED);
    }

    pub fn device(&self, cpu: CpuId) -> Ns {
        Ns(self.devices[cpu.index()].load(RELAXED))
    }
}

// SAFETY: words and locks are the checker's; the other methods only store, return and yield.
unsafe impl Platform for ModelPlatform {
    type Word = CheckedWord;
    type ParkingWord = CheckedWord;
    type Lock<T: Send> = CheckedLock<T>;
    type Task = usize;

    /// Every waiting thread parks at once.
    const SPINS: u32 = 0;

    fn now(&self) -> Ns {
        Ns(self.clock.load(RELAXED))
    }

    fn here(&self) -> CpuId {
        checker::here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        self.devices[cpu.index()].store(at.0, RELAXED);
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, _: u32) {
        checker::yield_now();
    }

    fn park(&self, word: &CheckedWord, value: u32) {
        self.parking.park(|| word.count(RELAXED) == value);
    }

    fn unpark(&self, _: &CheckedWord) {
        self.parking.unpark();
    }
}
