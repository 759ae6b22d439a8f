//! A tokio runtime of several threads on a virtual clock.

use crate::platform::locked::locked;
use crate::tokio_runtime::enter_until_the_thread_ends;
use crate::virtual_time::VirtualTime;
use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use std::{panic, thread};
use tokio::runtime::Builder;
use tokio::task::{AbortHandle, JoinError, JoinHandle};

/// A part of tokio's panic message when one of its timers is created in a runtime without timers.
const NO_TIMERS: &str = "timers are disabled";

/// After how long a clock that stands makes `run_in_virtual_time` print its advice.
const PATIENCE: Duration = Duration::from_secs(10);
const ADVICE: &str = "virtual time has stood for 10 s, and a timer is pending: a task, a blocking \
    closure or a `busy` guard keeps the clock from advancing; a blocking closure that waits for \
    the clock must wait in `VirtualTime::block_on`, not in `Handle::block_on`";

thread_local! {
    /// The test whose tasks this thread runs.
    static TEST: RefCell<Option<Arc<Mutex<Option<AbortHandle>>>>> = const { RefCell::new(None) };
}

/// Runs a test on a new multi-thread runtime of tokio's, which has `workers` workers, a reactor and
/// a new virtual clock. The test receives the clock. Returns the test's output.
///
/// All threads of the runtime have [entered](VirtualTime::enter) the clock, so the timers of this
/// module run on it. The clock advances to the next expiry when no thread of the runtime works:
/// while a worker runs a task, also in `block_in_place`, or a closure of `spawn_blocking` runs, it
/// stands, as tokio's paused clock does. It does not wait for I/O, nor for threads that the program
/// starts: wrap such a future in [`VirtualTime::outside`].
///
/// A blocking closure that waits for the clock must say so, because the clock stands for it: wait
/// in [`VirtualTime::block_on`] instead of `Handle::block_on`. A clock that stands for ten seconds
/// although a timer is pending prints this advice to standard error.
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
    let [clock, named, entered, stopped, parks, unparks] = std::array::from_fn(|_| time.clone());
    let handle = Arc::new(Mutex::new(None));
    let own = Arc::clone(&handle);
    watch_panics();
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_io()
        // A thread without work ends at once, so each of the runtime's threads works or is parked.
        .thread_keep_alive(Duration::ZERO)
        // Called by the thread that starts another one, so the clock stands from then on.
        .thread_name_fn(move || {
            named.count_thread();
            "virtual-time".into()
        })
        .on_thread_start(move || {
            entered.enter_thread();
            enter_until_the_thread_ends(&entered);
            TEST.set(Some(Arc::clone(&own)));
        })
        .on_thread_stop(move || stopped.end_thread())
        .on_thread_park(move || parks.park_thread())
        .on_thread_unpark(move || unparks.count_thread())
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("the runtime cannot be started: {error}"),
    };
    clock.set_runtime(Some(runtime.handle().clone()));
    let _runs = Runs(&clock);
    let task = {
        // A task that panics waits for this lock, to find the handle in its place.
        let mut handle = locked(&handle);
        let task = runtime.spawn(test(time));
        *handle = Some(task.abort_handle());
        task
    };
    wait_for(task, &clock).unwrap_or_else(|error| match error.try_into_panic() {
        Ok(payload) if !is_about_timers(&*payload) => panic::resume_unwind(payload),
        _ => panic!(
            "the test creates a timer of tokio's, which virtual time does not move; use the timers \
             of `tickless::tokio_time`, or tokio's own paused clock in a current-thread runtime"
        ),
    })
}

/// When dropped, ends the clock's reference to the runtime, which refers to the clock.
struct Runs<'a>(&'a VirtualTime);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.set_runtime(None);
    }
}

/// Waits for a task. Prints an advice, once, if the clock stands although a timer is pending.
#[expect(clippy::print_stderr, reason = "a test that hangs must print why")]
fn wait_for<T>(mut task: JoinHandle<T>, clock: &VirtualTime) -> Result<T, JoinError> {
    let (waker, mut advice) = (Waker::from(Arc::new(Unpark(thread::current()))), Some(ADVICE));
    loop {
        if let Poll::Ready(output) = Pin::new(&mut task).poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let (begin, stood) = (Instant::now(), clock.now());
        thread::park_timeout(PATIENCE);
        let stands = begin.elapsed() >= PATIENCE && clock.now() == stood;
        if stands && clock.next_event().is_some() {
            advice.take().inspect(|advice| eprintln!("{advice}"));
        }
    }
}

/// Wakes a thread.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
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
