//! The idle timeouts of a server: one for each connection, pushed out by every request, seldom
//! fired.
//!
//! A thousand simulated connections. Each is closed by its own timeout after a time without
//! requests. Requests arrive for a quarter of a second; the program ends when all connections are
//! closed.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tickless::time::Instant;
use tickless::{Timeout, Timers};

const CONNECTIONS: u64 = 1000;
const IDLE: Duration = Duration::from_millis(50);

struct Connection {
    idle: Timeout,
    last_request: AtomicU64,
}

impl Connection {
    fn open(timers: &Timers, number: u64, closed: &Sender<(u64, Instant)>) -> Connection {
        let closed = closed.clone();
        // The callback owns everything it needs. This one captures two words, so the timer and its
        // callback take 64 bytes.
        let idle = timers.timeout(move |fired| closed.send((number, fired.now())).unwrap_or(()));
        Connection { idle, last_request: AtomicU64::new(0) }
    }

    /// Handles a request. `now` is read once for many requests.
    fn request(&self, now: Instant) {
        self.last_request.store(now.as_nanos(), Ordering::Relaxed);
        // Arms it on the first call, pushes it out later: a few nanoseconds and no system call.
        self.idle.start_from(now, IDLE).expect("it is never shut down");
    }
}

fn main() {
    let timers = Timers::process().expect("a few threads can be started");
    let (closed, closings) = channel();
    let connections: Vec<Connection> =
        (0..CONNECTIONS).map(|number| Connection::open(&timers, number, &closed)).collect();

    // Each round, a request on one connection of three. Some are closed by then if this thread had
    // to wait for its CPU; the request reopens them.
    let begin = timers.now();
    let (mut requests, mut round) = (0u64, 0);
    while timers.now() - begin < Duration::from_millis(250) {
        let now = timers.now();
        for connection in connections.iter().skip(round % 3).step_by(3) {
            connection.request(now);
            requests += 1;
        }
        round += 1;
        std::thread::sleep(Duration::from_millis(1));
    }

    // No more requests. Every connection is closed by its timeout.
    let mut closed_at = vec![Instant::ZERO; connections.len()];
    while connections.iter().any(|connection| connection.idle.is_active()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    for (number, at) in closings.try_iter() {
        closed_at[number as usize] = at;
    }
    for (connection, &at) in connections.iter().zip(&closed_at) {
        let silent_since = Instant::from_nanos(connection.last_request.load(Ordering::Relaxed));
        assert!(at >= silent_since + IDLE, "closed before it was idle for long enough");
    }

    let total = timers.stats().total();
    // Pushing out a pending timeout takes no lock, and is not counted.
    assert_eq!(total.armed, CONNECTIONS);
    assert_eq!(total.fired, total.armed, "each was closed as often as it was opened");
    println!(
        "{requests} requests on {CONNECTIONS} connections, {} pushed a timeout out, {} fired",
        requests - total.armed,
        total.fired
    );
}
