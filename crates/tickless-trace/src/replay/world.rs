//! The world of a replay: a clock, a place and event devices, all moved by the engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::platform::{Lock, Platform};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The core's platform in a replay. One thread uses it; the atomics only satisfy the seam.
#[derive(Debug)]
pub(super) struct World {
    now: AtomicU64,
    here: AtomicU16,
    /// What each CPU's device is armed for.
    devices: Box<[AtomicU64]>,
    /// The same, earliest first, and what they were armed for before.
    events: Mutex<BinaryHeap<Reverse<(Ns, CpuId)>>>,
    /// When which device was written.
    written: Mutex<Vec<(Ns, CpuId)>>,
}

impl World {
    pub(super) fn new(cpus: u16, now: Ns) -> World {
        let devices = (0..cpus).map(|_| AtomicU64::new(Ns::NEVER.0)).collect();
        let (now, here) = (AtomicU64::new(now.0), AtomicU16::new(0));
        World { now, here, devices, events: Mutex::default(), written: Mutex::default() }
    }

    /// Moves the clock, never back, and goes to a CPU.
    pub(super) fn go(&self, now: Ns, cpu: CpuId) {
        self.now.fetch_max(now.0, Ordering::Relaxed);
        self.here.store(cpu.0, Ordering::Relaxed);
    }

    /// The earliest event that a device is armed for and that is due before `until`. It is
    /// handed out once; the device stays armed. O(log n) for each arming.
    pub(super) fn next_event(&self, until: Ns) -> Option<(Ns, CpuId)> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(&Reverse((due, cpu))) = events.peek()
            && due < until
        {
            events.pop();
            if self.devices[cpu.index()].load(Ordering::Relaxed) == due.0 {
                return Some((due, cpu));
            }
        }
        None
    }

    /// When which device was written, in order.
    pub(super) fn written(&self) -> Vec<(Ns, CpuId)> {
        std::mem::take(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets the writes until now.
    pub(super) fn forget_written(&self) {
        drop(self.written());
    }

    /// A CPU's device delivers its event.
    pub(super) fn deliver(&self, cpu: CpuId) {
        self.devices[cpu.index()].store(Ns::NEVER.0, Ordering::Relaxed);
    }
}

// SAFETY: words are atomics, the lock is a mutex, and nothing here unwinds or uses the bases.
unsafe impl Platform for World {
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
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.push((Ns(self.now.load(Ordering::Relaxed)), cpu));
        drop(written);
        if at != Ns::NEVER {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push(Reverse((at, cpu)));
        }
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, _: u32) {
        std::hint::spin_loop();
    }

    fn park(&self, _: &AtomicU64, _: u32) {
        // One thread plays all CPUs: nobody else could end a wait.
        std::hint::spin_loop();
    }

    fn unpark(&self, _: &AtomicU64) {}
}

/// A mutex that nobody waits for.
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
