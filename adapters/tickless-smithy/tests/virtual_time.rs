//! The SDK's sleeps and clock, on one virtual time.

use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tickless::VirtualTime;
use tickless_smithy::{TicklessSleep, VirtualTimeSource};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn an_hour_of_the_sdk_timeout() {
    let time = VirtualTime::new();
    let sleep = SharedAsyncSleep::new(TicklessSleep::new(&time));
    let clock = SharedTimeSource::new(VirtualTimeSource::new(&time));
    let (begun, day) = (Instant::now(), clock.now());
    let never = std::future::pending::<()>();
    assert!(time.block_on(Timeout::new(never, sleep.sleep(HOUR))).is_err());
    let passed = clock.now().duration_since(day).expect("forward");
    assert!(passed >= HOUR && passed <= HOUR + Duration::from_millis(50), "{passed:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    time.assert_idle();
}

/// A service that never answers the first request, fails the next two, and answers the fourth.
#[derive(Clone, Debug, Default)]
struct Flaky(Arc<AtomicU16>);

impl HttpConnector for Flaky {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        HttpConnectorFuture::new(async move {
            let code = match before {
                0 => std::future::pending().await,
                1 | 2 => 503,
                _ => 200,
            };
            let status = StatusCode::try_from(code).expect("a status");
            Ok(HttpResponse::new(status, SdkBody::from("ready")))
        })
    }
}

/// Goal: the SDK's own client waits ten minutes for an attempt, and minutes between attempts, in
/// virtual time. Sleeps that return at once would end the first attempt before its ten minutes, and
/// real ones would make the test run for minutes.
#[test]
fn minutes_of_the_clients_timeouts_and_retries() {
    const ATTEMPT: Duration = Duration::from_secs(600);
    const BACKOFF: Duration = Duration::from_secs(120);
    let time = VirtualTime::new();
    let service = Flaky::default();
    let connector = SharedHttpConnector::new(service.clone());
    let retries = RetryConfig::standard()
        .with_max_attempts(4)
        .with_initial_backoff(BACKOFF)
        .with_max_backoff(BACKOFF);
    let status = Operation::builder()
        .service_name("flaky")
        .operation_name("status")
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .endpoint_url("http://flaky")
        .no_auth()
        .standard_retry(&retries)
        .retry_classifier(HttpStatusCodeClassifier::default())
        .retry_classifier(TransientErrorClassifier::<std::fmt::Error>::new())
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).build())
        .sleep_impl(TicklessSleep::new(&time))
        .time_source(VirtualTimeSource::new(&time))
        .serializer(|()| Ok(HttpRequest::empty()))
        .deserializer::<u16, std::fmt::Error>(|response| match response.status().as_u16() {
            200 => Ok(200),
            _ => Err(OrchestratorError::operation(std::fmt::Error)),
        })
        .build();
    let (begun, virtual_begun) = (Instant::now(), time.now());
    assert_eq!(time.block_on(status.invoke(())).expect("the fourth attempt succeeds"), 200);
    assert_eq!(service.0.load(Ordering::Relaxed), 4);
    let passed = time.now() - virtual_begun;
    // The client draws each backoff at random between zero and its length.
    assert!(passed > ATTEMPT && passed <= ATTEMPT + 3 * BACKOFF, "{passed:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}
