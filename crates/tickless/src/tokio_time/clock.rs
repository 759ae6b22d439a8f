//! Which clock a thread's timers run on: the process's, or a virtual one that was entered.

use crate::future::TimerSource;
use crate::virtual_time::VirtualTime;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use tickless_core::time::Instant;

thread_local! {
    /// The virtual times that this thread has entered, the innermost last.
    static ENTERED: RefCell<Vec<VirtualTime>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a thread on a virtual clock; from [`enter`].
#[must_use = "the thread leaves the virtual clock as soon as this is dropped"]
pub struct Entered {
    time: VirtualTime,
    /// It belongs to its thread.
    on_thread: PhantomData<*const ()>,
}

/// Creates a virtual clock that stands at the current time, for [`enter`]: the counterpart of
/// tokio's `start_paused`.
pub fn start_paused() -> VirtualTime {
    VirtualTime::with_builder(crate::builder::Builder::new().bases(1), crate::future::now())
}

/// Puts this thread on a virtual clock until the returned guard is dropped:
/// [`Instant::now`](super::Instant::now), and the sleeps, intervals and timeouts that it makes from
/// this module. Those made before stay on their own clocks. If a thread has entered several clocks,
/// the innermost counts.
///
/// A runtime of several threads has to enter it on each: in `on_thread_start`, with
/// `std::mem::forget(tokio_time::enter(&time))`.
pub fn enter(time: &VirtualTime) -> Entered {
    ENTERED.with_borrow_mut(|entered| entered.push(time.clone()));
    Entered { time: time.clone(), on_thread: PhantomData }
}

/// Runs a future on this thread and on a virtual clock, which moves to the next expiry whenever the
/// future waits: hours take no time. I/O futures need a runtime around this, or
/// [`outside`](VirtualTime::outside).
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

/// Lets the virtual clock that this thread has entered run with real time.
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

/// Moves the virtual clock that this thread has entered, and lets other tasks run before it
/// returns.
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

/// What this thread's timers are made from.
pub(super) enum Current {
    Process,
    Virtual(TimerSource),
}

pub(super) fn current() -> Current {
    // A thread that is ending has left all clocks.
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
        // Dropped outside of the borrow: the last clone of a clock may run code of the user's.
        drop(left);
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entered").field(&self.time).finish()
    }
}
