//! Combined reading of a slow counter: one thread reads it, and all waiting threads get its value.

use crate::platform::system_clock::system_now;
use core::sync::atomic::AtomicU64;
use tickless_core::clock::combined::{self, Patience, ReadPolicy};
use tickless_core::clock::counter::Counter;

/// A slow shared counter. One thread at a time reads it, for all threads that need a value at that
/// moment. A value is older than the call by at most one device read. If the counter never goes
/// back, neither do the values: on any thread, and across threads that synchronise with each other.
///
/// If the reading thread loses its CPU, or does not exist in a forked child, a waiting thread reads
/// the device for all of them after about four times the usual duration. A waiting thread spins,
/// and yields after about 40 µs. Reading allocates nothing.
#[derive(Debug)]
pub struct Combined<C> {
    inner: combined::Combined<AtomicU64, C, fn(u32)>,
}

/// A thread that waits spins this many times. After that it yields its CPU each time.
const SPINS: u32 = 2_000;
/// The shortest time that `yield_now` takes, in nanoseconds: that of a system call.
const YIELD_NS: u64 = 300;
/// A thread waits for another thread's reading as long as this many readings usually take.
const READINGS: u64 = 4;

/// Spins, or later yields. Never sleeps: a thread that has waited too long reads the device.
fn relax(round: u32) {
    if round < SPINS { core::hint::spin_loop() } else { std::thread::yield_now() }
}

impl<C: Counter> Combined<C> {
    /// Combines the readings of a counter. Reads it three times, to measure how long that takes.
    pub fn new(counter: C) -> Combined<C> {
        let patience = patience_for(&counter);
        let relax: fn(u32) = relax;
        Combined { inner: combined::Combined::new(counter, relax).with_patience(patience) }
    }

    /// Sets whether threads share readings. With [`ReadPolicy::Direct`] each thread reads the
    /// device itself, so that a study can measure what sharing gains.
    #[doc(hidden)]
    #[must_use]
    pub fn with_policy(self, policy: ReadPolicy) -> Self {
        Combined { inner: self.inner.with_policy(policy) }
    }

    /// Sets for how many rounds a thread waits for another's reading before it reads the device.
    #[must_use]
    pub fn with_patience(self, rounds: u32) -> Self {
        Combined { inner: self.inner.with_patience(Patience(rounds)) }
    }

    /// Returns the counter.
    pub fn counter(&self) -> &C {
        self.inner.counter()
    }

    /// Returns the counter's value, which is older than the call by at most one device read.
    #[inline]
    pub fn read(&self) -> u64 {
        self.inner.read()
    }

    /// Reads the device, without waiting for another thread's reading: for signal handlers, which
    /// can interrupt the reading thread. The value can be ahead of what [`read`](Combined::read)
    /// returns next, by at most one device read.
    #[inline]
    pub fn read_directly(&self) -> u64 {
        self.inner.read_directly()
    }
}

/// Returns how many rounds of waiting take as long as [`READINGS`] readings of this counter: at
/// least 100, so that a short interrupt does not count as a lost CPU.
fn patience_for(counter: &impl Counter) -> Patience {
    const TRIES: u32 = 3;
    const ROUNDS: u32 = 64;
    let quickest = |work: &dyn Fn()| {
        let time = || {
            let from = system_now();
            work();
            system_now().since(from).0
        };
        (0..TRIES).map(|_| time()).min().unwrap_or(0)
    };
    let reading_ns = quickest(&|| {
        core::hint::black_box(counter.read());
    });
    let spin_ns = quickest(&|| (0..ROUNDS).for_each(relax)) as f64 / f64::from(ROUNDS);
    let wait_ns = READINGS.saturating_mul(reading_ns) as f64;
    let spins = (wait_ns / spin_ns.max(0.1)).clamp(100.0, f64::from(SPINS));
    let yields = (wait_ns - spins * spin_ns).max(0.0) / YIELD_NS as f64;
    // Wait for at most about a second, however slow the device is.
    Patience((spins + yields.min(3e6)) as u32)
}

impl<C: Counter> Counter for Combined<C> {
    #[inline]
    fn read(&self) -> u64 {
        self.inner.read()
    }

    #[inline]
    fn bits(&self) -> u32 {
        self.inner.bits()
    }
}
