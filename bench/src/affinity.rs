//! Which CPUs the measuring threads stay on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::LazyLock;

/// The CPUs that the program was started on, before anything was pinned.
static ALLOWED: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let set = sched_getaffinity(None).expect("the system tells a thread's CPUs");
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
});

/// Notes which CPUs there are. Call before the first pinning.
pub fn remember() -> usize {
    ALLOWED.len()
}

/// Keeps the calling thread, and the threads that it starts, on the n-th CPU from the end:
/// interrupts tend to go to the first one.
pub fn pin(nth_from_end: usize) {
    set(&ALLOWED[ALLOWED.len() - 1 - nth_from_end % ALLOWED.len()..][..1]);
}

/// Lets the calling thread, and the threads that it starts, go everywhere again.
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

/// Who has which CPUs while a server is measured.
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
