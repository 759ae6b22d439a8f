//! Tokio's budget of a task: after a number of ready futures in one turn, a task must yield.
//!
//! Without the feature `tokio-time`, and outside of a task of tokio's, the budget is unlimited.

use core::task::{Context, Poll};

#[cfg(feature = "tokio-time")]
mod budget {
    use super::{Context, Poll};
    use core::future::{Future, poll_fn};
    use core::pin::pin;
    use tokio::task::coop;

    /// Takes one unit of the budget for a future that is ready. If none is left, returns `Pending`
    /// and wakes the task after its turn.
    pub fn proceed(cx: &mut Context<'_>) -> Poll<()> {
        coop::poll_proceed(cx).map(|taken| taken.made_progress())
    }

    /// Whether some of the budget was left before a future was polled.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Left(bool);

    pub fn left() -> Left {
        Left(coop::has_budget_remaining())
    }

    /// Polls the deadline of a future that has just been polled. If that future has used up the
    /// budget, the deadline needs none: it would never be seen otherwise.
    #[inline]
    pub fn poll_after<T>(
        before: Left,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if before.0 && !left().0 {
            return pin!(coop::unconstrained(poll_fn(poll))).poll(cx);
        }
        poll(cx)
    }
}

#[cfg(not(feature = "tokio-time"))]
mod budget {
    use super::{Context, Poll};

    #[inline(always)]
    pub fn proceed(_: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Left;

    #[inline(always)]
    pub fn left() -> Left {
        Left
    }

    #[inline(always)]
    pub fn poll_after<T>(
        _: Left,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        poll(cx)
    }
}

pub use budget::{left, poll_after, proceed};
