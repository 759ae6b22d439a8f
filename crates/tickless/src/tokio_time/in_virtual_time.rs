//! A tokio runtime of several threads on a virtual clock.

use crate::tokio_runtime::enter_until_the_thread_ends;
use crate::virtual_time::VirtualTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Builder;

/// A part of tokio's panic message when one of its timers is created in a runtime without timers.
const NO_TIMERS: &str = "timers are disabled";

/// Runs a test on a new multi-thread runtime of tokio's, which has `workers` workers, a reactor and
/// a new virtual clock. The test receives the clock. Returns the test's output.
///
/// All workers have [entered](VirtualTime::enter) the clock, so the timers of this module run on
/// it. Whenever all workers wait, the clock advances to the next expiry. It does not wait for I/O,
/// nor for `spawn_blocking`: wrap such a future in [`VirtualTime::outside`].
///
/// # Panics
///
/// If the test panics, with the same panic. The runtime has no timers of tokio's own, which would
/// wait for real time: a task that creates one panics, and if that task is the test, this
/// function's message explains why. Also panics if the system refuses a thread, or if there is no
/// worker.
#[track_caller]
#[expect(clippy::panic, reason = "it runs tests, which fail by panicking")]
pub fn run_in_virtual_time<F>(workers: usize, test: impl FnOnce(VirtualTime) -> F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let time = VirtualTime::new();
    let waiting = Arc::new(AtomicUsize::new(0));
    let (entered, idle, waits) = (time.clone(), time.clone(), Arc::clone(&waiting));
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_io()
        .on_thread_start(move || enter_until_the_thread_ends(&entered))
        .on_thread_park(move || {
            // If all workers wait, no task can run, so advance the clock: this worker has found the
            // queues empty, and a worker that has taken a task from them does not count as waiting.
            if waits.fetch_add(1, Ordering::SeqCst) + 1 == workers {
                idle.idle();
            }
        })
        .on_thread_unpark(move || {
            waiting.fetch_sub(1, Ordering::SeqCst);
        })
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("the runtime cannot be started: {error}"),
    };
    let ended = runtime.block_on(runtime.spawn(test(time)));
    ended.unwrap_or_else(|error| {
        let payload = error.into_panic();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        if text.is_some_and(|text| text.contains(NO_TIMERS)) {
            panic!(
                "the test creates a timer of tokio's, which virtual time does not move; use the \
                 timers of `tickless::tokio_time`, or tokio's own paused clock in a \
                 current-thread runtime"
            );
        }
        std::panic::resume_unwind(payload)
    })
}
