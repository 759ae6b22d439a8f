//! The server, with epoll.

#[path = "../support/mod.rs"]
mod support;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::retry_on_intr;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use support::{Clients, IDLE, MESSAGE_BYTES_MAX, now};
use tickless::LocalTimers;
use tickless::local::Key;
use tickless::time::Instant;

const CLIENTS: usize = 20;
const HEARTBEAT: Duration = Duration::from_millis(10);

/// The purpose of a timer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Purpose {
    /// The idle timeout of the connection with this number.
    Idle(u64),
    Heartbeat,
}

struct Connection {
    socket: TcpStream,
    idle: Key,
    last_heard: Instant,
}

struct Server {
    epoll: OwnedFd,
    timers: LocalTimers<Purpose>,
    connections: HashMap<u64, Connection>,
    echoes: u64,
    closed: usize,
}

impl Server {
    fn open(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let number = socket.as_raw_fd() as u64;
        let data = epoll::EventData::new_u64(number);
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        // Coarse, because it is pushed out often and hardly ever fires.
        let idle = self.timers.insert(Purpose::Idle(number)).map_err(io::Error::other)?;
        self.timers.start(idle, IDLE).map_err(io::Error::other)?;
        let last_heard = self.timers.now();
        self.connections.insert(number, Connection { socket, idle, last_heard });
        Ok(())
    }

    /// Sends back what the client sent.
    fn echo(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        match connection.socket.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Ok(length @ 1..) => {
                // A client waits for each echo, so the socket's buffer always has room.
                connection.socket.write_all(&bytes[..length])?;
                self.echoes += 1;
            }
            outcome => panic!("clients do not hang up: {outcome:?}"),
        }
        connection.last_heard = self.timers.now();
        self.timers.start(connection.idle, IDLE).map_err(io::Error::other)
    }

    /// Called when a connection's idle timeout has fired.
    fn close(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        assert!(self.timers.now() >= connection.last_heard + IDLE, "never early");
        assert_eq!(self.timers.remove(connection.idle), Some(Purpose::Idle(number)));
        self.closed += 1;
    }
}

/// Returns how long to wait from `now` until `then`; `None` to wait for an event.
fn timeout(now: Instant, then: Option<Instant>) -> Option<Timespec> {
    let wait = then? - now;
    Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() })
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let clients = Clients::start(listener.local_addr()?, CLIENTS);
    let begin = now();
    let mut server = Server {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        timers: LocalTimers::new(begin),
        connections: HashMap::new(),
        echoes: 0,
        closed: 0,
    };
    let listening = listener.as_raw_fd() as u64;
    let data = epoll::EventData::new_u64(listening);
    epoll::add(&server.epoll, &listener, data, epoll::EventFlags::IN)?;
    // A precise timer beside the coarse ones.
    let heartbeat = server.timers.insert_precise(Purpose::Heartbeat)?;
    let (mut beats, mut next_beat) = (0, begin + HEARTBEAT);
    server.timers.start_at(heartbeat, next_beat)?;

    let mut events = Vec::with_capacity(64);
    while server.closed < CLIENTS {
        let wait = timeout(now(), server.timers.next_event());
        retry_on_intr(|| epoll::wait(&server.epoll, spare_capacity(&mut events), wait.as_ref()))?;
        // Advance first, so that the deadlines set below count from the current time.
        let mut silent = Vec::new();
        server.timers.advance(now(), |timers, key| match timers.get(key) {
            Some(&Purpose::Idle(number)) => silent.push(number),
            _ => {
                beats += 1;
                // One interval after the last beat, not after now, so that it does not drift.
                next_beat += HEARTBEAT;
                timers.start_at(key, next_beat).expect("the key is its own");
            }
        });
        silent.into_iter().for_each(|number| server.close(number));
        for event in events.drain(..) {
            match event.data.u64() {
                number if number == listening => server.open(listener.accept()?.0)?,
                number => server.echo(number)?,
            }
        }
    }

    let Server { mut timers, echoes, .. } = server;
    println!("{echoes} echoes on {CLIENTS} connections, {beats} beats");
    // No echo was lost. If a client was late with a message, its connection may have been closed
    // before the last one.
    let received = clients.finish();
    assert!(received > 0 && (received..=received + CLIENTS as u64).contains(&echoes));
    // No beat was early or lost: the next one is the first whose time has not come.
    assert_eq!(next_beat, begin + HEARTBEAT * (beats + 1));
    assert!(beats > 0 && HEARTBEAT * beats <= now() - begin);
    assert_eq!(timers.remove(heartbeat), Some(Purpose::Heartbeat));
    assert_eq!((timers.len(), timers.pending()), (0, 0));
    Ok(())
}
