//! A program's own timers inside a current-thread runtime: each thread has one runtime and one
//! [`LocalTimers`], and shares nothing.
//!
//! Two threads, each an echo server with idle timeouts on tokio's current-thread runtime. Of all
//! timers of a thread, the runtime sees a single one: that of the driver, a task that sleeps until
//! the first of them is due, and that is woken when an earlier one is armed. Everything stays on
//! its thread, so it needs no lock and no atomic operation.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod support;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use support::{Clients, IDLE, MESSAGE_BYTES_MAX, now};
use tickless::LocalTimers;
use tickless::local::Key;
use tickless::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

const THREADS: usize = 2;
const CLIENTS: usize = 10;

/// The timers of a thread.
struct Timers {
    local: RefCell<LocalTimers<Sleeper>>,
    /// The waker of the driver, and the deadline until which it sleeps.
    driver: RefCell<Waker>,
    armed: Cell<Instant>,
}

/// The state of a sleep.
#[derive(Default)]
struct Sleeper {
    waker: Option<Waker>,
    is_over: bool,
}

impl Timers {
    fn start() -> Rc<Timers> {
        let local = RefCell::new(LocalTimers::new(now()));
        let driver = RefCell::new(Waker::noop().clone());
        let timers = Rc::new(Timers { local, driver, armed: Cell::new(Instant::ZERO) });
        spawn_local(Rc::clone(&timers).drive());
        timers
    }

    /// The driver's task. It ends with its thread.
    async fn drive(self: Rc<Timers>) {
        let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
        poll_fn(|cx| {
            loop {
                let (next, now) = (self.advance(), now());
                self.armed.set(next);
                self.driver.borrow_mut().clone_from(cx.waker());
                if next == Instant::NEVER {
                    return Poll::Pending;
                }
                sleep.as_mut().reset(tokio::time::Instant::now() + (next - now));
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Wakes the sleeps that are due. Returns when to call it again.
    fn advance(&self) -> Instant {
        let mut due = Vec::new();
        let mut local = self.local.borrow_mut();
        local.advance(now(), |local, key| {
            let sleeper = local.get_mut(key).expect("it has just fired");
            sleeper.is_over = true;
            due.extend(sleeper.waker.take());
        });
        let next = local.next_event().unwrap_or(Instant::NEVER);
        drop(local);
        // Outside of the borrow: a waker may do anything, for example arm a timer.
        due.into_iter().for_each(Waker::wake);
        next
    }

    fn sleep(self: &Rc<Timers>, after: Duration) -> Sleep {
        let key = self.local.borrow_mut().insert(Sleeper::default()).expect("few are needed");
        let sleep = Sleep { timers: Rc::clone(self), key };
        sleep.reset(after);
        sleep
    }
}

/// Completes when its deadline has passed. Dropping it cancels it.
struct Sleep {
    timers: Rc<Timers>,
    key: Key,
}

impl Sleep {
    /// Pushes the sleep out: no system call, and the driver is not woken.
    fn reset(&self, after: Duration) {
        let mut local = self.timers.local.borrow_mut();
        local.get_mut(self.key).expect("its own").is_over = false;
        // The current time, not that of the last advance, which may be long ago.
        local.start_at(self.key, now() + after).expect("its own");
        if local.next_event().is_some_and(|next| next < self.timers.armed.get()) {
            self.timers.driver.borrow().wake_by_ref();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut local = self.timers.local.borrow_mut();
        let sleeper = local.get_mut(self.key).expect("its own");
        if sleeper.is_over {
            return Poll::Ready(());
        }
        sleeper.waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
        Poll::Pending
    }

    /// Returns the output of `work`, or `None` if this sleep completes first.
    async fn guard<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll(cx).map(|()| None),
        })
        .await
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.timers.local.borrow_mut().remove(self.key);
    }
}

/// Echoes messages until the client is silent for too long. Returns how many there were.
async fn echo(mut socket: TcpStream, timers: Rc<Timers>) -> io::Result<u64> {
    let (mut last_heard, idle) = (now(), timers.sleep(IDLE));
    let (mut echoes, mut bytes) = (0, [0; MESSAGE_BYTES_MAX]);
    while let Some(length) = idle.guard(socket.read(&mut bytes)).await {
        let length = length?;
        assert!(length > 0, "clients do not hang up");
        last_heard = now();
        idle.reset(IDLE);
        socket.write_all(&bytes[..length]).await?;
        echoes += 1;
    }
    assert!(now() >= last_heard + IDLE, "never early");
    Ok(echoes)
}

async fn serve(listener: TcpListener) -> io::Result<u64> {
    let timers = Timers::start();
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let (socket, _) = listener.accept().await?;
        connections.push(spawn_local(echo(socket, Rc::clone(&timers))));
    }
    let mut echoes = 0;
    for connection in connections {
        echoes += connection.await??;
    }
    assert!(timers.local.borrow().is_empty(), "every sleep has been dropped");
    Ok(echoes)
}

/// One thread: its listener, its runtime, its timers.
fn run(address: Sender<SocketAddr>) -> io::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        address.send(listener.local_addr()?).map_err(io::Error::other)?;
        serve(listener).await
    })
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
