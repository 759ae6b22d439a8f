//! Expiry threads: where the callbacks of deferred timers run.
//!
//! A base that defers has one, which sleeps until its driver calls it. One more stands in for
//! any of them that is stuck in a callback (D9); should that one get stuck too, the next base
//! that needs it waits for it.

use crate::platform::wait;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tickless_core::bases::deferred::Call;
use tickless_core::time::{CpuId, Ns};

/// How the expiry threads of a set of timers are called.
#[derive(Debug, Default)]
pub struct Expirers {
    calls: Box<[Calls]>,
    stuck: Mutex<VecDeque<CpuId>>,
    somebody_is_stuck: Condvar,
}

/// How one expiry thread is called.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Calls {
    made: AtomicU32,
    /// System calls made to wake the thread.
    wakes: AtomicU64,
}

impl Expirers {
    /// For so many bases.
    pub fn new(bases: u16) -> Expirers {
        let calls = (0..bases).map(|_| Calls::default()).collect();
        Expirers { calls, ..Expirers::default() }
    }

    /// Wakes whom a handler or a tick wants to be woken.
    pub fn call(&self, cpu: CpuId, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Thread => self.calls[cpu.index()].make(),
            Call::Rescuer => {
                self.stuck().push_back(cpu);
                self.somebody_is_stuck.notify_one();
            }
        }
    }

    /// Wakes everybody, to find that they are to stop.
    pub fn call_all(&self) {
        self.calls.iter().for_each(Calls::make);
        // Under the mutex: who has looked whether to stop is asleep by then.
        let _stuck = self.stuck();
        self.somebody_is_stuck.notify_all();
    }

    /// What a base's expiry thread does until told to stop: `fire` whenever it is called.
    pub fn serve(&self, cpu: CpuId, stop: &AtomicBool, mut fire: impl FnMut()) {
        let calls = &self.calls[cpu.index()].made;
        let mut heard = 0;
        // Acquire: pairs with the Release of whoever stops it.
        while !stop.load(Ordering::Acquire) {
            // Acquire: pairs with the Release in `make`; no more than a fresh look at the base
            // depends on it, and that takes the base's lock.
            let made = calls.load(Ordering::Acquire);
            if made == heard {
                // Woken, interrupted, called in between: each means look again.
                wait::wait(calls, heard, Ns::NEVER);
                continue;
            }
            heard = made;
            fire();
        }
    }

    /// What the thread that stands in does until told to stop: `fire` for each base whose thread
    /// is stuck.
    pub fn stand_in(&self, stop: &AtomicBool, mut fire: impl FnMut(CpuId)) {
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
                let woken = self.somebody_is_stuck.wait(stuck);
                stuck = woken.unwrap_or_else(PoisonError::into_inner);
            };
            drop(stuck);
            fire(cpu);
        }
    }

    /// System calls made to wake a base's expiry thread.
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
        // A thread that is at work has nobody to wake, which costs 0.2 µs; a base calls its
        // thread only when that has come to an end.
        wait::wake_one(&self.made);
    }
}
