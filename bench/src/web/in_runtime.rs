//! Servers whose requests wait for timers: tokio's, and ours that tokio's runtime drives.

use super::guards::Guards;
use std::future::{Future, pending};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;
use tickless::tokio_time;

/// A sleep that a handler waits for.
const SLEEP: Duration = Duration::from_millis(2);
/// A deadline that passes.
const DEADLINE: Duration = Duration::from_millis(50);
/// A deadline that is dropped.
const DROPPED: Duration = Duration::from_secs(5);

/// One of two modules with the same functions.
pub trait Time: 'static {
    const NAME: &'static str;
    type Sleep: Future<Output = ()> + Send;

    fn sleep(after: Duration) -> Self::Sleep;

    fn push_out(sleep: Pin<&mut Self::Sleep>, after: Duration);

    fn timeout<F: Future<Output: Send> + Send>(
        after: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + Send;
}

/// `tokio::time`.
pub struct Tokio;

/// `tickless::tokio_time`. Its sleeps have a slack of this many microseconds, or the default slack.
pub struct Tickless<const SLACK_US: u64>;

pub const DEFAULT: u64 = u64::MAX;

impl Time for Tokio {
    const NAME: &'static str = "tokio";
    type Sleep = tokio::time::Sleep;

    fn sleep(after: Duration) -> tokio::time::Sleep {
        tokio::time::sleep(after)
    }

    fn push_out(sleep: Pin<&mut tokio::time::Sleep>, after: Duration) {
        sleep.reset(tokio::time::Instant::now() + after);
    }

    async fn timeout<F>(after: Duration, future: F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send,
    {
        tokio::time::timeout(after, future).await.ok()
    }
}

impl<const SLACK_US: u64> Time for Tickless<SLACK_US> {
    const NAME: &'static str = match SLACK_US {
        DEFAULT => "**tickless**",
        50 => "**tickless**, 50 us of slack",
        _ => "**tickless**, 1 ms of slack",
    };
    type Sleep = tokio_time::Sleep;

    fn sleep(after: Duration) -> tokio_time::Sleep {
        let sleep = tokio_time::sleep(after);
        match SLACK_US {
            DEFAULT => sleep,
            us => sleep.slack(Duration::from_micros(us)),
        }
    }

    fn push_out(sleep: Pin<&mut tokio_time::Sleep>, after: Duration) {
        sleep.reset(tokio_time::Instant::now() + after);
    }

    async fn timeout<F>(after: Duration, future: F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send,
    {
        tokio_time::timeout(after, future).await.ok()
    }
}

macro_rules! scene {
    ($(#[$doc:meta])* $scene:ident, $request:ident => $limit:expr) => {
        $(#[$doc])*
        pub struct $scene<T>(PhantomData<T>);

        impl<T: Time> Guards for $scene<T> {
            const NAME: &'static str = T::NAME;
            type Idle = T::Sleep;

            fn idle(after: Duration) -> T::Sleep {
                T::sleep(after)
            }

            fn push_out(idle: Pin<&mut T::Sleep>, after: Duration) {
                T::push_out(idle, after);
            }

            async fn limit<F: Future<Output: Send> + Send>($request: F) -> Option<F::Output> {
                $limit
            }
        }
    };
}

scene! {
    /// Each request sleeps before its answer.
    Sleeps, request => {
        T::sleep(SLEEP).await;
        Some(request.await)
    }
}

scene! {
    /// Each request waits until a deadline passes, then answers.
    Fires, request => {
        assert!(T::timeout(DEADLINE, pending::<()>()).await.is_none());
        Some(request.await)
    }
}

scene! {
    /// Each request has a deadline, which is dropped with its answer.
    Drops, request => T::timeout(DROPPED, request).await
}
