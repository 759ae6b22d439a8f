//! Timers inside a mio loop: an echo server that hangs up on who says nothing for too long.
//!
//! mio has no timers of its own: its `poll` takes a duration, and [`LocalTimers`] says which. One
//! thread, no locks, and no system call to push a timeout out.

// It fails by panicking, and may print and sleep.
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

/// Each timer belongs to the connection whose token is its value.
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
        // mio tells of each event once, so everything that has come is taken.
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
            // A client waits for its echo, so there is always room for it.
            connection.socket.write_all(&bytes[..length])?;
            self.echoes += 1;
            connection.last_heard = self.timers.now();
            self.timers.start(connection.idle, IDLE).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Closes every connection whose idle timeout is over.
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
        let next = server.timers.next_event();
        let wait = (next != Instant::NEVER).then(|| next - now());
        match poll.poll(&mut events, wait) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        // First the time, so that what is armed below is armed from the present.
        server.close_silent();
        for event in &events {
            match event.token() {
                LISTENER => server.accept(&poll)?,
                token => server.echo(token)?,
            }
        }
    }

    println!("{} echoes on {CLIENTS} connections", server.echoes);
    // No echo was lost. A client that was late with a message may have missed the last one.
    let heard = clients.finish();
    assert!(heard > 0 && (heard..=heard + CLIENTS as u64).contains(&server.echoes));
    assert_eq!((server.timers.len(), server.connections.len()), (0, 0));
    Ok(())
}
