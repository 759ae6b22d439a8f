//! An axum server whose requests have a deadline and a rate limit, set by a custom middleware and
//! by tower's layers.
//!
//! `Limits` holds the timers, so a test can run the router through minutes of virtual time. `main`
//! does that first, then serves a few real requests.

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{BoxError, Router};
use std::error::Error;
use std::time::Duration;
use tickless::VirtualTime;
use tickless::future::TimerSource;
use tickless_tower::{RateLimitLayer, TimeoutLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceBuilder;
use tower::buffer::BufferLayer;
use tower::timeout::error::Elapsed;
use tower::util::ServiceExt;

#[derive(Clone)]
struct Limits {
    timers: TimerSource,
    deadline: Duration,
    report: Duration,
}

/// The middleware: answers a request that misses its deadline with 504, and adds the time taken to
/// other responses.
async fn with_deadline(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let begun = limits.timers.now();
    let mut sleep = std::pin::pin!(limits.timers.sleep(limits.deadline));
    tokio::select! {
        mut response = next.run(request) => {
            let took = (limits.timers.now() - begun).as_millis().to_string();
            if let Ok(took) = took.parse() {
                response.headers_mut().insert("x-took-ms", took);
            }
            response
        }
        () = sleep.as_mut() => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

async fn report(State(limits): State<Limits>) -> &'static str {
    limits.timers.sleep(Duration::from_secs(40)).await;
    "a long report\n"
}

async fn hangs() -> &'static str {
    std::future::pending().await
}

async fn on_error(error: BoxError) -> StatusCode {
    if error.is::<Elapsed>() { StatusCode::REQUEST_TIMEOUT } else { StatusCode::BAD_GATEWAY }
}

fn router(limits: Limits) -> Result<Router, tickless_tower::InvalidRate> {
    // tower's layers allow two reports a minute, and half a minute for each.
    let rate = RateLimitLayer::new(&limits.timers, 2, Duration::from_secs(60))?;
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(on_error))
        .layer(BufferLayer::new(16))
        .layer(rate)
        .layer(TimeoutLayer::new(&limits.timers, limits.report));
    Ok(Router::new()
        .route("/report", get(report).layer(layers))
        .route("/hangs", get(hangs))
        .route("/", get(|| async { "hello\n" }))
        .layer(from_fn_with_state(limits.clone(), with_deadline))
        .with_state(limits))
}

async fn in_virtual_time(time: VirtualTime) -> Result<(), Box<dyn Error>> {
    let (deadline, report) = (Duration::from_secs(300), Duration::from_secs(30));
    let router = router(Limits { timers: TimerSource::from(&time), deadline, report })?;
    let begin = time.now();
    let ask = |path: &str| {
        router.clone().oneshot(Request::get(path).body(Body::empty()).expect("a path"))
    };

    let hello = ask("/").await?;
    assert_eq!((hello.status(), &hello.headers()["x-took-ms"]), (StatusCode::OK, &"0".parse()?));
    // The report takes 40 s, and its timeout is 30 s.
    for _ in 0..2 {
        assert_eq!(ask("/report").await?.status(), StatusCode::REQUEST_TIMEOUT);
    }
    let third = ask("/report");
    assert_eq!(third.await?.status(), StatusCode::REQUEST_TIMEOUT);
    assert!(time.now() - begin >= Duration::from_secs(90), "the third had to wait for its minute");
    let asked = time.now();
    assert_eq!(ask("/hangs").await?.status(), StatusCode::GATEWAY_TIMEOUT);
    println!("{:?} of virtual time", time.now() - begin);
    assert!(time.now() - asked >= deadline);
    Ok(())
}

async fn in_real_time() -> Result<(), Box<dyn Error>> {
    let timers = TimerSource::process()?;
    let deadline = Duration::from_millis(50);
    let router = router(Limits { timers, deadline, report: deadline })?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, router).await });
    for (path, expected) in [("/", "200"), ("/hangs", "504")] {
        let mut socket = tokio::net::TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        println!("{path}: {}", answer.lines().next().unwrap_or_default());
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let time = VirtualTime::new();
    let idle = time.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .on_thread_park(move || {
            idle.idle();
        })
        .build()?;
    runtime.block_on(in_virtual_time(time))?;
    tokio::runtime::Builder::new_multi_thread().enable_io().build()?.block_on(in_real_time())
}
