//! Expiry threads. They run the callbacks of timers whose expiry is deferred: the driver thread
//! only finds that such a timer is due. If a callback does not return and so blocks the expiry
//! thread of its base, a *rescuer* thread, one for all bases, fires the other timers of the base.

use crate::platform::locked::locked;
use crate::platform::wait;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use tickless_core::bases::deferred::Call;
use tickless_core::time::{CpuId, Ns};

/// The means to wake the expiry threads of a set of timers. To wake a thread is to *call* it.
#[derive(Debug, Default)]
pub struct Expirers {
    calls: Box<[Calls]>,
    /// The bases whose expiry thread is stuck in a callback, in a queue for the rescuer thread.
    stuck: Mutex<VecDeque<CpuId>>,
    stuck_changed: Condvar,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Calls {
    /// Incremented to call (wake) a base's expiry thread, which sleeps until the number changes.
    made: AtomicU32,
    wakes: AtomicU64,
}

impl Expirers {
    pub fn new(bases: u16) -> Expirers {
        let calls = (0..bases).map(|_| Calls::default()).collect();
        Expirers { calls, ..Expirers::default() }
    }

    /// Wakes the thread that must fire the due timers of a base: its expiry thread, or the rescuer,
    /// or none. The base has chosen it and returned the choice as `call`.
    pub fn call(&self, cpu: CpuId, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Thread => self.calls[cpu.index()].make(),
            Call::Rescuer => {
                locked(&self.stuck).push_back(cpu);
                self.stuck_changed.notify_one();
            }
        }
    }

    /// Wakes all threads, so that they check the stop flag, which the caller has set before.
    pub fn call_all(&self) {
        self.calls.iter().for_each(Calls::make);
        // Notify under the mutex. The rescuer checks the flag and begins to wait under the same
        // mutex. So it has either seen the flag, or waits by now and is woken.
        let _stuck = locked(&self.stuck);
        self.stuck_changed.notify_all();
    }

    /// The body of a base's expiry thread: runs `fire` after each call, until `stop` is set.
    pub fn serve(&self, cpu: CpuId, stop: &AtomicBool, mut fire: impl FnMut()) {
        let calls = &self.calls[cpu.index()].made;
        let mut served = 0;
        // Acquire: pairs with the Release of the thread that sets the flag.
        while !stop.load(Ordering::Acquire) {
            // Acquire: pairs with the Release in `make`. Little depends on this, because `fire`
            // takes the base's lock and finds the due timers again.
            let made = calls.load(Ordering::Acquire);
            if made == served {
                // `wait` can return early, so load the number again.
                wait::wait(calls, served, Ns::NEVER);
                continue;
            }
            served = made;
            fire();
        }
    }

    /// The body of the rescuer: runs `fire` for each base whose expiry thread is stuck.
    pub fn rescue(&self, stop: &AtomicBool, mut fire: impl FnMut(CpuId)) {
        loop {
            let mut stuck = locked(&self.stuck);
            let cpu = loop {
                // Acquire: pairs with the Release of the thread that sets the flag.
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

    pub fn wakes(&self, cpu: CpuId) -> u64 {
        self.calls.get(cpu.index()).map_or(0, |calls| calls.wakes.load(Ordering::Relaxed))
    }
}

impl Calls {
    /// Wakes the expiry thread of a base for one more batch.
    fn make(&self) {
        // Release: pairs with the Acquire in `serve`.
        self.made.fetch_add(1, Ordering::Release);
        self.wakes.fetch_add(1, Ordering::Relaxed);
        // If the thread is already awake, this system call costs 0.2 µs for nothing. That is rare:
        // a base calls its thread only after the thread has finished the previous batch of timers.
        wait::wake_one(&self.made);
    }
}
