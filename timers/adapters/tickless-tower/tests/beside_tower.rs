//! Compares tower's own services, on tokio's paused clock, with ours.

use std::future::{pending, ready};
use std::time::Duration;
use tickless::VirtualTime;
use tower::timeout::error::Elapsed;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// Sends ten requests through `layers`, of which the last hangs. Returns the second at which each
/// ended, and the last one's error.
async fn ten_requests<L, S>(layers: L, now: impl Fn() -> Duration) -> (Vec<u64>, String)
where
    L: Layer<tower::util::BoxService<bool, (), BoxError>, Service = S>,
    S: Service<bool, Response = ()>,
    S::Error: Into<BoxError>,
{
    let inner = service_fn(|hangs: bool| async move {
        if hangs { pending().await } else { ready(Ok(())).await }
    });
    let mut service = layers.layer(tower::util::BoxService::new(inner));
    let begin = now();
    let mut seconds = Vec::new();
    for nth in 0..10 {
        let ready = match service.ready().await {
            Ok(ready) => ready,
            Err(error) => return (seconds, error.into().to_string()),
        };
        let answer = ready.call(nth == 9).await.map_err(Into::into);
        seconds.push((now() - begin).as_secs());
        if let Err(error) = answer {
            assert!(error.is::<Elapsed>());
            return (seconds, error.to_string());
        }
    }
    (seconds, "answered".into())
}

const TIMEOUT: Duration = Duration::from_secs(100);
const PER: Duration = Duration::from_secs(60);

#[test]
fn rate_limit_and_timeout_behave_like_tower() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let theirs = runtime.block_on(async {
        let layers = ServiceBuilder::new()
            .layer(tower::limit::RateLimitLayer::new(4, PER))
            .layer(tower::timeout::TimeoutLayer::new(TIMEOUT));
        let begin = tokio::time::Instant::now();
        ten_requests(layers, || begin.elapsed()).await
    });
    let time = VirtualTime::new();
    let layers = ServiceBuilder::new()
        .layer(tickless_tower::RateLimitLayer::new(&time, 4, PER).expect("a rate"))
        .layer(tickless_tower::TimeoutLayer::new(&time, TIMEOUT));
    let ours = time.block_on(ten_requests(layers, || time.now() - tickless::time::Instant::ZERO));
    assert_eq!(ours, theirs);
    assert_eq!(ours.0, [0, 0, 0, 0, 60, 60, 60, 60, 120, 220]);
    assert_eq!(ours.1, "request timed out");
}
