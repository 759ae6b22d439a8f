//! The event loop and its tasks.

use async_executor::LocalExecutor;
use rustix::time::{ClockId, clock_gettime};
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};
use std::time::Duration;
use tickless::local::Clock;
use tickless::local::future::{Handle, Sleep, Sleeps};
use tickless::time::Instant;

const IDLE: Duration = Duration::from_millis(60);
const PAUSE: Duration = Duration::from_millis(2);
/// Sending them takes longer than `IDLE`, so the echo fails if it does not push its timeout out.
const MESSAGES: u8 = 40;

/// What the event loop waits with.
pub trait Wait {
    /// Wakes `waker` once, when the descriptor can be read.
    fn wake_when_readable(&self, fd: BorrowedFd<'_>, waker: &Waker) -> io::Result<()>;

    /// Waits until a descriptor can be read, and at most until `next`.
    fn wait(&self, next: Option<Instant>) -> io::Result<()>;
}

/// Reads the clock of the sleeps: that of io_uring's absolute timeouts.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_secs(time.tv_sec as u64) + Duration::from_nanos(time.tv_nsec as u64)
}

pub fn run(system: &impl Wait) -> io::Result<()> {
    let sleeps = Sleeps::new(Clock::new(now));
    let (ours, theirs) = UnixStream::pair()?;
    let executor = LocalExecutor::new();
    let client = executor.spawn(talk(theirs, system, sleeps.handle()));
    let server = executor.spawn(echo(ours, system, sleeps.handle()));
    loop {
        while executor.try_tick() {}
        if client.is_finished() && server.is_finished() {
            break;
        }
        system.wait(sleeps.next_event())?;
        sleeps.advance(now());
    }
    let echoed = pollster::block_on(server)?;
    assert_eq!((pollster::block_on(client)?, echoed), (MESSAGES, MESSAGES));
    assert_eq!(sleeps.pending(), 0);
    Ok(())
}

/// Sends messages with pauses, and counts the echoes until the other end hangs up.
async fn talk(mut socket: UnixStream, system: &impl Wait, timers: Handle) -> io::Result<u8> {
    socket.set_nonblocking(true)?;
    let mut pauses = timers.interval(PAUSE);
    let mut echoes = 0;
    for message in 0..MESSAGES {
        pauses.tick().await;
        socket.write_all(&[message])?;
        echoes += u8::from(read(&mut socket, system).await? == Some(message));
    }
    assert_eq!(read(&mut socket, system).await?, None, "it hangs up");
    Ok(echoes)
}

/// Echoes messages until none has come for [`IDLE`]. Returns how many there were.
async fn echo(mut socket: UnixStream, system: &impl Wait, timers: Handle) -> io::Result<u8> {
    socket.set_nonblocking(true)?;
    let mut idle = timers.coarse_sleep(IDLE);
    let mut echoes = 0;
    while let Some(message) = before(&mut idle, read(&mut socket, system)).await {
        socket.write_all(&[message?.expect("it waits for us")])?;
        idle.reset(IDLE); // one store
        echoes += 1;
    }
    // Closing it is not enough: a poll in io_uring keeps a socket open.
    socket.shutdown(Shutdown::Both)?;
    Ok(echoes)
}

/// Returns the output of `work`, or `None` if `sleep` completes first.
async fn before<F: Future>(sleep: &mut Sleep, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut *sleep).poll(cx).map(|()| None),
    })
    .await
}

/// Reads a byte. `None` at the end.
async fn read(socket: &mut UnixStream, system: &impl Wait) -> io::Result<Option<u8>> {
    let mut byte = [0];
    poll_fn(|cx| match socket.read(&mut byte) {
        Ok(count) => Poll::Ready(Ok((count > 0).then_some(byte[0]))),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            match system.wake_when_readable(socket.as_fd(), cx.waker()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        }
        Err(error) => Poll::Ready(Err(error)),
    })
    .await
}
