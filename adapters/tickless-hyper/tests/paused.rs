//! hyper's server on timers that tokio's runtime drives, and on its paused clock.

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::time::Duration;
use tickless_hyper::TicklessTimer;

/// Goal: the timeout for a request's head passes on the paused clock of the runtime.
#[tokio::test(start_paused = true)]
async fn the_header_timeout_follows_a_paused_clock() {
    let (_client, server) = tokio::io::duplex(1024);
    let begin = tokio::time::Instant::now();
    let answer = |_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) };
    let mut builder = http1::Builder::new();
    let timer = TicklessTimer::new(tickless::tokio_time::timers());
    builder.timer(timer).header_read_timeout(Duration::from_secs(10));
    let served = builder.serve_connection(TokioIo::new(server), service_fn(answer)).await;
    assert!(served.is_err_and(|error| error.is_timeout()));
    assert_eq!(begin.elapsed(), Duration::from_secs(10));
}
