//! The platform that the timer core runs on in a replay: a simulated clock, current CPU and event
//! devices, which the replay's engine controls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::platform::{Lock, Platform};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The platform of a replay. Only one thread uses it; [`Platform`] requires the atomics.
#[derive(Debug)]
pub(super) struct ReplayPlatform {
    now: AtomicU64,
    here: AtomicU16,
    devices: Box<[AtomicU64]>,
    /// All times for which devices have been armed, the earliest first. [`Self::next_event`] skips
    /// a time for which the device is no longer armed.
    events: Uncontended<BinaryHeap<Reverse<(Ns, CpuId)>>>,
    /// The earliest of these times: most items of a script find none due, and take no lock.
    earliest: AtomicU64,
}

impl ReplayPlatform {
    pub(super) fn new(cpus: u16, now: Ns) -> ReplayPlatform {
        ReplayPlatform {
            now: AtomicU64::new(now.0),
            here: AtomicU16::new(0),
            devices: (0..cpus).map(|_| AtomicU64::new(Ns::NEVER.0)).collect(),
            events: Lock::new(BinaryHeap::new()),
            earliest: AtomicU64::new(Ns::NEVER.0),
        }
    }

    /// Advances the clock to `now`, but never back, and makes `cpu` the current CPU.
    pub(super) fn go(&self, now: Ns, cpu: CpuId) {
        // Not `fetch_max`, which costs more: one thread has all of this.
        self.now.store(now.0.max(self.now.load(Ordering::Relaxed)), Ordering::Relaxed);
        self.here.store(cpu.0, Ordering::Relaxed);
    }

    /// Returns the earliest event that is due before `until`, if a device is armed for it. Returns
    /// each event only once, though its device stays armed. O(log n) for each of n armings.
    pub(super) fn next_event(&self, until: Ns) -> Option<(Ns, CpuId)> {
        if self.earliest.load(Ordering::Relaxed) >= until.0 {
            return None;
        }
        let mut events = self.events.lock();
        while let Some(&Reverse((due, cpu))) = events.peek() {
            self.earliest.store(due.0, Ordering::Relaxed);
            if due >= until {
                return None;
            }
            events.pop();
            if self.devices[cpu.index()].load(Ordering::Relaxed) == due.0 {
                return Some((due, cpu));
            }
        }
        self.earliest.store(Ns::NEVER.0, Ordering::Relaxed);
        None
    }

    /// Returns whether a CPU's device is armed for a time that has passed.
    pub(super) fn is_due(&self, cpu: CpuId) -> bool {
        let armed = self.devices[cpu.index()].load(Ordering::Relaxed);
        armed <= self.now.load(Ordering::Relaxed)
    }

    /// Delivers the event of a CPU's device. After that, the device is not armed.
    pub(super) fn deliver(&self, cpu: CpuId) {
        self.devices[cpu.index()].store(Ns::NEVER.0, Ordering::Relaxed);
    }
}

// SAFETY: words are atomics, the lock is a mutex, and nothing here unwinds or uses the bases.
unsafe impl Platform for ReplayPlatform {
    type Word = AtomicU64;
    type ParkingWord = AtomicU64;
    type Lock<T: Send> = Uncontended<T>;
    /// The timer's number in the script.
    type Task = u32;

    fn now(&self) -> Ns {
        Ns(self.now.load(Ordering::Relaxed))
    }

    fn here(&self) -> CpuId {
        CpuId(self.here.load(Ordering::Relaxed))
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        self.devices[cpu.index()].store(at.0, Ordering::Relaxed);
        if at != Ns::NEVER {
            self.events.lock().push(Reverse((at, cpu)));
            let earliest = at.0.min(self.earliest.load(Ordering::Relaxed));
            self.earliest.store(earliest, Ordering::Relaxed);
        }
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, _: u32) {
        std::hint::spin_loop();
    }

    fn park(&self, _: &AtomicU64, _: u32) {
        // Return at once: one thread simulates all CPUs, so no other thread could wake this one.
        std::hint::spin_loop();
    }

    fn unpark(&self, _: &AtomicU64) {}
}

/// A mutex that only one thread takes.
#[derive(Debug)]
pub(super) struct Uncontended<T>(Mutex<T>);

impl<T: Send> Lock<T> for Uncontended<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Uncontended(Mutex::new(value))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
