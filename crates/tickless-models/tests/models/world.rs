//! The core's platform under a checker: two CPUs, a clock that stands still while threads run.
//!
//! The clock and the devices are memory that no checker watches. The clock is only moved while
//! one thread runs; the devices are only written until it does.

use super::checker::{Checker, Parking};
use std::sync::atomic::AtomicU64;
use tickless_core::platform::{Ordering, ParkingWord, Platform};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// How many CPUs there are.
pub const CPUS: u16 = 2;

/// Relaxed: the world's own bookkeeping orders nothing for the code under test.
const RELAXED: Ordering = Ordering::Relaxed;

/// The world of one run of a model.
pub struct World<C: Checker> {
    clock: AtomicU64,
    devices: [AtomicU64; CPUS as usize],
    parking: C::Parking,
}

impl<C: Checker> World<C> {
    /// A world whose clock shows this.
    pub fn new(now: Ns) -> Self {
        let devices = [(); CPUS as usize].map(|()| AtomicU64::new(Ns::NEVER.0));
        World { clock: AtomicU64::new(now.0), devices, parking: C::Parking::new() }
    }

    /// Moves the clock; only while one thread runs.
    pub fn set_time(&self, now: Ns) {
        self.clock.store(now.0, RELAXED);
    }

    /// When a CPU's device will deliver.
    pub fn device(&self, cpu: CpuId) -> Ns {
        Ns(self.devices[cpu.index()].load(RELAXED))
    }
}

// SAFETY: words and locks are the checker's own; the rest only counts and yields.
unsafe impl<C: Checker> Platform for World<C> {
    type Word = C::Word;
    type ParkingWord = C::Word;
    type Lock<T: Send> = C::Lock<T>;
    /// The timer's number in its model.
    type Task = usize;

    /// Nobody spins, so that everybody who waits parks.
    const SPINS: u32 = 0;

    fn now(&self) -> Ns {
        Ns(self.clock.load(RELAXED))
    }

    fn here(&self) -> CpuId {
        C::here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        self.devices[cpu.index()].store(at.0, RELAXED);
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, _: u32) {
        C::yield_now();
    }

    fn park(&self, word: &C::Word, value: u32) {
        self.parking.park(|| word.count(RELAXED) == value);
    }

    fn unpark(&self, _: &C::Word) {
        self.parking.unpark();
    }
}
