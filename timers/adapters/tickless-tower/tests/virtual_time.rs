//! The services in virtual time, with exact times. `beside_tower.rs` compares two with tower's.

use http::Request;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::VirtualTime;
use tickless::time::Instant;
use tickless_tower::{DeadlineHeader, DeadlineLayer, TimeoutLayer};
use tickless_tower::{InvalidRate, RateLimit, RateLimitLayer};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

const MINUTE: Duration = Duration::from_secs(60);

/// Goal: a deadline travels through a server to the client inside of it, and errors name it.
#[test]
fn a_deadline_is_received_and_sent() {
    let time = VirtualTime::new();
    let second = Duration::from_secs(1);
    let sent = Arc::new(AtomicU64::new(0));
    let (counted, timers) = (Arc::clone(&sent), time.timers().clone());
    // The next server takes a minute, and its client waits for two.
    let next = service_fn(move |request: Request<()>| {
        let left = DeadlineHeader::grpc().read(request.headers());
        counted.fetch_add(left.map_or(1, |left| left.as_nanos() as u64), Ordering::Relaxed);
        let sleep = timers.sleep(MINUTE);
        async move {
            sleep.await;
            Ok::<_, BoxError>(())
        }
    });
    let header = DeadlineHeader::grpc();
    let mut server = ServiceBuilder::new()
        .layer(DeadlineLayer::receive(&time, header.clone()))
        .layer(DeadlineLayer::send(header.margin(second)))
        .layer(TimeoutLayer::new(&time, 2 * MINUTE))
        .service(next);
    for (text, scope, took, left, error) in [
        ("none", 0, MINUTE, 1, ""),
        ("61S", 0, MINUTE, 60_000_000_000, ""),
        ("5S", 0, 5 * second, 4_000_000_000, "ambient deadline"),
        // The layers take the deadline of a scope around them, too.
        ("none", 5, 5 * second, 4_000_000_000, "ambient deadline"),
        ("1S", 0, Duration::ZERO, 0, "no time is left"),
        ("0n", 0, Duration::ZERO, 0, "no time is left"),
    ] {
        let mut request = Request::new(());
        request.headers_mut().insert("grpc-timeout", text.parse().expect("a value"));
        let begin = time.now();
        let at = if scope == 0 { Instant::NEVER } else { begin + scope * second };
        let answer = async { server.ready().await?.call(request).await };
        let ended = time.block_on(time.timers().deadline_scope(at, answer)).expect("ends inside");
        assert_eq!((time.now() - begin, sent.swap(0, Ordering::Relaxed)), (took, left), "{text}");
        let message = ended.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(error) && message.is_empty() == error.is_empty(), "{message}");
        time.assert_idle();
    }
}

#[test]
fn unused_requests_do_not_accumulate() {
    let time = VirtualTime::new();
    let mut service =
        RateLimit::new(service_fn(|()| ready(Ok::<_, BoxError>(()))), &time, 2, MINUTE).unwrap();
    time.block_on(async {
        service.ready().await.unwrap().call(()).await.unwrap();
        time.timers().sleep(10 * MINUTE).slack(Duration::ZERO).await;
        let begin = time.now();
        for _ in 0..3 {
            service.ready().await.unwrap().call(()).await.unwrap();
        }
        assert_eq!(time.now() - begin, MINUTE);
    });
}

#[test]
fn an_invalid_rate_is_an_error_that_explains_it() {
    let time = VirtualTime::new();
    let refused = RateLimitLayer::new(&time, 0, MINUTE).unwrap_err();
    assert_eq!(refused, InvalidRate { requests: 0, per: MINUTE });
    assert_eq!(refused.to_string(), "a rate of 0 requests in 60s; both must be above zero");
    assert!(RateLimitLayer::new(&time, 1, Duration::ZERO).is_err());
}
