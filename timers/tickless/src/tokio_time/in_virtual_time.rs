//! A tokio runtime of several threads on a virtual clock.

use crate::platform::locked::locked;
use crate::tokio_runtime::enter_until_the_thread_ends;
use crate::virtual_time::VirtualTime;
use std::any::Any;
use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Mutex, Once};
use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;

/// A part of tokio's panic message when one of its timers is created in a runtime without timers.
const NO_TIMERS: &str = "timers are disabled";

thread_local! {
    /// The test whose tasks this thread runs.
    static TEST: RefCell<Option<Arc<Mutex<Option<AbortHandle>>>>> = const { RefCell::new(None) };
}

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
/// wait for real time: if a task creates one, that task panics, the test ends, and this function
/// panics with a message that explains why. To notice that in tasks that nothing joins, the first
/// call adds to the program's panic hook. Also panics if the system refuses a thread, or if there
/// is no worker.
#[track_caller]
#[expect(clippy::panic, reason = "it runs tests, which fail by panicking")]
pub fn run_in_virtual_time<F>(workers: usize, test: impl FnOnce(VirtualTime) -> F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let time = VirtualTime::new();
    let all = Arc::new(Mutex::new(Workers { waiting: 0, step: Step::None }));
    let (entered, clock, parks) = (time.clone(), time.clone(), Arc::clone(&all));
    let handle = Arc::new(Mutex::new(None));
    let own = Arc::clone(&handle);
    watch_panics();
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_io()
        .on_thread_start(move || {
            enter_until_the_thread_ends(&entered);
            TEST.set(Some(Arc::clone(&own)));
        })
        .on_thread_park(move || park(&parks, workers, &clock))
        .on_thread_unpark(move || locked(&all).waiting -= 1)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("the runtime cannot be started: {error}"),
    };
    let task = {
        // A task that panics waits for this lock, to find the handle in its place.
        let mut handle = locked(&handle);
        let task = runtime.spawn(test(time));
        *handle = Some(task.abort_handle());
        task
    };
    runtime.block_on(task).unwrap_or_else(|error| match error.try_into_panic() {
        Ok(payload) if !is_about_timers(&*payload) => panic::resume_unwind(payload),
        _ => panic!(
            "the test creates a timer of tokio's, which virtual time does not move; use the timers \
             of `tickless::tokio_time`, or tokio's own paused clock in a current-thread runtime"
        ),
    })
}

/// Makes the program's panic hook end a test when one of its tasks creates a timer of tokio's.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if is_about_timers(info.payload()) {
                // `Err` while the thread's thread-locals are being destroyed.
                let _ = TEST.try_with(|test| {
                    test.borrow().iter().for_each(|test| {
                        locked(test).iter().for_each(AbortHandle::abort);
                    });
                });
            }
            before(info);
        }));
    });
}

fn is_about_timers(panic: &dyn Any) -> bool {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.is_some_and(|text| text.contains(NO_TIMERS))
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
    /// A worker advances the clock, and the last of the other workers has begun to wait. That last
    /// one has perhaps armed a timer which this advance does not see.
    Missed,
    /// The step has perhaps woken tasks. A task that ends this state is queued behind them.
    Settling,
}

/// Called by a worker that has found no task to run. If it is the last one, it advances the clock.
///
/// After a step, other workers perhaps begin to wait although the step has woken tasks: they looked
/// for tasks before the step. They must not make the next step until the task that is queued behind
/// the woken ones has run: the worker that runs it looks for further tasks before it waits.
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
