//! A tokio runtime of several threads on a virtual clock.

use crate::platform::locked::locked;
use crate::tokio_runtime::enter_until_the_thread_ends;
use crate::virtual_time::VirtualTime;
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Handle};

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
    let all = Arc::new(Mutex::new(Workers { waiting: 0, step: Step::None }));
    let (entered, clock, parks) = (time.clone(), time.clone(), Arc::clone(&all));
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_io()
        .on_thread_start(move || enter_until_the_thread_ends(&entered))
        .on_thread_park(move || park(&parks, workers, &clock))
        .on_thread_unpark(move || locked(&all).waiting -= 1)
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

/// The workers of a runtime on virtual time.
struct Workers {
    /// How many wait, or are about to.
    waiting: usize,
    step: Step,
}

/// A step of the clock to the next expiry, which a worker makes before it waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    None,
    /// A worker advances the clock.
    Running,
    /// As `Running`, and concurrently another worker began to wait as the last one. It may have
    /// armed a timer that the running step does not see.
    Missed,
    /// The step may have woken tasks, and a task that does nothing is queued behind them.
    Settling,
}

/// Called by a worker that has found no task to run. If it is the last one, it advances the clock.
///
/// A step wakes tasks while other workers are about to wait, which looked for tasks before that. So
/// none of them may make the next step, until a task that is queued behind the woken ones has run:
/// its worker looks for further tasks before it waits.
fn park(all: &Arc<Mutex<Workers>>, workers: usize, clock: &VirtualTime) {
    let mut state = locked(all);
    state.waiting += 1;
    if state.waiting < workers {
        return;
    }
    match state.step {
        Step::None => {}
        Step::Running => {
            state.step = Step::Missed;
            return;
        }
        Step::Missed | Step::Settling => return,
    }
    state.step = Step::Running;
    drop(state);
    let has_fired = clock.idle();
    let mut state = locked(all);
    if !has_fired && state.step == Step::Running {
        state.step = Step::None;
        return;
    }
    state.step = Step::Settling;
    drop(state);
    let settled = Arc::clone(all);
    Handle::current().spawn(async move { locked(&settled).step = Step::None });
}
