//! Random histories of tower's services: requests that are answered, hang, panic or are dropped,
//! behind a timeout and a rate limit, in runtimes that are dropped.

#![allow(clippy::disallowed_methods, reason = "tests sleep")]

#[path = "../../../tickless/tests/support/histories.rs"]
mod histories;

use histories::{OnPurpose, Rng, end_after, hush, seed, wait_until};
use std::collections::BTreeMap;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless_tower::{RateLimitLayer, TimeoutLayer};
use tower::timeout::error::Elapsed;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

#[derive(Clone, Copy)]
enum Request {
    Answer(Duration),
    Fail,
    Hang,
    PanicInCall,
    PanicInFuture,
}

type Ends = Arc<Mutex<BTreeMap<&'static str, u64>>>;

struct End {
    ends: Ends,
    how: Option<&'static str>,
}

impl Drop for End {
    fn drop(&mut self) {
        let early = if std::thread::panicking() { "panicked" } else { "dropped" };
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        *ends.entry(self.how.unwrap_or(early)).or_default() += 1;
    }
}

async fn send<S>(mut service: S, request: Request, timeout: Duration, mut end: End)
where
    S: Service<Request, Response = (), Error = BoxError>,
{
    let ready = service.ready().await.expect("the service is always ready");
    let begun = Instant::now();
    let answer = ready.call(request).await;
    // tokio and the timers read the system's clock in different ways.
    let took = begun.elapsed() + Duration::from_micros(20);
    end.how = Some(match answer {
        Ok(()) => "answered",
        Err(error) if error.is::<Elapsed>() => {
            assert!(took >= timeout, "a timeout of {timeout:?} after {took:?}");
            "elapsed"
        }
        Err(_) => "failed",
    });
}

/// Goal: each request ends once, as its service chose; the rate is kept, and no timer is left.
#[test]
fn each_request_ends_once() {
    hush();
    let mut rng = Rng::new(seed("attack", "each_request_ends_once"));
    let timers = Timers::builder().bases(2).start().expect("the system starts threads");
    let (ends, mut sent) = (Ends::default(), 0);
    let end = end_after(Duration::from_millis(1_500));
    while Instant::now() < end {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.expect("a runtime");
        let timeout = Duration::from_nanos(rng.of_any_size(22));
        let (rate, per) = (1 + rng.below(8), Duration::from_micros(500));
        let (begun, passed) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let (clock, counted) = (timers.clone(), Arc::clone(&passed));
        let service = service_fn(move |request: Request| {
            counted.fetch_add(1, Ordering::Relaxed);
            if matches!(request, Request::PanicInCall) {
                panic_any(OnPurpose);
            }
            let timers = clock.clone();
            async move {
                match request {
                    Request::Answer(after) => {
                        timers.sleep(after).await;
                        Ok(())
                    }
                    Request::Hang => std::future::pending().await,
                    Request::PanicInFuture => panic_any(OnPurpose),
                    Request::Fail | Request::PanicInCall => Err(BoxError::from("failed")),
                }
            }
        });
        let layers = ServiceBuilder::new()
            .layer(RateLimitLayer::new(&timers, rate, per).expect("a rate"))
            .layer(TimeoutLayer::new(&timers, timeout));
        let limited = Arc::new(tokio::sync::Mutex::new(layers.service(service)));
        for _ in 0..rng.below(40) {
            let request = match rng.below(8) {
                0..3 => Request::Answer(Duration::from_nanos(rng.of_any_size(22))),
                3 => Request::Fail,
                4..6 => Request::Hang,
                6 => Request::PanicInCall,
                _ => Request::PanicInFuture,
            };
            sent += 1;
            let limited = Arc::clone(&limited);
            let end = End { ends: Arc::clone(&ends), how: None };
            // One caller at a time waits for the rate; the answers are awaited together.
            let task = runtime.spawn(async move {
                let shared = service_fn(move |request| {
                    let limited = Arc::clone(&limited);
                    async move {
                        let mut service = limited.lock().await;
                        let answer = service.ready().await?.call(request);
                        drop(service);
                        answer.await
                    }
                });
                send(shared, request, timeout, end).await;
            });
            if rng.below(8) == 0 {
                task.abort();
            }
        }
        std::thread::sleep(Duration::from_nanos(rng.of_any_size(22)));
        let periods = begun.elapsed().as_nanos() / per.as_nanos() + 2;
        let most = u128::from(rate) * periods;
        let passed = u128::from(passed.load(Ordering::Relaxed));
        assert!(passed <= most, "{passed} requests in {periods} periods of {rate}");
        match rng.below(2) {
            0 => drop(runtime),
            _ => runtime.shutdown_background(),
        }
    }
    let ended = || ends.lock().expect("no panic under it").clone();
    wait_until("each request has one end", || ended().values().sum::<u64>() == sent);
    wait_until("no timer is left", || timers.stats().pending() == 0);
    let total = timers.stats().total();
    assert_eq!(total.armed, total.fired + total.cancelled);
    let ways: Vec<&str> = ended().into_keys().collect();
    assert_eq!(ways, ["answered", "dropped", "elapsed", "failed", "panicked"]);
}
