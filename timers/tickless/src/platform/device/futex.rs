//! The default event device: a driver thread that waits on a futex until its next timer is due,
//! with the kernel's smallest timer slack. The default slack would add 50 µs to an expiry.
//!
//! A thread that programs the device stores the deadline and *rings*: it changes the futex word. It
//! makes a system call, to wake the driver, only if the driver sleeps.

use super::bell::DriverBell;
use crate::platform::clock::HostClock;
use crate::platform::wait;
use crate::platform::wakeup::Waking;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use tickless_core::time::Ns;

/// The bell that wakes a driver thread, and counts of what the driver has done.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Doorbell {
    bell: DriverBell<AtomicU64, AtomicU32>,
    /// The number of system calls that woke the driver.
    pub wakes: AtomicU64,
    /// The number of sleeps of the driver, on this futex or in another device.
    pub sleeps: AtomicU64,
    /// The number of periodic ticks that the driver has run.
    pub ticks: AtomicU64,
    /// How long the driver has spun before deadlines, in nanoseconds.
    pub spun: AtomicU64,
    /// Starts the driver thread when the bell is first rung, unless it runs already.
    starter: Option<Arc<Starter>>,
    is_driven: AtomicBool,
}

/// Wakes the thread that starts the driver threads of a set of timers.
#[derive(Debug, Default)]
pub struct Starter {
    /// Incremented to wake the thread that starts drivers, which sleeps until the number changes.
    calls: AtomicU32,
}

impl Starter {
    /// Wakes the thread that starts drivers, to check what it must start, and whether it must end.
    pub fn call(&self) {
        // Release: pairs with the Acquire in `calls`, so that the woken thread sees what the
        // caller has changed before this call.
        self.calls.fetch_add(1, Ordering::Release);
        wait::wake_one(&self.calls);
    }

    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Acquire)
    }

    /// Sleeps while the number of calls is `calls`, until this time at most. May return early.
    pub fn wait(&self, calls: u32, until: Ns) {
        wait::wait(&self.calls, calls, until);
    }
}

impl Doorbell {
    pub fn started_by(starter: Arc<Starter>) -> Doorbell {
        let bell = DriverBell::without_driver();
        Doorbell { bell, starter: Some(starter), ..Doorbell::default() }
    }

    pub fn begin(&self) {
        // Relaxed: the driver announces its first sleep after this, by a SeqCst store. A thread
        // that sees that store also sees this flag, and wakes the driver, not the starter.
        self.is_driven.store(true, Ordering::Relaxed);
        self.bell.begin();
    }

    pub fn set(&self, deadline: Ns) {
        self.bell.set(deadline);
    }

    pub fn quiet(&self) {
        self.bell.quiet();
    }

    /// Wakes the driver by one system call, if it sleeps and has not seen the last ring.
    pub fn ring(&self) {
        self.bell.ring(|rings| {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            match &self.starter {
                Some(starter) if !self.is_driven.load(Ordering::Relaxed) => starter.call(),
                _ => wait::wake_one(rings),
            }
        });
    }

    pub fn rings(&self) -> u32 {
        self.bell.rings().load(Ordering::SeqCst)
    }

    /// Reports to `waking` how late the kernel woke the driver, which slept since `slept_from`.
    pub fn note_woken(&self, clock: &HostClock, margin: Ns, slept_from: Ns, waking: &mut Waking) {
        let deadline = self.bell.deadline();
        let asked = deadline.since(margin);
        let now = clock.now();
        if deadline != Ns::NEVER && slept_from < asked && asked <= now {
            waking.note_woken(asked, now);
        }
    }

    /// Returns whether the deadline is within the margin: the driver then spins and does not sleep.
    pub fn is_near(&self, margin: Ns, now: Ns) -> bool {
        let deadline = self.bell.deadline();
        margin != Ns::ZERO && deadline != Ns::NEVER && deadline.since(margin) <= now
    }

    /// Spins until a near deadline. Returns early if the deadline changes or `stop` is set.
    pub fn spin(&self, clock: &HostClock, margin: Ns, stop: &AtomicBool, waking: &mut Waking) {
        // Read the number of rings before the deadline: if another thread sets a new deadline in
        // between, `is_called` notices. The driver counts as awake while it spins, so a thread that
        // rings makes no system call.
        let seen = self.rings();
        let deadline = self.bell.deadline();
        if !self.is_near(margin, clock.now()) {
            return;
        }
        let is_called = || self.rings() != seen || stop.load(Ordering::Relaxed);
        let spun = waking.spin(deadline, || clock.now(), is_called);
        self.spun.fetch_add(spun.0, Ordering::Relaxed);
    }

    /// Sleeps until `margin` before the deadline, but no longer than until `limit`. Returns early
    /// if the deadline changes or `stop` is set.
    pub fn sleep(&self, margin: Ns, limit: Ns, stop: &AtomicBool) {
        let until = |deadline| match deadline {
            Ns::NEVER => limit,
            deadline => deadline.since(margin).min(limit),
        };
        let is_cancelled = || stop.load(Ordering::SeqCst);
        self.bell.sleep(until, is_cancelled, |rings, seen, until| {
            self.sleeps.fetch_add(1, Ordering::Relaxed);
            wait::wait(rings, seen, until);
        });
    }
}
