//! Slow shared counters that one thread reads for all: the core's combined counter on the host.

use crate::host::lock;
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
/// ten microseconds of waiting, a few more if there are others to run, one of them reads for
/// itself and the rest. That is also what happens in the child of a `fork`.
///
/// Allocates nothing and makes no system call besides the counter's own, but `sched_yield`
/// after a hundred rounds of waiting.
#[derive(Debug)]
pub struct Combined<C> {
    inner: combined::Combined<AtomicU64, C, fn(u32)>,
}

impl<C: Counter> Combined<C> {
    /// A hundred spins and twenty yields. From there on waiting would mean sleeping.
    pub const PATIENCE: Patience = Patience(120);

    /// Combines the reads of a counter. Reads it once.
    pub fn new(counter: C) -> Combined<C> {
        let relax: fn(u32) = lock::relax;
        let inner = combined::Combined::new(counter, relax).with_patience(Self::PATIENCE);
        Combined { inner }
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

/// A combined counter is a counter: a [`Clock`](super::Clock) may run on it.
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
