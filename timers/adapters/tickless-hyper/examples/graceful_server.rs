//! An HTTP server that closes slow connections and shuts down gracefully.
//!
//! A client has ten seconds to send a request's header. A request whose `grpc-timeout` passes is
//! answered with 504. On Ctrl-C the server accepts no more connections, waits for running requests,
//! and closes the remaining ones after five seconds. With `--self-test` the program is also the
//! client, and ends by itself.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tickless::future::TimerSource;
use tickless_hyper::{DeadlineHeader, TicklessTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const HEADER: Duration = Duration::from_secs(10);
const LAST_REQUESTS: Duration = Duration::from_secs(5);

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let slow = request.uri().path() == "/slow";
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello\n")));
    let work = async {
        if slow {
            tickless::future::sleep(Duration::from_millis(300)).await;
        }
    };
    let timers = TimerSource::process().expect("the connection has them");
    if DeadlineHeader::grpc().scope(timers, request.headers(), work).await.is_err() {
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    }
    Ok(response)
}

async fn serve(listener: TcpListener, stop: impl Future) -> Result<(), Box<dyn Error>> {
    let timer = TicklessTimer::of_process()?;
    let (closing, _) = watch::channel(());
    let (mut connections, mut stop) = (JoinSet::new(), pin!(stop));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                connections.spawn(connection(socket, timer.clone(), closing.subscribe()));
            }
            _ = &mut stop => break,
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    closing.send_replace(());
    let rest = async { while connections.join_next().await.is_some() {} };
    if tickless::future::timeout(LAST_REQUESTS, rest).await.is_err() {
        println!("some connections did not end in time");
    }
    Ok(())
}

async fn connection(socket: TcpStream, timer: TicklessTimer, mut closing: watch::Receiver<()>) {
    let connection = http1::Builder::new()
        .timer(timer)
        .header_read_timeout(HEADER)
        .serve_connection(TokioIo::new(socket), service_fn(answer));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        println!("a connection ended: {error}");
    }
}

async fn self_test(server: SocketAddr, stop: tokio::sync::oneshot::Sender<()>) {
    let socket = TcpStream::connect(server).await.expect("it listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("connected");
    tokio::spawn(connection);
    let request = |timeout: &str| {
        let request = Request::get("/slow").header("host", "here").header("grpc-timeout", timeout);
        request.body(Empty::<Bytes>::new()).expect("well formed")
    };
    let late = sender.send_request(request("5m")).await.expect("answered");
    assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    late.collect().await.expect("whole");
    sender.ready().await.expect("the connection is kept");
    let answer = sender.send_request(request("1H"));
    tickless::future::sleep(Duration::from_millis(100)).await;
    stop.send(()).expect("the server runs");
    let body = answer.await.expect("answered").collect().await.expect("whole").to_bytes();
    assert_eq!(&body[..], b"hello\n");
    tickless::future::sleep(Duration::from_millis(100)).await;
    assert!(TcpStream::connect(server).await.is_err(), "it accepts no more");
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("http://{address}/ and http://{address}/slow");
    if std::env::args().any(|argument| argument == "--self-test") {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let test = tokio::spawn(self_test(address, stop));
        serve(listener, stopped).await?;
        test.await?;
    } else {
        serve(listener, tokio::signal::ctrl_c()).await?;
    }
    println!("closed");
    Ok(())
}
