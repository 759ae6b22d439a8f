//! The services in virtual time, with exact times.

use std::future::{pending, ready};
use std::time::{Duration, Instant};
use tickless::VirtualTime;
use tickless_tower::{
    ExponentialBackoffMaker, InvalidBackoff, InvalidRate, RateLimit, RateLimitLayer, Timeout,
};
use tower::retry::Policy;
use tower::retry::backoff::{Backoff, MakeBackoff};
use tower::timeout::error::Elapsed;
use tower::util::rng::{HasherRng, Rng};
use tower::{BoxError, Service, ServiceExt, service_fn};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the default slack of a sleep.
fn slack(after: Duration) -> Duration {
    (after / 1_000).min(Duration::from_millis(50))
}

/// Goal: a request that hangs fails after two minutes of virtual time, with tower's own error.
#[test]
fn a_request_that_hangs_times_out() {
    let (time, begun) = (VirtualTime::new(), Instant::now());
    let begin = time.now();
    let hangs = service_fn(|_: ()| pending::<Result<(), BoxError>>());
    let mut service = Timeout::new(hangs, &time, 2 * MINUTE);
    let error = time.block_on(async { service.ready().await?.call(()).await }).unwrap_err();
    assert!(error.is::<Elapsed>(), "{error}");
    let took = time.now() - begin;
    assert!(took >= 2 * MINUTE && took <= 2 * MINUTE + slack(2 * MINUTE), "{took:?}");
    assert!(begun.elapsed() < MINUTE);
    time.assert_idle();
}

/// Goal: a response or an error that arrives in time is returned unchanged.
#[test]
fn a_request_in_time_is_answered() {
    let time = VirtualTime::new();
    let timers = time.timers().clone();
    let slow = service_fn(move |work: Result<u32, &'static str>| {
        let sleep = timers.sleep(MINUTE);
        async move {
            sleep.await;
            work.map_err(BoxError::from)
        }
    });
    let mut service = Timeout::new(slow, &time, 2 * MINUTE);
    time.block_on(async {
        assert_eq!(service.ready().await.unwrap().call(Ok(7)).await.unwrap(), 7);
        let error = service.ready().await.unwrap().call(Err("no")).await.unwrap_err();
        assert_eq!(error.to_string(), "no");
    });
    time.assert_idle();
}

/// Returns the time at which each of `count` requests passes, in seconds after the first.
fn passes(time: &VirtualTime, requests: u64, per: Duration, count: usize) -> Vec<f64> {
    let begin = time.now();
    let clock = time.clone();
    let inner = service_fn(move |()| ready(Ok::<_, BoxError>(clock.now() - begin)));
    let mut service = RateLimit::new(inner, time, requests, per).expect("a rate");
    let mut passed = Vec::new();
    time.block_on(async {
        for _ in 0..count {
            let at = service.ready().await.expect("ready").call(()).await.expect("answered");
            passed.push(at.as_secs_f64());
        }
    });
    time.assert_idle();
    passed
}

/// Goal: the requests of a period pass at once; further ones wait exactly until the next period.
#[test]
fn the_rate_is_kept_exactly() {
    let passed = passes(&VirtualTime::new(), 3, 10 * MINUTE, 8);
    assert_eq!(passed, [0.0, 0.0, 0.0, 600.0, 600.0, 600.0, 1200.0, 1200.0]);
    assert_eq!(passes(&VirtualTime::new(), 1, MINUTE, 3), [0.0, 60.0, 120.0]);
}

/// Goal: requests that a period did not use are not available in the next.
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
fn invalid_settings_return_an_error_that_explains_them() {
    let time = VirtualTime::new();
    let refused = RateLimitLayer::new(&time, 0, MINUTE).unwrap_err();
    assert_eq!(refused, InvalidRate { requests: 0, per: MINUTE });
    assert_eq!(refused.to_string(), "a rate of 0 requests in 60s; both must be above zero");
    assert!(RateLimitLayer::new(&time, 1, Duration::ZERO).is_err());

    let backoff = |min, max, jitter| {
        ExponentialBackoffMaker::new(&time, min, max, jitter, HasherRng::default()).err()
    };
    let (short, long) = (Duration::from_secs(1), MINUTE);
    assert_eq!(
        backoff(long, short, 0.0),
        Some(InvalidBackoff::MinAboveMax { min: long, max: short })
    );
    assert_eq!(backoff(Duration::ZERO, Duration::ZERO, 0.0), Some(InvalidBackoff::NoPause));
    for jitter in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
        let refused = backoff(short, long, jitter).expect("refused");
        assert!(matches!(refused, InvalidBackoff::Jitter(_)), "{refused}");
    }
    assert_eq!(backoff(short, long, 0.5), None);
}

/// A generator whose jitter is always one half.
#[derive(Clone)]
struct Half;

impl Rng for Half {
    fn next_u64(&mut self) -> u64 {
        1 << 63
    }
}

/// Goal: pauses double up to the longest, and jitter adds at most its share.
#[test]
fn pauses_grow_to_the_longest() {
    let time = VirtualTime::new();
    let pauses = |jitter| -> Vec<f64> {
        let mut maker = ExponentialBackoffMaker::new(
            &time,
            Duration::from_secs(1),
            Duration::from_secs(10),
            jitter,
            Half,
        )
        .expect("valid");
        let mut backoff = maker.make_backoff();
        let pause = |_| (backoff.next_backoff().deadline() - time.now()).as_secs_f64();
        (0..40).map(pause).collect()
    };
    assert_eq!(pauses(0.0)[..6], [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]);
    assert_eq!(pauses(0.0)[39], 10.0);
    let half = Half.next_f64();
    assert!((0.4..0.6).contains(&half));
    assert!((pauses(1.0)[0] - (1.0 + half)).abs() < 1e-6);
    assert_eq!(pauses(1.0)[3..6], [10.0, 10.0, 10.0]);
}

/// A policy for tower's own `Retry`, with our backoff.
#[derive(Clone)]
struct Retries<B> {
    backoff: B,
    left: u32,
}

impl<B: Backoff + Clone> Policy<u32, u32, BoxError> for Retries<B> {
    type Future = B::Future;

    fn retry(&mut self, _: &mut u32, result: &mut Result<u32, BoxError>) -> Option<B::Future> {
        self.left = self.left.checked_sub(1)?;
        result.is_err().then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &u32) -> Option<u32> {
        Some(*request)
    }
}

/// Goal: retries under tower's own `Retry` reach a service that was down for ten minutes.
#[test]
fn retries_reach_a_server_that_recovers() {
    let time = VirtualTime::new();
    let (begin, clock) = (time.now(), time.clone());
    let server = service_fn(move |request: u32| {
        let is_up = clock.now() - begin >= 10 * MINUTE;
        ready(if is_up { Ok(request + 1) } else { Err(BoxError::from("down")) })
    });
    let mut maker = ExponentialBackoffMaker::new(
        &time,
        Duration::from_millis(50),
        MINUTE,
        0.99,
        HasherRng::default(),
    )
    .expect("valid");
    let policy = Retries { backoff: maker.make_backoff(), left: 100 };
    let mut service = tower::retry::Retry::new(policy, server);
    let answer = time.block_on(async { service.ready().await?.call(1).await });
    assert_eq!(answer.unwrap(), 2);
    let took = time.now() - begin;
    assert!(took >= 10 * MINUTE && took <= 11 * MINUTE + slack(MINUTE), "{took:?}");
    time.assert_idle();
}
