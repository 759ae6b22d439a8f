//! A server on tokio's multi-thread runtime that disconnects silent clients and shuts down
//! gracefully.
//!
//! Each connection has one idle timeout, which every message pushes out: a [`CoarseSleep`], the
//! cheapest future to push out. On shutdown the server accepts no more connections, notifies the
//! open ones, which finish their current message, and gives them two seconds for that. It is a
//! function of any stream and any timers, so that its tests take no real time.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::VirtualTime;
use tickless::future::{CoarseSleep, TimerSource};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    HungUp,
    Idle,
    Stopped,
}

/// The settings of a server.
#[derive(Clone)]
struct Settings {
    timers: TimerSource,
    idle: Duration,
    /// The time that open connections have to finish on shutdown.
    grace: Duration,
}

/// Returns `Some` with the output of `work`, or `None` if the sleep completes first.
async fn unless_idle<F: Future>(
    idle: std::pin::Pin<&mut CoarseSleep>,
    work: F,
) -> Option<F::Output> {
    let (mut idle, mut work) = (idle, pin!(work));
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => idle.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Sends back what the client sends.
async fn echo<S>(socket: S, settings: Settings, mut stop: watch::Receiver<bool>) -> io::Result<End>
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = split(socket);
    let mut idle = pin!(settings.timers.coarse_sleep(settings.idle));
    let mut bytes = [0; 1024];
    loop {
        let received = unless_idle(idle.as_mut(), async {
            tokio::select! {
                biased;
                read = reader.read(&mut bytes) => Some(read),
                _ = stop.wait_for(|stopped| *stopped) => None,
            }
        });
        match received.await {
            None => return Ok(End::Idle),
            Some(None) => return Ok(End::Stopped),
            Some(Some(length)) => match length? {
                0 => return Ok(End::HungUp),
                length => writer.write_all(&bytes[..length]).await?,
            },
        }
        idle.as_mut().reset(settings.idle); // a few nanoseconds, no lock
    }
}

/// Serves until `stop`, then waits for the open connections. Returns how many ended for each
/// reason.
async fn serve(
    listener: TcpListener,
    settings: Settings,
    stop: watch::Receiver<bool>,
) -> io::Result<[u64; 3]> {
    let mut stopped = stop.clone();
    let ends: Arc<[AtomicU64; 3]> = Arc::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                let (settings, stop) = (settings.clone(), stop.clone());
                let ends = Arc::clone(&ends);
                connections.spawn(async move {
                    if let Ok(end) = echo(socket, settings, stop).await {
                        ends[end as usize].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            Some(_) = connections.join_next() => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    let mut grace = pin!(settings.timers.coarse_sleep(settings.grace));
    // Dropping the set drops the connections that have not ended.
    unless_idle(grace.as_mut(), rest).await;
    Ok([0, 1, 2].map(|end| ends[end].load(Ordering::Relaxed)))
}

/// One client disconnects, one stops sending, and one is connected when the server stops.
async fn clients(server: std::net::SocketAddr, stop: watch::Sender<bool>) -> io::Result<()> {
    let mut connected = [server; 3].map(TcpStream::connect).into_iter();
    let mut next = || connected.next().expect("three");
    let (mut talks, mut silent, mut stays) = (next().await?, next().await?, next().await?);
    for socket in [&mut talks, &mut stays] {
        socket.write_all(b"hello").await?;
        let mut received = [0; 5];
        socket.read_exact(&mut received).await?;
        assert_eq!(&received, b"hello");
    }
    drop(talks);
    let still_there = async {
        for _ in 0..20 {
            tickless::future::sleep(Duration::from_millis(20)).await;
            stays.write_all(b".").await?;
            assert_eq!(stays.read_u8().await?, b'.');
        }
        io::Result::Ok(())
    };
    let begun = std::time::Instant::now();
    let (talked, hung_up) = tokio::join!(still_there, silent.read_u8());
    talked?;
    assert!(hung_up.is_err(), "the silent client is hung up on");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    stop.send_replace(true);
    assert!(stays.read_u8().await.is_err(), "the server has stopped");
    Ok(())
}

fn main() -> io::Result<()> {
    minutes_of_silence();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let timers = TimerSource::process().map_err(io::Error::other)?;
        let (idle, grace) = (Duration::from_millis(300), Duration::from_secs(2));
        let (stop, stopped) = watch::channel(false);
        let clients = tokio::spawn(clients(address, stop));
        let ends = serve(listener, Settings { timers, idle, grace }, stopped).await?;
        clients.await??;
        let [hung_up, idle, stopped] = ends;
        println!("{hung_up} hung up, {idle} fell silent, {stopped} when the server stopped");
        assert_eq!(ends, [1, 1, 1]);
        Ok(())
    })
}

/// The connection in virtual time: ten minutes of silence end it, nine do not.
fn minutes_of_silence() {
    const MINUTE: Duration = Duration::from_secs(60);
    let time = VirtualTime::new();
    let timers = TimerSource::from(&time);
    let settings = Settings { timers: timers.clone(), idle: 10 * MINUTE, grace: MINUTE };
    let (mut client, server) = tokio::io::duplex(64);
    let (_stop, stopped) = watch::channel(false);
    let talk = async {
        for _ in 0..6 {
            timers.sleep(9 * MINUTE).await;
            client.write_all(b"x").await.expect("open");
            assert_eq!(client.read_u8().await.expect("an echo"), b'x');
        }
        time.now()
    };
    let (end, last_heard) =
        time.block_on(async { tokio::join!(echo(server, settings, stopped), talk) });
    assert_eq!(end.expect("no error"), End::Idle);
    let silent = time.now() - last_heard;
    assert!(silent >= 10 * MINUTE && silent <= 12 * MINUTE, "{silent:?}");
    time.assert_idle();
}
