use std::future::{Future, Pending, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickless::future;

/// How long a connection may be silent.
pub const IDLE: Duration = Duration::from_secs(60);
const REQUEST: Duration = Duration::from_secs(5);

pub trait Time: 'static {
    type Sleep: Future<Output = ()> + Send;

    fn sleep(after: Duration) -> Self::Sleep;

    fn push_out(sleep: Pin<&mut Self::Sleep>, after: Duration);

    /// Returns the output of a future; `None` if it takes too long.
    fn timeout<F: Future<Output: Send> + Send>(
        after: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + Send;
}

pub struct Nothing;

pub struct Tokio;

pub struct Tickless;

/// `tickless::tokio_time`. Its sleeps have a slack of this many microseconds, or the default slack.
pub struct InRuntime<const SLACK_US: u64>;

pub const DEFAULT: u64 = u64::MAX;

impl Time for Nothing {
    type Sleep = Pending<()>;

    fn sleep(_: Duration) -> Pending<()> {
        pending()
    }

    fn push_out(_: Pin<&mut Pending<()>>, _: Duration) {}

    async fn timeout<F: Future<Output: Send> + Send>(_: Duration, future: F) -> Option<F::Output> {
        Some(future.await)
    }
}

impl Time for Tickless {
    type Sleep = future::CoarseSleep;

    fn sleep(after: Duration) -> Self::Sleep {
        future::coarse_sleep(after)
    }

    fn push_out(sleep: Pin<&mut Self::Sleep>, after: Duration) {
        sleep.reset(after);
    }

    async fn timeout<F: Future<Output: Send> + Send>(
        after: Duration,
        future: F,
    ) -> Option<F::Output> {
        future::timeout(after, future).await.ok()
    }
}

/// Implements [`Time`] by a module with tokio's interface.
macro_rules! like_tokio {
    ([$($generics:tt)*] $type:ty, $($module:ident)::+, $set_up:expr) => {
        impl $($generics)* Time for $type {
            type Sleep = $($module)::+::Sleep;

            fn sleep(after: Duration) -> Self::Sleep {
                let set_up: fn(Self::Sleep) -> Self::Sleep = $set_up;
                set_up($($module)::+::sleep(after))
            }

            fn push_out(sleep: Pin<&mut Self::Sleep>, after: Duration) {
                sleep.reset($($module)::+::Instant::now() + after);
            }

            async fn timeout<F: Future<Output: Send> + Send>(
                after: Duration,
                future: F,
            ) -> Option<F::Output> {
                $($module)::+::timeout(after, future).await.ok()
            }
        }
    };
}

like_tokio!([] Tokio, tokio::time, |sleep| sleep);

like_tokio!([<const SLACK_US: u64>] InRuntime<SLACK_US>, tickless::tokio_time, |sleep| {
    match SLACK_US {
        DEFAULT => sleep,
        us => sleep.slack(Duration::from_micros(us)),
    }
});

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scene {
    /// Each request has a deadline, which is dropped with its answer.
    Guarded,
    /// Requests have no deadlines, and the push-outs of idle timeouts are timed.
    IdleOnly,
    /// Each request sleeps for 2 ms before its answer.
    Sleeps,
    /// Each request waits until a deadline of 50 ms passes, then answers.
    Fires,
}

impl Scene {
    pub async fn answer<T: Time, F: Future<Output: Send> + Send>(
        self,
        request: F,
    ) -> Option<F::Output> {
        match self {
            Scene::Guarded => return T::timeout(REQUEST, request).await,
            Scene::IdleOnly => {}
            Scene::Sleeps => T::sleep(Duration::from_millis(2)).await,
            Scene::Fires => {
                let passed = T::timeout(Duration::from_millis(50), pending::<()>()).await;
                assert!(passed.is_none());
            }
        }
        Some(request.await)
    }

    pub fn push_out<T: Time>(self, idle: Pin<&mut T::Sleep>) {
        let begun = (self == Scene::IdleOnly).then(Instant::now);
        T::push_out(idle, IDLE);
        if let Some(begun) = begun {
            let took = begun.elapsed();
            // A longer time means that the thread lost its CPU.
            if took <= Duration::from_micros(50) {
                COUNT.fetch_add(1, Ordering::Relaxed);
                NS.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
            }
        }
    }
}

static COUNT: AtomicU64 = AtomicU64::new(0);
static NS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of timed push-outs, and their total time in ns, two reads of the clock
/// included.
pub fn push_outs() -> (u64, u64) {
    (COUNT.load(Ordering::Relaxed), NS.load(Ordering::Relaxed))
}
