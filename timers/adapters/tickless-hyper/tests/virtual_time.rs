//! HTTP clients and servers over a pipe in memory; their timeouts of minutes are in virtual time.

#[path = "../../support/in_virtual_time.rs"]
mod in_virtual_time;

use bytes::Bytes;
use http_body_util::{Empty, Full};
use hyper::body::Incoming;
use hyper::rt::Timer;
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use in_virtual_time::in_virtual_time;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tickless::VirtualTime;
use tickless_hyper::TicklessTimer;
use tokio::io::{AsyncWriteExt, duplex};

const MINUTE: Duration = Duration::from_secs(60);

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from("hello"))))
}

/// Returns whether `took` is within the slack of a sleep of length `expected`.
fn is_about(took: Duration, expected: Duration) -> bool {
    took >= expected && took <= expected + expected / 500
}

#[tokio::test(start_paused = true)]
async fn half_a_header_times_out_on_a_paused_clock() {
    let begin = tokio::time::Instant::now();
    let (mut client, server) = duplex(1024);
    client.write_all(b"GET / HTTP/1.1\r\nHost:").await.expect("the pipe has room");
    let served = server::conn::http1::Builder::new()
        .timer(TicklessTimer::new(tickless::tokio_time::timers()))
        .header_read_timeout(2 * MINUTE)
        .serve_connection(TokioIo::new(server), service_fn(hello))
        .await;
    assert!(served.expect_err("it was cut off").is_timeout());
    assert_eq!(begin.elapsed(), 2 * MINUTE);
}

/// Goal: a loop over sleeps that are ready at once lets the runtime's other tasks run.
#[tokio::test]
async fn ready_sleeps_let_other_tasks_run() {
    let of_process = TicklessTimer::of_process().expect("threads can be started");
    for timer in [TicklessTimer::new(tickless::tokio_time::timers()), of_process] {
        let past = timer.now() - Duration::from_millis(1);
        let (other, mut turns) = (tokio::spawn(async {}), 0);
        while !other.is_finished() && turns < 100_000 {
            turns += 1;
            timer.sleep(Duration::ZERO).await;
            timer.sleep_until(past).await;
        }
        assert!(turns <= 128, "{turns}");
    }
}

#[test]
fn each_request_has_its_own_timeout() {
    in_virtual_time(|time| async move {
        let (client, server) = duplex(1024);
        let served = tokio::spawn(
            server::conn::http1::Builder::new()
                .timer(TicklessTimer::new(&time))
                .header_read_timeout(2 * MINUTE)
                .serve_connection(TokioIo::new(server), service_fn(hello)),
        );
        let (mut sender, connection) =
            client::conn::http1::handshake(TokioIo::new(client)).await.expect("connected");
        tokio::spawn(connection);
        for _ in 0..10 {
            time.timers().sleep(MINUTE).await;
            let answer = sender.send_request(Request::new(Empty::<Bytes>::new())).await;
            assert_eq!(answer.expect("answered").status(), 200);
        }
        let begin = time.now();
        let closed = served.await.expect("no panic");
        assert!(closed.is_ok() || closed.is_err_and(|error| error.is_timeout()));
        assert!(is_about(time.now() - begin, 2 * MINUTE));
    });
}

#[test]
fn a_silent_http2_peer_is_given_up() {
    in_virtual_time(|time| async move {
        let (mut client, server) = duplex(1 << 16);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("room");
        // An empty SETTINGS frame, and one that acknowledges the server's.
        client.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.expect("room");
        client.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).await.expect("room");
        let begin = time.now();
        let served = server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TicklessTimer::new(&time))
            .keep_alive_interval(Some(5 * MINUTE))
            .keep_alive_timeout(MINUTE)
            .serve_connection(TokioIo::new(server), service_fn(hello))
            .await;
        let error = served.expect_err("it was given up");
        assert!(error.is_timeout(), "{error:?}");
        let took = time.now() - begin;
        assert!(is_about(took, 6 * MINUTE), "{took:?}");
    });
}

#[test]
fn foreign_sleeps_are_replaced() {
    let time = VirtualTime::new();
    let timer = TicklessTimer::new(&time);
    let begin = timer.now();
    let mut sleep: Pin<Box<dyn hyper::rt::Sleep>> = Box::pin(Foreign);
    timer.reset(&mut sleep, begin + MINUTE);
    time.block_on(sleep);
    assert!(is_about(timer.now() - begin, MINUTE));
}

struct Foreign;

impl Future for Foreign {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl hyper::rt::Sleep for Foreign {}
