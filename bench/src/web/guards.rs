//! The timers of a server: none, tokio's, ours.

use std::cell::Cell;
use std::future::{Future, Pending, pending};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickless::future::{CoarseSleep, coarse_sleep};
use tokio::time::Sleep;

/// How long a connection may be silent.
pub const IDLE: Duration = Duration::from_secs(60);
/// How long a request may take.
pub const REQUEST: Duration = Duration::from_secs(5);

/// A server's timers. Called within its runtime.
pub trait Guards: 'static {
    const NAME: &'static str;

    /// Completes when a connection has been silent for too long.
    type Idle: Future<Output = ()> + Send;

    fn idle(after: Duration) -> Self::Idle;

    fn push_out(idle: Pin<&mut Self::Idle>, after: Duration);

    /// Returns the result of a request; `None` if it takes too long.
    fn limit<F>(request: F) -> impl Future<Output = Option<F::Output>> + Send
    where
        F: Future<Output: Send> + Send;
}

/// No timers at all.
pub struct Nothing;

impl Guards for Nothing {
    const NAME: &'static str = "no timers";
    type Idle = Pending<()>;

    fn idle(_: Duration) -> Pending<()> {
        pending()
    }

    fn push_out(_: Pin<&mut Pending<()>>, _: Duration) {}

    async fn limit<F: Future<Output: Send> + Send>(request: F) -> Option<F::Output> {
        Some(request.await)
    }
}

/// tokio's timers.
pub struct Tokio;

impl Guards for Tokio {
    const NAME: &'static str = "tokio: `timeout`, `Sleep`";
    type Idle = Sleep;

    fn idle(after: Duration) -> Sleep {
        tokio::time::sleep(after)
    }

    fn push_out(idle: Pin<&mut Sleep>, after: Duration) {
        idle.reset(tokio::time::Instant::now() + after);
    }

    async fn limit<F: Future<Output: Send> + Send>(request: F) -> Option<F::Output> {
        tokio::time::timeout(REQUEST, request).await.ok()
    }
}

/// Tickless's timers.
pub struct Tickless;

impl Guards for Tickless {
    const NAME: &'static str = "**tickless**: `deadline`, `CoarseSleep`";
    type Idle = CoarseSleep;

    fn idle(after: Duration) -> CoarseSleep {
        coarse_sleep(after)
    }

    fn push_out(idle: Pin<&mut CoarseSleep>, after: Duration) {
        idle.reset(after);
    }

    async fn limit<F: Future<Output: Send> + Send>(request: F) -> Option<F::Output> {
        tickless::future::timeout(REQUEST, request).await.ok()
    }
}

/// Idle timeouts of `G` with timed push-outs, and requests without deadlines.
pub struct IdleOnly<G>(PhantomData<G>);

impl<G: Guards> Guards for IdleOnly<G> {
    const NAME: &'static str = G::NAME;
    type Idle = G::Idle;

    fn idle(after: Duration) -> G::Idle {
        G::idle(after)
    }

    fn push_out(idle: Pin<&mut G::Idle>, after: Duration) {
        let begun = Instant::now();
        G::push_out(idle, after);
        PushOuts::note(begun.elapsed());
    }

    async fn limit<F: Future<Output: Send> + Send>(request: F) -> Option<F::Output> {
        Some(request.await)
    }
}

/// The number of timed push-outs, and their total time, two reads of the clock included.
#[derive(Clone, Copy, Default)]
pub struct PushOuts {
    count: u64,
    ns: u64,
}

/// The number of push-outs that a thread counts by itself.
const BATCH: u64 = 256;
static COUNT: AtomicU64 = AtomicU64::new(0);
static NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static BATCHED: Cell<PushOuts> = const { Cell::new(PushOuts { count: 0, ns: 0 }) };
}

impl PushOuts {
    fn note(took: Duration) {
        // A longer time means that the thread lost its CPU.
        if took > Duration::from_micros(50) {
            return;
        }
        let PushOuts { count, ns } = BATCHED.get();
        let sum = PushOuts { count: count + 1, ns: ns + took.as_nanos() as u64 };
        if sum.count < BATCH {
            BATCHED.set(sum);
            return;
        }
        BATCHED.set(PushOuts::default());
        COUNT.fetch_add(sum.count, Ordering::Relaxed);
        NS.fetch_add(sum.ns, Ordering::Relaxed);
    }

    pub fn so_far() -> PushOuts {
        PushOuts { count: COUNT.load(Ordering::Relaxed), ns: NS.load(Ordering::Relaxed) }
    }

    /// The average time since then; NaN without any.
    pub fn ns_each_since(before: PushOuts) -> f64 {
        let now = PushOuts::so_far();
        (now.ns - before.ns) as f64 / (now.count - before.count) as f64
    }
}
