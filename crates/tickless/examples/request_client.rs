//! A client whose requests have a deadline, are retried with growing pauses, and finally give up;
//! and its tests, which take minutes of virtual time and no real time.
//!
//! The client opens connections through a closure: over TCP in `main`, through a pipe in memory
//! under virtual time, where only time passes.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::fmt;
use std::io;
use std::time::Duration;
use tickless::VirtualTime;
use tickless::future::{Elapsed, TimerSource};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};
use tokio::net::{TcpListener, TcpStream};

/// How long a client waits and retries.
#[derive(Clone, Copy)]
struct Patience {
    /// The limit for one attempt, including the connection.
    request: Duration,
    /// The first pause; each further one is twice as long.
    pause: Duration,
    longest_pause: Duration,
    /// The limit for all attempts and pauses together.
    total: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
struct GaveUp {
    tries: u32,
    last: io::Error,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gave up after {} tries; the last one: {}", self.tries, self.last)
    }
}

impl std::error::Error for GaveUp {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.last)
    }
}

/// Sends one line over one connection, and returns the line that comes back.
async fn try_once<S, F>(connect: F, line: &str) -> io::Result<String>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = io::Result<S>>,
{
    let mut socket = BufReader::new(connect.await?);
    socket.write_all(format!("{line}\n").as_bytes()).await?;
    let mut answer = String::new();
    match socket.read_line(&mut answer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer.trim_end().to_owned()),
    }
}

/// Retries until there is an answer or the time limit has passed. `chance` returns the random part
/// of a pause's second half, from 0 to 1, so that clients that fail together do not retry together.
async fn ask<S, F>(
    timers: &TimerSource,
    patience: Patience,
    mut chance: impl FnMut() -> f64,
    mut connect: impl FnMut() -> F,
    line: &str,
) -> Result<(String, u32), GaveUp>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = io::Result<S>>,
{
    let give_up = timers.now() + patience.total;
    let (mut tries, mut pause) = (0, patience.pause);
    loop {
        tries += 1;
        let tried = deadline(timers, patience.request, try_once(connect(), line)).await;
        let last = match tried.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Ok(answer) => return Ok((answer, tries)),
            Err(error) => error,
        };
        let wait = pause.mul_f64(0.5 + chance() / 2.0);
        if timers.now() + wait > give_up {
            return Err(GaveUp { tries, last });
        }
        timers.sleep(wait).await;
        pause = (pause * 2).min(patience.longest_pause);
    }
}

/// A future with a deadline, on the given timers.
async fn deadline<F: Future>(
    timers: &TimerSource,
    after: Duration,
    future: F,
) -> Result<F::Output, Elapsed> {
    match timers.timers() {
        Some(timers) => timers.timeout_after(after, future).await,
        None => tickless::future::timeout(after, future).await,
    }
}

/// A server that hangs, then closes the connection, and then answers.
async fn flaky_server(listener: TcpListener) -> io::Result<()> {
    let (hangs, _) = listener.accept().await?;
    let (hangs_up, _) = listener.accept().await?;
    drop(hangs_up);
    let (answers, _) = listener.accept().await?;
    let mut socket = BufReader::new(answers);
    let mut line = String::new();
    socket.read_line(&mut line).await?;
    socket.write_all(line.to_uppercase().as_bytes()).await?;
    drop(hangs);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    a_recovered_server_is_reached();
    the_client_gives_up_after_an_hour();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(flaky_server(listener));
        let patience = Patience {
            request: Duration::from_millis(100),
            pause: Duration::from_millis(10),
            longest_pause: Duration::from_secs(1),
            total: Duration::from_secs(10),
        };
        let timers = TimerSource::process()?;
        let connect = || TcpStream::connect(address);
        let (answer, tries) = ask(&timers, patience, || 0.5, connect, "hello").await?;
        println!("{answer} at the third try");
        assert_eq!((answer.as_str(), tries), ("HELLO", 3));
        server.await??;
        Ok(())
    })
}

const MINUTE: Duration = Duration::from_secs(60);

const PATIENT: Patience = Patience {
    request: Duration::from_secs(30),
    pause: Duration::from_secs(1),
    longest_pause: MINUTE,
    total: Duration::from_secs(3600),
};

/// A connection to a server in memory that answers, or to one that never does.
fn in_memory(answers: bool) -> DuplexStream {
    let (client, mut server) = duplex(64);
    if answers {
        // The pipe holds the answer before the request is sent.
        let written = pollster::block_on(server.write_all(b"here\n"));
        written.expect("the pipe has room");
    }
    // Keep the other end open: dropping it would close the connection, and this server hangs.
    std::mem::forget(server);
    client
}

/// A server that hangs for ten minutes is reached soon after.
fn a_recovered_server_is_reached() {
    let time = VirtualTime::new();
    let begin = time.now();
    let connect = || {
        let is_up = time.now() - begin >= 10 * MINUTE;
        std::future::ready(io::Result::Ok(in_memory(is_up)))
    };
    let timers = TimerSource::from(&time);
    let asked = ask(&timers, PATIENT, || 1.0, connect, "hello");
    let (answer, tries) = time.block_on(asked).expect("the server recovers");
    let took = time.now() - begin;
    assert_eq!(answer, "here");
    assert!(took >= 10 * MINUTE && took < 12 * MINUTE, "{took:?}");
    assert!((10..15).contains(&tries), "{tries} tries");
    time.assert_idle();
}

/// A client gives up after an hour of refused connections.
fn the_client_gives_up_after_an_hour() {
    let time = VirtualTime::new();
    let begin = time.now();
    let refuse =
        || std::future::ready(Err::<DuplexStream, _>(io::ErrorKind::ConnectionRefused.into()));
    let gave_up = time.block_on(ask(&TimerSource::from(&time), PATIENT, || 0.0, refuse, "hello"));
    let gave_up = gave_up.expect_err("no server answers");
    assert_eq!(gave_up.last.kind(), io::ErrorKind::ConnectionRefused);
    let took = time.now() - begin;
    assert!(took <= PATIENT.total && took > PATIENT.total - MINUTE, "{took:?}");
    time.assert_idle();
}
