//! The simulated machine as a [`Platform`] of the timer library: its atomic words and its locks
//! take the time that accesses to their simulated cache lines take.
//!
//! The timer library runs here unmodified. Words that are fields of one structure share a cache
//! line; each lock is on a line of its own, and the data that it guards is on other lines. The
//! computation in a critical section takes a fixed time, which is a price of the machine. Outside a
//! simulated CPU, where a test prepares or inspects something, nothing takes simulated time.

use crate::act::{self, access};
use crate::coherence::Access;
use crate::cpu;
use crate::device;
use crate::irq::{self, Masked, Vector};
use crate::machine_state::{LineSharing, MachineState, WordSlot, with, with_cpu};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::platform::{Lock, Ordering, ParkingWord, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

// SAFETY: a simulation runs on one thread, where relaxed atomic accesses suffice. If a test uses
// this platform on several threads, the mutex in a `SimLock` still excludes and orders them. The
// functions that the timer library calls under a lock only charge simulated time and read a table,
// so they neither unwind nor use the bases.
unsafe impl Platform for Sim {
    type Word = SimWord;
    type ParkingWord = SimWord;
    type Lock<T: Send> = SimLock<T>;
    /// A number that the caller chooses, and gets back when the timer fires.
    type Task = u64;

    fn now(&self) -> Ns {
        now()
    }

    fn here(&self) -> CpuId {
        cpu::here()
    }

    /// Programs the timer device of the running CPU. If `cpu` is another CPU, only returns that the
    /// caller must interrupt it, so that it programs its own device.
    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        act::check_locks(|locks| locks != 1, "a device is programmed without its base's lock");
        if cpu != cpu::here() {
            return Rearm::Kick(cpu);
        }
        device::program(at);
        Rearm::Keep
    }

    fn kick(&self, cpu: CpuId) {
        act::check_locks(|locks| locks != 0, "a CPU is kicked under a lock");
        irq::send(cpu, Vector::Look);
    }

    fn relax(&self, _: u32) {
        act::relax_for(|waited| &mut waited.others);
    }

    /// Waits until another CPU writes to the word's cache line. Only simulated time passes.
    fn park(&self, word: &SimWord, value: u32) {
        if word.count(Ordering::Acquire) == value {
            act::relax_for(|waited| &mut waited.others);
        }
    }

    fn unpark(&self, _: &SimWord) {}
}

pub fn now() -> Ns {
    with(|machine| {
        let tsc = machine.costs.tsc;
        if let Some(cpu) = machine.cpu() {
            cpu.clock += tsc;
        }
        machine.now()
    })
    .unwrap_or(Ns::ZERO)
}

/// Reads the cycle counter in no simulated time, for checks that must not influence the simulation.
pub fn cycle_counter() -> Ns {
    with(MachineState::cycle_counter).unwrap_or(Ns::ZERO)
}

pub fn locks_held() -> u32 {
    with_cpu(|cpu| cpu.locks).unwrap_or(0)
}

/// Describes the first broken rule about locks, if any. A CPU must not hold two locks, must hold
/// one when it programs a timer device, and must hold none when it interrupts another CPU.
pub fn broken_rule() -> Option<&'static str> {
    with(|machine| machine.broken_rule).flatten()
}

#[derive(Debug)]
pub struct SimWord {
    value: AtomicU64,
    place: WordSlot,
}

impl SimWord {
    /// Evicts the word's cache line from all caches, like `clflush`. That takes no simulated time.
    pub fn flush(&self) {
        with(|machine| {
            let line = machine.line(&self.place, LineSharing::Neighbours);
            machine.lines.flush(line);
        });
    }

    pub fn fetch_add(&self, value: u64) -> u64 {
        access(&self.place, LineSharing::Neighbours, Access::Atomic);
        self.value.fetch_add(value, Ordering::Relaxed)
    }
}

impl Word for SimWord {
    fn new(value: u64) -> Self {
        SimWord { value: AtomicU64::new(value), place: WordSlot::default() }
    }

