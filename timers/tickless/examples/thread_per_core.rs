//! Thread per core on tokio: each thread has a current-thread runtime and the sleeps of
//! [`local::future`](tickless::local::future), and shares nothing.
//!
//! Two threads, each an echo server with idle timeouts. However many connections a thread has, its
//! runtime sees one timer, which waits until the first timeout is due. Everything stays on its
//! thread, so it needs no lock and no atomic operation.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod support;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use support::{Clients, IDLE, MESSAGE_BYTES_MAX, now};
use tickless::local::Clock;
use tickless::local::future::{Handle, Sleep, Sleeps};
use tickless::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

const THREADS: usize = 2;
const CLIENTS: usize = 10;

/// Returns the output of `work`, or `None` if `sleep` completes first.
async fn before<F: Future>(sleep: &mut Sleep, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut *sleep).poll(cx).map(|()| None),
    })
    .await
}

/// Echoes messages until the client is silent for too long. Returns how many there were.
async fn echo(mut socket: TcpStream, timers: Handle) -> io::Result<u64> {
    let (mut last_heard, mut idle) = (timers.now(), timers.coarse_sleep(IDLE));
    let (mut echoes, mut bytes) = (0, [0; MESSAGE_BYTES_MAX]);
    while let Some(length) = before(&mut idle, socket.read(&mut bytes)).await {
        let length = length?;
        assert!(length > 0, "clients do not hang up");
        last_heard = timers.now();
        idle.reset(IDLE); // one store
        socket.write_all(&bytes[..length]).await?;
        echoes += 1;
    }
    assert!(timers.now() >= last_heard + IDLE, "never early");
    Ok(echoes)
}

async fn serve(listener: TcpListener, timers: Handle) -> io::Result<u64> {
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let (socket, _) = listener.accept().await?;
        connections.push(spawn_local(echo(socket, timers.clone())));
    }
    let mut echoes = 0;
    for connection in connections {
        echoes += connection.await??;
    }
    Ok(echoes)
}

/// One thread: its listener, its runtime, its timers.
fn run(address: Sender<SocketAddr>) -> io::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sleeps, tasks) = (Sleeps::new(Clock::new(now)), LocalSet::new());
    let timers = sleeps.handle();
    let server = tasks.run_until(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        address.send(listener.local_addr()?).map_err(io::Error::other)?;
        serve(listener, timers).await
    });
    let sleep_until = |deadline: Instant| tokio::time::sleep(deadline - now());
    let echoes = runtime.block_on(sleeps.drive(server, now, sleep_until));
    assert_eq!(sleeps.pending(), 0, "every sleep has completed or been dropped");
    echoes
}

fn main() -> io::Result<()> {
    let (address, addresses) = channel();
    let servers = [(); THREADS].map(|()| {
        let address = address.clone();
        std::thread::spawn(move || run(address))
    });
    let clients = addresses.iter().take(THREADS).map(|server| Clients::start(server, CLIENTS));
    let clients: Vec<Clients> = clients.collect();
    let mut echoes = 0;
    for server in servers {
        echoes += server.join().expect("no assertion fails")?;
    }
    println!("{echoes} echoes on {CLIENTS} connections of each of {THREADS} threads");
    // No echo was lost. If a client was late with a message, its connection may have been closed
    // before the last one.
    let received: u64 = clients.into_iter().map(Clients::finish).sum();
    assert!(received > 0 && (received..=received + (CLIENTS * THREADS) as u64).contains(&echoes));
    Ok(())
}
