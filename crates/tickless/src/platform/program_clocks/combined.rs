//! Slow shared counters that one thread reads for all: the core's combined counter on the host.

use crate::platform::system_clock::system_now;
use core::sync::atomic::AtomicU64;
use tickless_core::clock::combined::{self, Patience, ReadPolicy};
use tickless_core::clock::counter::{Counter, Hertz, Rating, Width};

/// A slow shared counter, read by one thread for all that want it at that moment.
///
/// [`read`](Combined::read) costs one device read if nobody else reads; otherwise it waits for
/// whoever does, and both get the same value. A value may be older than the call by at most one
/// device read. As long as the counter does not go back, neither do the values: for any thread,
/// and across threads that synchronise with each other.
///
/// A reader that loses its CPU in the middle does not hold the others up for long: after some
/// four times what a reading usually takes, one of them reads for itself and the rest. That is
/// also what happens in the child of a `fork`.
///
/// Waiting is spinning, and `sched_yield` from the 40th microsecond or so on. Allocates nothing,
/// and makes no other system call than the counter's own.
#[derive(Debug)]
pub struct Combined<C> {
    inner: combined::Combined<AtomicU64, C, fn(u32)>,
}

/// Rounds of waiting that are spins; from there on they are yields.
const SPINS: u32 = 2_000;
/// What a yield takes at least: a system call.
const YIELD_NS: u64 = 300;
/// How many readings a waiter waits for one.
const READINGS: u64 = 4;

/// Spins, then yields. Never sleeps: whoever has lost patience reads for itself.
fn relax(round: u32) {
    if round < SPINS { core::hint::spin_loop() } else { std::thread::yield_now() }
}

impl<C: Counter> Combined<C> {
    /// Combines the reads of a counter. Reads it a few times, to see how long that takes.
    pub fn new(counter: C) -> Combined<C> {
        let patience = patience_for(&counter);
        let relax: fn(u32) = relax;
        Combined { inner: combined::Combined::new(counter, relax).with_patience(patience) }
    }

    /// The same, by another policy: with [`ReadPolicy::Direct`] everybody reads the device.
    #[must_use]
    pub fn with_policy(self, policy: ReadPolicy) -> Self {
        Combined { inner: self.inner.with_policy(policy) }
    }

    /// The same, with waiters of other patience.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Combined { inner: self.inner.with_patience(patience) }
    }

    /// How it is read.
    pub fn policy(&self) -> ReadPolicy {
        self.inner.policy()
    }

    /// The counter itself.
    pub fn counter(&self) -> &C {
        self.inner.counter()
    }

    /// What the counter stands at, or stood at by one device read before the call.
    #[inline]
    pub fn read(&self) -> u64 {
        self.inner.read()
    }

    /// Reads the device, whoever else may be at it, and waits for nobody: for signal handlers,
    /// which may have interrupted the reader that others wait for. The value may be ahead of
    /// what [`read`](Combined::read) returns next, by one device read.
    #[inline]
    pub fn read_directly(&self) -> u64 {
        self.inner.read_directly()
    }
}

/// As many rounds as some readings of this counter take; at least a hundred spins, so that a short
/// interrupt does not count as a lost CPU.
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
    // At most a second's worth or so, should the device be that slow.
    Patience((spins + yields.min(3e6)) as u32)
}

/// A combined counter is a counter: a [`Clock`](super::kept::Clock) may run on it.
impl<C: Counter> Counter for Combined<C> {
    #[inline]
    fn read(&self) -> u64 {
        self.inner.read()
    }

    fn width(&self) -> Width {
        self.inner.width()
    }

    fn frequency(&self) -> Hertz {
        self.inner.frequency()
    }

    fn rating(&self) -> Rating {
        self.inner.rating()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
