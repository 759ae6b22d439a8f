//! Expiry threads, which run the callbacks of deferred timers.
//!
//! Each base that defers has one expiry thread, which sleeps until the base's driver calls it. If
//! that thread is stuck in a callback, a rescuer thread fires the base's other timers. All bases
//! share one rescuer: while it is stuck too, the next base that needs it waits.

use crate::platform::wait;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tickless_core::bases::deferred::Call;
use tickless_core::time::{CpuId, Ns};

/// The calls to the expiry threads of a set of timers.
#[derive(Debug, Default)]
pub struct Expirers {
    calls: Box<[Calls]>,
    /// The bases whose thread is stuck, for the rescuer.
    stuck: Mutex<VecDeque<CpuId>>,
    stuck_changed: Condvar,
}

/// The calls to one expiry thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Calls {
    /// Counts calls. The thread waits on this word.
    made: AtomicU32,
    /// System calls made to wake the thread.
    wakes: AtomicU64,
}

impl Expirers {
    /// Creates the calls for this number of bases.
    pub fn new(bases: u16) -> Expirers {
        let calls = (0..bases).map(|_| Calls::default()).collect();
        Expirers { calls, ..Expirers::default() }
    }

    /// Wakes the thread that a handler or a tick has asked for.
    pub fn call(&self, cpu: CpuId, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Thread => self.calls[cpu.index()].make(),
            Call::Rescuer => {
                self.stuck().push_back(cpu);
                self.stuck_changed.notify_one();
            }
        }
    }

    /// Wakes all threads, so that they check the stop flag, which the caller has set before.
    pub fn call_all(&self) {
        self.calls.iter().for_each(Calls::make);
        // Under the mutex: the rescuer checks the flag and falls asleep under it, so it either sees
        // the flag or is asleep by now.
        let _stuck = self.stuck();
        self.stuck_changed.notify_all();
    }

    /// The body of a base's expiry thread: runs `fire` after each call, until `stop` is set.
    pub fn serve(&self, cpu: CpuId, stop: &AtomicBool, mut fire: impl FnMut()) {
        let calls = &self.calls[cpu.index()].made;
        let mut served = 0;
        // Acquire: pairs with the Release of the thread that sets the flag.
        while !stop.load(Ordering::Acquire) {
            // Acquire: pairs with the Release in `make`. Little depends on it, because `fire`
            // takes the base's lock and reads the base again.
            let made = calls.load(Ordering::Acquire);
            if made == served {
                // Reload after every return: `wait` may return early.
                wait::wait(calls, served, Ns::NEVER);
                continue;
            }
            served = made;
            fire();
        }
    }

    /// The body of the rescuer: runs `fire` for each base whose thread is stuck, until `stop` is
    /// set.
    pub fn rescue(&self, stop: &AtomicBool, mut fire: impl FnMut(CpuId)) {
        loop {
            let mut stuck = self.stuck();
            let cpu = loop {
                // Acquire: as in `serve`.
                if stop.load(Ordering::Acquire) {
                    return;
                }
                if let Some(cpu) = stuck.pop_front() {
                    break cpu;
                }
                let woken = self.stuck_changed.wait(stuck);
                stuck = woken.unwrap_or_else(PoisonError::into_inner);
            };
            drop(stuck);
            fire(cpu);
        }
    }

    /// Returns how many system calls were made to wake a base's expiry thread.
    pub fn wakes(&self, cpu: CpuId) -> u64 {
        self.calls.get(cpu.index()).map_or(0, |calls| calls.wakes.load(Ordering::Relaxed))
    }

    fn stuck(&self) -> MutexGuard<'_, VecDeque<CpuId>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn make(&self) {
        // Release: pairs with the Acquire in `serve`.
        self.made.fetch_add(1, Ordering::Release);
        self.wakes.fetch_add(1, Ordering::Relaxed);
        // If the thread is awake, the call wakes nothing and costs 0.2 µs. That is rare: a base
        // calls its thread only after it has finished the previous batch.
        wait::wake_one(&self.made);
    }
}
