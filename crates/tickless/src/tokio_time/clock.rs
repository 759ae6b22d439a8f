//! The current clock of a thread: the process's clock, or a virtual clock that it has entered.

use crate::future::TimerSource;
use crate::virtual_time::VirtualTime;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use tickless_core::time::Instant;

thread_local! {
    /// The virtual clocks that this thread has entered. The innermost is last.
    static ENTERED: RefCell<Vec<VirtualTime>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a thread on a virtual clock; from [`enter`].
#[must_use = "the thread leaves the virtual clock as soon as this is dropped"]
pub struct Entered {
    time: VirtualTime,
    /// Makes the type `!Send`: the guard belongs to its thread.
    on_thread: PhantomData<*const ()>,
}

/// Creates a paused virtual clock that starts at the current time, for [`enter`]: the counterpart
/// of tokio's `start_paused`.
pub fn start_paused() -> VirtualTime {
    VirtualTime::with_builder(crate::builder::Builder::new().bases(1), crate::future::now())
}

/// Puts this thread on a virtual clock until the returned guard is dropped.
///
/// [`Instant::now`](super::Instant::now) returns the time of that clock, and the sleeps, intervals
/// and timeouts that the thread creates with this module run on it. Those created earlier stay on
/// their clocks. If a thread has entered several clocks, it uses the innermost.
///
/// A runtime with several threads must enter the clock on each of them: in `on_thread_start`, with
/// `std::mem::forget(tokio_time::enter(&time))`.
pub fn enter(time: &VirtualTime) -> Entered {
    ENTERED.with_borrow_mut(|entered| entered.push(time.clone()));
    Entered { time: time.clone(), on_thread: PhantomData }
}

/// Runs a future on this thread and a new virtual clock, and blocks until it is ready. The clock
/// advances to the next expiry whenever the future waits, so a sleep of hours takes no real time.
/// Futures that do I/O need a runtime around this call, and [`outside`](VirtualTime::outside).
pub fn run_paused<F: Future>(future: F) -> F::Output {
    let time = start_paused();
    let _entered = enter(&time);
    time.block_on(future)
}

/// Stops the virtual clock that this thread has entered.
///
/// # Panics
///
/// If the thread is not on a virtual clock, or the clock is already stopped, as in tokio.
#[track_caller]
pub fn pause() {
    let time = entered_or_panic();
    assert!(!time.is_paused(), "time is already frozen");
    time.pause();
}

/// Makes the virtual clock that this thread has entered run with real time.
///
/// # Panics
///
/// If the thread is not on a virtual clock, or the clock is already running, as in tokio.
#[track_caller]
pub fn resume() {
    let time = entered_or_panic();
    assert!(time.is_paused(), "time is not frozen");
    time.resume();
}

/// Advances the virtual clock that this thread has entered by `duration`, and yields once to other
/// tasks.
///
/// # Panics
///
/// If the thread is not on a virtual clock, or the clock runs with real time, as in tokio.
pub async fn advance(duration: Duration) {
    let time = entered_or_panic();
    assert!(time.is_paused(), "time is not frozen");
    time.advance(duration);
    yield_once().await;
}

#[track_caller]
#[expect(
    clippy::panic,
    reason = "these functions have tokio's signatures, and panic where they do"
)]
fn entered_or_panic() -> VirtualTime {
    match ENTERED.with_borrow(|entered| entered.last().cloned()) {
        Some(time) => time,
        None => panic!("this thread is on no virtual clock; call tokio_time::enter first"),
    }
}

async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// The timers with which this thread creates futures.
pub(super) enum Current {
    Process,
    Virtual(TimerSource),
}

pub(super) fn current() -> Current {
    // While a thread's thread-locals are destroyed, it has left all clocks.
    let entered = ENTERED.try_with(|entered| entered.borrow().last().map(TimerSource::from));
    entered.ok().flatten().map_or(Current::Process, Current::Virtual)
}

impl Current {
    pub(super) fn now(&self) -> Instant {
        match self {
            Current::Process => crate::future::now(),
            Current::Virtual(timers) => timers.now(),
        }
    }

    pub(super) fn sleep_until(&self, deadline: Instant) -> crate::future::Sleep {
        match self {
            Current::Process => crate::future::sleep_until(deadline),
            Current::Virtual(timers) => timers.sleep_until(deadline),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Guards may be dropped in any order.
        let left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let at = entered.iter().rposition(|time| time.is_same(&self.time));
            at.map(|at| entered.remove(at))
        });
        // Drop it outside of the borrow: dropping the last clone of a clock may run user code.
        drop(left);
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entered").field(&self.time).finish()
    }
}
