//! Pins the measuring threads to CPUs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::LazyLock;

/// The CPUs that the program may use, read before any thread is pinned.
static ALLOWED: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let set = sched_getaffinity(None).expect("a thread's CPUs can be read");
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
});

/// Reads which CPUs there are. Must be called before the first pinning.
pub fn remember() -> usize {
    ALLOWED.len()
}

/// Pins the calling thread, and the threads that it starts, to the n-th CPU from the end: the first
/// CPU often handles interrupts.
pub fn pin(nth_from_end: usize) {
    set(&ALLOWED[ALLOWED.len() - 1 - nth_from_end % ALLOWED.len()..][..1]);
}

pub fn unpin() {
    set(&ALLOWED);
}

fn set(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).expect("a thread may stay on a CPU that it may use");
}

/// A half of the CPUs: one is for the server, one for its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    First,
    Second,
}

/// Keeps the calling thread to one half of the CPUs, if there are four or more.
pub fn keep_to_half(half: Half) {
    let (first, second) = ALLOWED.split_at(ALLOWED.len() / 2);
    match half {
        _ if ALLOWED.len() < 4 => unpin(),
        Half::First => set(first),
        Half::Second => set(second),
    }
}
