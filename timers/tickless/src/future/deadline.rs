//! Deadlines that reach everything that is done inside of a future.

use super::{Elapsed, Sleep, sleep_until};
use crate::platform::coop;
use crate::timer::ambient;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tickless_core::time::{Instant, Ns};

pin_project! {
    /// A future that yields another future's output, or [`Elapsed`] if the scope's deadline passes
    /// first; from [`deadline_scope`] and [`propagate_deadline`]. 104 bytes larger than the inner
    /// future.
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct DeadlineScope<F> {
        #[pin]
        sleep: Sleep,
        #[pin]
        future: F,
        is_propagated: bool,
    }
}

/// Runs `future` with the ambient deadline `at`, a time on the clock of [`now`](super::now): the
/// counterpart of `context.WithDeadline` in Go, and of a deadline in gRPC. Yields the future's
/// output, or [`Elapsed`] if it is not ready before `at`.
///
/// ```
/// use std::time::Duration;
/// use tickless::VirtualTime;
/// use tickless::future::remaining;
///
/// const SECOND: Duration = Duration::from_secs(1);
///
/// let time = VirtualTime::new();
/// let timers = time.timers();
/// let query = async || timers.timeout_after(60 * SECOND, std::future::pending::<()>()).await;
/// let request = async {
///     timers.sleep(3 * SECOND).await;
///     assert_eq!(remaining(), Some(2 * SECOND));
///     query().await // would take a minute
/// };
/// let ended = time.block_on(timers.deadline_scope(time.now() + 5 * SECOND, request));
/// assert!(ended.unwrap().unwrap_err().is_ambient);
/// # Ok::<(), tickless::driver::StartTimersError>(())
/// ```
///
/// While `future` is polled:
///
/// - [`remaining`] returns the time that is left until the earliest of the deadlines around it.
/// - A [`timeout`](super::timeout) or scope with a later deadline arms no timer. If it waits when
///   the scope's deadline passes, it returns `Elapsed` with
///   [`is_ambient`](Elapsed#structfield.is_ambient). A timeout that is first polled after that, for
///   example of a retry, stays pending, and the scope ends.
///
/// The scope ends when its deadline passes, unless `future` is ready by then. Even if the deadline
/// has already passed, `future` is polled first.
///
/// The deadline reaches what is polled on the same thread inside of `future`, and not what `future`
/// spawns: see [`propagate_deadline`]. In an executor inside of `future` that has its own wakers,
/// such as `FuturesUnordered`, each timeout arms its own timer, and the scope ends them all. A
/// future that is borrowed by a scope and outlives it must be polled again afterwards, as `.await`
/// does: its timeouts then arm their timers.
///
/// A deadline is an instant of one clock. Timers on another clock, such as real ones inside of a
/// scope in virtual time, ignore it; a scope on another clock hides the deadline from its own
/// future. The timers of the process, those that a program starts and those of tokio's runtimes are
/// on one clock, unless the runtime's clock was paused. [`Instant::NEVER`] stands for no deadline.
pub fn deadline_scope<F: Future>(at: Instant, future: F) -> DeadlineScope<F> {
    DeadlineScope::new(sleep_until(at), future)
}

/// Runs `future` with the earliest deadline of the scopes around the caller, for a task to spawn:
/// `spawn(propagate_deadline(work))`. The task arms its own timer. Outside of all scopes, `future`
/// has no deadline.
pub fn propagate_deadline<F: Future>(future: F) -> DeadlineScope<F> {
    let sleep =
        ambient::innermost(|scope| Sleep::new(scope.timers, scope.earliest.into(), scope.slack));
    let sleep = sleep.unwrap_or_else(|| Sleep::new(None, Instant::NEVER, Ns::ZERO));
    DeadlineScope { sleep, future, is_propagated: true }
}

/// Returns the time that is left until the earliest deadline of the scopes around the caller, on
/// the clock of these scopes; zero if it has passed. `None` outside of all scopes.
pub fn remaining() -> Option<Duration> {
    ambient::innermost(|scope| Instant::from(scope.earliest) - Instant::from(scope.now()))
}

impl<F> DeadlineScope<F> {
    pub(super) fn new(sleep: Sleep, future: F) -> DeadlineScope<F> {
        DeadlineScope { sleep, future, is_propagated: false }
    }
}

impl<F: Future> Future for DeadlineScope<F> {
    type Output = Result<F::Output, Elapsed>;

    #[cfg_attr(debug_assertions, track_caller)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let deadline = this.sleep.deadline();
        if deadline == Instant::NEVER {
            return this.future.poll(cx).map(Ok);
        }
        loop {
            let scope = this.sleep.entry.scope(cx.waker());
            let has_passed = scope.is_some_and(|scope| scope.has_passed);
            let before = coop::left();
            let polled = match scope {
                Some(scope) => scope.enter(|| this.future.as_mut().poll(cx)),
                None => this.future.as_mut().poll(cx),
            };
            if let Poll::Ready(output) = polled {
                return Poll::Ready(Ok(output));
            }
            let ambient = if has_passed {
                this.is_propagated.then_some(deadline.to_ns())
            } else {
                let mut entry = this.sleep.as_mut().project().entry;
                let mut elapsed = entry.as_mut().poll_in_scope(cx);
                if elapsed.is_pending() && coop::is_used_up_since(before) && entry.has_fired() {
                    elapsed = Poll::Ready(None);
                }
                match ready!(elapsed) {
                    // The deadline has just passed. Poll the future once more: timeouts that wait
                    // inside of it return their errors.
                    None => continue,
                    outer => outer,
                }
            };
            return Poll::Ready(Err(Elapsed::new(deadline, ambient)));
        }
    }
}