    fn load(&self, _: Ordering) -> u64 {
        access(&self.place, LineSharing::Neighbours, Access::Read);
        self.value.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64, _: Ordering) {
        access(&self.place, LineSharing::Neighbours, Access::Store);
        self.value.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: Ordering,
        _: Ordering,
    ) -> Result<u64, u64> {
        access(&self.place, LineSharing::Neighbours, Access::Atomic);
        self.value.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed)
    }

    fn add(&self, value: u64, _: Ordering) -> u64 {
        self.fetch_add(value)
    }
}

/// The highest number of cache lines of guarded data that a critical section is charged for.
const GUARDED_MAX: usize = 8;

fn lines_of<T>() -> usize {
    const LINE: usize = 64;
    let most = with(|machine| usize::from(machine.costs.section_lines)).unwrap_or(1);
    size_of::<T>().div_ceil(LINE).clamp(1, most.clamp(1, GUARDED_MAX))
}

/// The cache lines of the data that a lock guards.
#[derive(Debug, Default)]
pub struct GuardedLines([WordSlot; GUARDED_MAX]);

impl GuardedLines {
    /// Takes the time of a critical section on a `T`: it reads and writes each of the guarded
    /// lines, and computes. If there are several lines, the last one holds the timer's neighbours
    /// in the queue, whose addresses come from an earlier line.
    pub fn access<T>(&self) {
        let lines = lines_of::<T>();
        for (at, line) in self.0.iter().take(lines).enumerate() {
            if at > 0 && at + 1 == lines {
                cpu::depend();
            }
            access(line, LineSharing::Alone, Access::Read);
            access(line, LineSharing::Alone, Access::Store);
        }
        cpu::charge(cpu::section());
    }
}

/// A ticket lock on a simulated line, around data on other lines. Interrupts are disabled while it
/// is held, as in a kernel.
#[derive(Debug)]
pub struct SimLock<T> {
    line: WordSlot,
    guarded: GuardedLines,
    next: AtomicU64,
    serving: AtomicU64,
    /// This mutex is never contended, because only the holder of the ticket lock locks it.
    data: Mutex<T>,
}

impl<T: Send> Lock<T> for SimLock<T> {
    type Guard<'a>
        = Held<'a, T, (Unlock<'a>, Masked)>
    where
        T: 'a;

    fn new(value: T) -> Self {
        SimLock {
            line: WordSlot::default(),
            guarded: GuardedLines::default(),
            next: AtomicU64::new(0),
            serving: AtomicU64::new(0),
            data: Mutex::new(value),
        }
    }

    fn lock(&self) -> Self::Guard<'_> {
        let masked = irq::mask();
        if !act::begin_locking() {
            // No simulated CPU is running. Discard the tickets of programs that were ended while
            // they waited. They would never be served, and this thread would wait forever.
            self.next.store(self.serving.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        access(&self.line, LineSharing::Alone, Access::Atomic);
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Relaxed) != ticket {
            access(&self.line, LineSharing::Alone, Access::Read);
            if self.serving.load(Ordering::Relaxed) != ticket {
                act::relax_for(|waited| &mut waited.locks);
            }
        }
        self.guarded.access::<T>();
        with_cpu(|cpu| cpu.locks += 1);
        act::check_locks(|locks| locks > 1, "a second lock is taken under a first");
        Held::new(&self.data, (Unlock { line: &self.line, serving: &self.serving }, masked))
    }
}

/// Access to the data of a lock whose holder alone locks the mutex around the data. Rust drops the
/// fields in this order: the data is released first, then the parts of `release`, in their order.
#[derive(Debug)]
pub struct Held<'a, T, R> {
    data: MutexGuard<'a, T>,
    _release: R,
}

impl<'a, T, R> Held<'a, T, R> {
    pub fn new(data: &'a Mutex<T>, release: R) -> Self {
        Held { data: data.lock().unwrap_or_else(PoisonError::into_inner), _release: release }
    }
}

#[derive(Debug)]
pub struct Unlock<'a> {
    line: &'a WordSlot,
    serving: &'a AtomicU64,
}

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        access(self.line, LineSharing::Alone, Access::Store);
        self.serving.fetch_add(1, Ordering::Relaxed);
        act::end_locking();
    }
}

impl<T, R> Deref for Held<'_, T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T, R> DerefMut for Held<'_, T, R> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}
