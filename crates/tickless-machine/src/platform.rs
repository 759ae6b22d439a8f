//! The seam's third world: words and locks whose price is that of the simulated line they are on.
//!
//! The timer core runs here unmodified. Words that are fields of one structure share a cache
//! line; each lock is on a line of its own, and what it guards is on another. What a critical
//! section does to private memory is one named charge of the machine's file. Outside of a
//! simulated CPU, when a test sets something up or looks at the result, everything is free.

use crate::act::{self, access, access_own};
use crate::coherence::Access;
use crate::device;
use crate::engine;
use crate::irq::{self, Masked, Vector};
use crate::state::cpu::WaitsFor;
use crate::world::{self, WordSlot, World};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tickless_core::platform::{Lock, Ordering, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};

/// The simulated machine that runs on this thread, as the timer core sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

// SAFETY: a simulation is one thread, on which a relaxed word is as good as any; were it more, the
// mutex in a `SimLock` would still exclude and order. What is called under a lock charges time and
// reads a table.
unsafe impl Platform for Sim {
    type Word = SimWord;
    type Lock<T: Send> = SimLock<T>;
    /// Whatever the one who arms the timer makes of it.
    type Task = u64;

    fn now(&self) -> Ns {
        now()
    }

    fn here(&self) -> CpuId {
        engine::here()
    }

    /// Another CPU's device cannot be reached: that CPU has to look.
    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        act::breaks_if(|locks| locks != 1, "a device is told without its base's lock");
        if cpu != engine::here() {
            return Rearm::Kick(cpu);
        }
        device::program(at);
        Rearm::Keep
    }

    fn kick(&self, cpu: CpuId) {
        act::breaks_if(|locks| locks != 0, "a CPU is kicked under a lock");
        irq::send(cpu, Vector::Look);
    }

    fn relax(&self, _: u32) {
        act::relax_for(WaitsFor::Others);
    }

    /// Whoever waits here has nothing else to do: the CPU is parked on the word's line, which
    /// costs it nothing but the time.
    fn park(&self, word: &SimWord, value: u64) {
        if word.load(Ordering::Acquire) == value {
            act::relax_for(WaitsFor::Others);
        }
    }

    fn unpark(&self, _: &SimWord) {}
}

/// The present, read from the CPU's own cycle counter.
pub fn now() -> Ns {
    world::with(|world| {
        let tsc = world.costs.tsc;
        if let Some(cpu) = world.cpu() {
            cpu.clock += tsc;
        }
        world.shows()
    })
    .unwrap_or(Ns::ZERO)
}

/// What that counter shows, for who looks from outside: free of charge.
pub fn shows() -> Ns {
    world::with(World::shows).unwrap_or(Ns::ZERO)
}

/// How many locks the CPU that runs holds.
pub fn locks_held() -> u32 {
    world::with(|world| world.cpu().map_or(0, |cpu| cpu.locks)).unwrap_or(0)
}

/// The first rule about locks that was broken: one at a time, devices are told under one, nobody
/// is kicked under one.
pub fn broken_rule() -> Option<&'static str> {
    world::with(|world| world.broken_rule).flatten()
}

/// A word on a simulated cache line.
#[derive(Debug)]
pub struct SimWord {
    value: AtomicU64,
    place: WordSlot,
}

impl SimWord {
    /// Takes its line out of all caches; free of charge.
    pub fn flush(&self) {
        act::flush(&self.place);
    }

    /// Adds to it. Returns what it held.
    pub fn fetch_add(&self, value: u64) -> u64 {
        access(&self.place, Access::Atomic);
        self.value.fetch_add(value, Ordering::Relaxed)
    }
}

impl Word for SimWord {
    fn new(value: u64) -> Self {
        SimWord { value: AtomicU64::new(value), place: WordSlot::default() }
    }

    fn load(&self, _: Ordering) -> u64 {
        access(&self.place, Access::Read);
        self.value.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64, _: Ordering) {
        access(&self.place, Access::Store);
        self.value.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: Ordering,
        _: Ordering,
    ) -> Result<u64, u64> {
        access(&self.place, Access::Atomic);
        self.value.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed)
    }
}

/// The most lines of what a lock guards that a critical section goes through.
const GUARDED_MAX: usize = 8;

/// How many lines a critical section over a `T` goes through: what the machine's file says, and
/// no more than it has.
fn lines_of<T>() -> usize {
    const LINE: usize = 64;
    let most = world::with(|world| usize::from(world.costs.section_lines)).unwrap_or(1);
    size_of::<T>().div_ceil(LINE).clamp(1, most.clamp(1, GUARDED_MAX))
}

/// A ticket lock on a simulated line, around what is on other ones. Interrupts are disabled
/// while it is held, as for a kernel's base.
#[derive(Debug)]
pub struct SimLock<T> {
    line: WordSlot,
    guarded: [WordSlot; GUARDED_MAX],
    next: AtomicU64,
    serving: AtomicU64,
    /// Never waited for: the tickets see to that.
    data: Mutex<T>,
}

impl<T: Send> Lock<T> for SimLock<T> {
    type Guard<'a>
        = SimGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        SimLock {
            line: WordSlot::default(),
            guarded: Default::default(),
            next: AtomicU64::new(0),
            serving: AtomicU64::new(0),
            data: Mutex::new(value),
        }
    }

    fn lock(&self) -> SimGuard<'_, T> {
        let masked = Masked::new();
        if !act::begin_locking() {
            // Whoever drew a ticket on a machine that has ended will not come back for it.
            self.next.store(self.serving.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        access_own(&self.line, Access::Atomic);
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Relaxed) != ticket {
            access_own(&self.line, Access::Read);
            if self.serving.load(Ordering::Relaxed) != ticket {
                act::relax_for(WaitsFor::Lock);
            }
        }
        for line in self.guarded.iter().take(lines_of::<T>()) {
            access_own(line, Access::Read);
            access_own(line, Access::Store);
        }
        world::with(|world| {
            let section = world.costs.section;
            let mut is_second = false;
            if let Some(cpu) = world.cpu() {
                cpu.clock += section;
                cpu.locks += 1;
                is_second = cpu.locks > 1;
            }
            if is_second {
                world.broken_rule.get_or_insert("a second lock is taken under a first");
            }
        });
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let unlock = Unlock { line: &self.line, serving: &self.serving };
        SimGuard { data, _unlock: unlock, _masked: masked }
    }
}

/// The right to use what a [`SimLock`] guards. Its fields are dropped in this order.
#[derive(Debug)]
pub struct SimGuard<'a, T> {
    data: MutexGuard<'a, T>,
    _unlock: Unlock<'a>,
    _masked: Masked,
}

#[derive(Debug)]
struct Unlock<'a> {
    line: &'a WordSlot,
    serving: &'a AtomicU64,
}

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        access_own(self.line, Access::Store);
        self.serving.fetch_add(1, Ordering::Relaxed);
        act::end_locking();
    }
}

impl<T> Deref for SimGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T> DerefMut for SimGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}
