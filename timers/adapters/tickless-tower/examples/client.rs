//! A client made of tower's layers: four requests a second, half a second for each, and retries
//! with growing pauses. Its server sometimes fails or hangs.
//!
//! The client first runs an hour of requests in virtual time, then a second of real ones.

use std::time::Duration;
use tickless::VirtualTime;
use tickless::future::Sleep;
use tickless::future::TimerSource;
use tickless_tower::{RateLimitLayer, TimeoutLayer};
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

/// Up to ten tries, with pauses of 10 ms that double up to a second.
#[derive(Clone)]
struct TenTries {
    timers: TimerSource,
    tries: u32,
}

impl Policy<u64, u64, BoxError> for TenTries {
    type Future = Sleep;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, BoxError>) -> Option<Sleep> {
        if result.is_ok() || self.tries == 10 {
            return None;
        }
        let pause = Duration::from_millis(10 << (self.tries - 1)).min(Duration::from_secs(1));
        self.tries += 1;
        Some(self.timers.sleep(pause))
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

/// Fails every third time and hangs every seventh.
fn server() -> impl Service<u64, Response = u64, Error = BoxError, Future: Send> + Clone {
    let tries = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    service_fn(move |request: u64| {
        let nth = tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        async move {
            if nth.is_multiple_of(7) {
                std::future::pending::<()>().await;
            }
            if nth.is_multiple_of(3) { Err("busy".into()) } else { Ok(2 * request) }
        }
    })
}

async fn requests(timers: TimerSource, count: u64) -> Result<u64, BoxError> {
    let policy = TenTries { timers: timers.clone(), tries: 1 };
    let mut client = ServiceBuilder::new()
        .layer(RateLimitLayer::new(&timers, 4, Duration::from_secs(1))?)
        .layer(RetryLayer::new(policy))
        .layer(TimeoutLayer::new(&timers, Duration::from_millis(500)))
        .service(server());
    let mut sum = 0;
    for request in 0..count {
        sum += client.ready().await?.call(request).await?;
    }
    Ok(sum)
}

fn main() -> Result<(), BoxError> {
    let time = VirtualTime::new();
    let begin = time.now();
    let count = 4 * 3600;
    let sum = time.block_on(requests(TimerSource::from(&time), count))?;
    assert_eq!(sum, count * (count - 1));
    println!("{count} requests took {:?} of virtual time", time.now() - begin);
    time.assert_idle();

    let begun = std::time::Instant::now();
    // Any executor works; this one blocks the thread.
    let sum = VirtualTime::new().block_on(requests(TimerSource::process()?, 8))?;
    println!("8 requests took {:?}, and came to {sum}", begun.elapsed());
    Ok(())
}
