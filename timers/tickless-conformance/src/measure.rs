//! Measurements, which are reported and not judged: lateness, the cost of many timers in one tick,
//! and the memory that is left allocated after many timers were armed and cancelled.

use crate::timers::{Cancel, Timers};
use core::cell::Cell;
use fastrand::Rng;
use serde::Serialize;
use std::alloc::{GlobalAlloc, Layout, System};
use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Measured {
    /// The greatest lateness of a timer when time moves by single ticks, in nanoseconds.
    pub lateness_ns: u64,
    pub promised_ns: u64,
    /// The duration of one `advance` by a tick: its 99.99th percentile divided by its median, where
    /// [`CLUSTER`] timers are due in one tick, and as many others are spread over all ticks.
    pub cluster: f64,
    /// How many more bytes are allocated after a million timers were armed and cancelled than after
    /// the first hundred thousand. Zero without [`CountingAllocator`].
    pub growth_bytes: i64,
}

/// The number of timers that are due in one tick.
pub const CLUSTER: u32 = 100_000;

pub(crate) fn measure<T: Timers>() -> Measured {
    let (lateness_ns, promised_ns) = lateness::<T>();
    Measured { lateness_ns, promised_ns, cluster: cluster::<T>(), growth_bytes: growth::<T>() }
}

/// Returns the greatest lateness of random timers, and the greatest that was promised.
fn lateness<T: Timers>() -> (u64, u64) {
    let tick = T::GRANULARITY.max(1);
    let mut rng = Rng::with_seed(1);
    let mut timers = T::new();
    let deadlines: Vec<u64> =
        (0..2_000).map(|_| rng.u64(1..20_000) * tick + rng.u64(..tick)).collect();
    let mut promised = 0;
    for (&deadline, key) in deadlines.iter().zip(0..) {
        timers.arm(key, deadline);
        promised = promised.max(T::may_fire(0, deadline).end().saturating_sub(deadline));
    }
    let mut worst = 0;
    for now in (1..=25_000).map(|ticks| ticks * tick) {
        timers.advance(now, &mut |_, key| {
            worst = worst.max(now.saturating_sub(deadlines[key as usize]));
        });
    }
    (worst, promised)
}

/// Returns the 99.99th percentile of the duration of a tick, divided by the median, with a cluster
/// (many timers that are due in one tick).
fn cluster<T: Timers>() -> f64 {
    let tick = T::GRANULARITY.max(1);
    let mut timers = T::new();
    for key in 0..CLUSTER {
        timers.arm(key, 10_000 * tick);
        timers.arm(CLUSTER + key, (1 + u64::from(key % 20_000)) * tick);
    }
    let mut durations: Vec<u64> = (1..=20_000)
        .map(|ticks| {
            let began = Instant::now();
            timers.advance(ticks * tick, &mut |_, _| {});
            u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    durations.sort_unstable();
    durations[durations.len() * 9_999 / 10_000] as f64
        / durations[durations.len() / 2].max(1) as f64
}

/// Returns by how many bytes the memory in use grows while timers are armed and cancelled.
fn growth<T: Timers>() -> i64 {
    if T::CANCEL == Cancel::None {
        return 0;
    }
    let tick = T::GRANULARITY.max(1);
    let mut timers = T::new();
    let mut now = 0;
    let mut churn = |rounds: u32| {
        for round in 0..rounds {
            timers.arm(round % 1_000, now + 60_000 * tick);
            timers.cancel(round % 1_000);
            if round % 1_000 == 0 {
                now += tick;
                timers.advance(now, &mut |_, _| {});
            }
        }
        bytes_in_use()
    };
    let before = churn(100_000);
    churn(900_000) - before
}

thread_local! {
    /// The bytes that this thread has allocated. Atomics would slow down timers that allocate.
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
}

/// Returns the bytes that the calling thread has allocated and not freed, in the sizes that it
/// requested. Zero without [`CountingAllocator`].
pub fn bytes_in_use() -> i64 {
    ALLOCATED.get()
}

/// Counts the bytes that each thread has allocated. A program that wants [`Measured::growth_bytes`]
/// measured declares this allocator:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tickless_conformance::CountingAllocator =
///     tickless_conformance::CountingAllocator;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

// SAFETY: each call is passed on to the system's allocator, which fulfils the trait's contract.
#[expect(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller of this function promises what the system's allocator requires.
        unsafe { System.realloc(memory, layout, size) }
    }
}

fn count(bytes: isize) {
    // A thread that ends can free memory after its thread-local counter has been dropped.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes as i64));
}
