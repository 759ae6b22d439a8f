//! Tokio's budget of a task: after a number of ready futures in one turn, a task must yield.
//!
//! Without the feature `tokio-time`, and outside of a task of tokio's, the budget is unlimited.

#[cfg(feature = "tokio-time")]
mod budget {
    use core::task::{Context, Poll};
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

    /// Returns whether a future has used up the budget since `before`. Its deadline then needs
    /// none: it would never be seen otherwise.
    pub fn is_used_up_since(before: Left) -> bool {
        before.0 && !left().0
    }
}

#[cfg(not(feature = "tokio-time"))]
mod budget {
    use core::task::{Context, Poll};

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
    pub fn is_used_up_since(_: Left) -> bool {
        false
    }
}

pub use budget::{is_used_up_since, left, proceed};
