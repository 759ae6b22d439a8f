//! Work that is done on all CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, panic, thread};

/// Calls `work` with each number below `count`, on as many threads as there are CPUs, and returns
/// the results in order. A panic in `work` continues in the caller.
pub(crate) fn in_parallel<T: Send, All: FromIterator<T>>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> All {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let some = || {
            // Relaxed: the number is all that threads share.
            let number = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count);
            iter::from_fn(number).map(|at| (at, work(at))).collect::<Vec<_>>()
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut results = some();
        for other in others {
            results.extend(joined(other));
        }
        results
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Waits for a thread, and returns its result. A panic in it continues in the caller.
pub(crate) fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
}
