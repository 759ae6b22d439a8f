//! Timers inside a mio loop: an echo server that disconnects silent clients.
//!
//! mio has no timers: its `poll` takes a duration, and [`LocalTimers`] computes it. One thread, no
//! locks, and no system call to push out a timeout.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod support;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use support::{Clients, IDLE, MESSAGE_BYTES_MAX, now};
use tickless::LocalTimers;
use tickless::local::Key;
use tickless::time::Instant;

const CLIENTS: usize = 20;
const LISTENER: Token = Token(0);

struct Connection {
    socket: TcpStream,
    idle: Key,
    last_heard: Instant,
}

/// The value of each timer is the token of its connection.
struct Server {
    listener: TcpListener,
    timers: LocalTimers<Token>,
    connections: HashMap<Token, Connection>,
    opened: usize,
    closed: usize,
    echoes: u64,
}

impl Server {
    fn accept(&mut self, poll: &Poll) -> io::Result<()> {
        // mio reports each event once, so accept all pending connections.
        while let Some((mut socket, _)) = unless_blocked(self.listener.accept())? {
            self.opened += 1;
            let token = Token(self.opened);
            poll.registry().register(&mut socket, token, Interest::READABLE)?;
            let idle = self.timers.insert(token).map_err(io::Error::other)?;
            self.timers.start(idle, IDLE).map_err(io::Error::other)?;
            let last_heard = self.timers.now();
            self.connections.insert(token, Connection { socket, idle, last_heard });
        }
        Ok(())
    }

    fn echo(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        while let Some(length) = unless_blocked(connection.socket.read(&mut bytes))? {
            assert!(length > 0, "clients do not hang up");
            // A client waits for each echo, so the socket's buffer always has room.
            connection.socket.write_all(&bytes[..length])?;
            self.echoes += 1;
            connection.last_heard = self.timers.now();
            self.timers.start(connection.idle, IDLE).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Closes every connection whose idle timeout has fired.
    fn close_silent(&mut self) {
        let Server { timers, connections, closed, .. } = self;
        timers.advance(now(), |timers, key| {
            let token = timers.remove(key).expect("it has just fired");
            let connection = connections.remove(&token).expect("it was open");
            assert!(timers.now() >= connection.last_heard + IDLE, "never early");
            *closed += 1;
        });
    }
}

fn unless_blocked<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        outcome => outcome.map(Some),
    }
}

fn main() -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let clients = Clients::start(listener.local_addr()?, CLIENTS);
    let (timers, connections) = (LocalTimers::new(now()), HashMap::new());
    let mut server = Server { listener, timers, connections, opened: 0, closed: 0, echoes: 0 };

    let mut events = Events::with_capacity(64);
    while server.closed < CLIENTS {
        let wait = server.timers.next_event().map(|next| next - now());
        match poll.poll(&mut events, wait) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        // Advance first, so that the deadlines set below count from the current time.
        server.close_silent();
        for event in &events {
            match event.token() {
                LISTENER => server.accept(&poll)?,
                token => server.echo(token)?,
            }
        }
    }

    println!("{} echoes on {CLIENTS} connections", server.echoes);
    // No echo was lost. If a client was late with a message, its connection may have been closed
    // before the last one.
    let received = clients.finish();
    assert!(received > 0 && (received..=received + CLIENTS as u64).contains(&server.echoes));
    assert_eq!((server.timers.len(), server.connections.len()), (0, 0));
    Ok(())
}
