//! Clients that keep a server busy: each thread keeps a number of requests in flight on random ones
//! of its connections. It is a closed loop, so the latencies are those of a saturated server.

use super::server::{REQUEST, RESPONSE};
use crate::latency::wakeups_of;
use crate::random::Random;
use crate::sample::Stopwatch;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const ADDRESSES: usize = 8;

pub struct Seen {
    pub latencies_ns: Vec<u32>,
    pub cpu: Duration,
    pub wakeups: u64,
    pub wall: Duration,
}

pub struct Clients {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    free: Vec<usize>,
    random: Random,
    latencies_ns: Vec<u32>,
}

struct Connection {
    socket: TcpStream,
    asked: Instant,
    received: usize,
}

impl Clients {
    pub fn connect(port: u16, count: usize, seed: u64) -> io::Result<Clients> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for nth in 0..count {
            // Each of the addresses has ports of its own for the clients' ends.
            let server = Ipv4Addr::new(127, 0, 0, 1 + (nth % ADDRESSES) as u8);
            let socket = TcpStream::connect((server, port))?;
            // Closed with a reset: otherwise each would hold its port for a minute, and after a
            // few runs there would be none left.
            set_socket_linger(&socket, Some(Duration::ZERO))?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(nth as u64);
            epoll::add(&epoll, &socket, data, epoll::EventFlags::IN)?;
            connections.push(Connection { socket, asked: Instant::now(), received: 0 });
        }
        let free = (0..connections.len()).collect();
        let (random, latencies_ns) = (Random::seeded(seed), Vec::with_capacity(1 << 20));
        Ok(Clients { epoll, connections, free, random, latencies_ns })
    }

    /// Keeps so many requests in flight for this time, after a fourth of it without measuring. The
    /// measured time is between two barriers.
    pub fn work(
        &mut self,
        outstanding: usize,
        run: Duration,
        begin: &Barrier,
        end: &Barrier,
    ) -> io::Result<Seen> {
        for _ in 0..outstanding.min(self.connections.len()) {
            self.ask()?;
        }
        self.listen(Instant::now() + run / 4)?;
        self.latencies_ns.clear();
        begin.wait();
        let (wall, cpu) = (Instant::now(), Stopwatch::of_thread());
        let wakeups = || wakeups_of(Path::new("/proc/thread-self")).unwrap_or_default();
        let before = wakeups();
        self.listen(wall + run)?;
        let (wakeups, cpu, wall) = (wakeups() - before, cpu.elapsed(), wall.elapsed());
        end.wait();
        Ok(Seen { latencies_ns: std::mem::take(&mut self.latencies_ns), cpu, wakeups, wall })
    }

    fn ask(&mut self) -> io::Result<()> {
        let free = self.random.below(self.free.len() as u64) as usize;
        let connection = &mut self.connections[self.free.swap_remove(free)];
        connection.asked = Instant::now();
        connection.socket.write_all(REQUEST)
    }

    /// Receives answers until a time, and until the first answer: a busy machine may be slow.
    fn listen(&mut self, until: Instant) -> io::Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        let patience = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let give_up = until + Duration::from_secs(20);
        while Instant::now() < if self.latencies_ns.is_empty() { give_up } else { until } {
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&patience))?;
            for event in events.drain(..) {
                self.receive(event.data.u64() as usize)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, nth: usize) -> io::Result<()> {
        let connection = &mut self.connections[nth];
        let mut bytes = [0; RESPONSE.len()];
        let count = connection.socket.read(&mut bytes)?;
        let rest = &RESPONSE[connection.received..];
        assert!(count > 0 && rest.starts_with(&bytes[..count]), "the expected response");
        if count < rest.len() {
            connection.received += count;
            return Ok(());
        }
        connection.received = 0;
        let took = connection.asked.elapsed().as_nanos();
        self.latencies_ns.push(u32::try_from(took).unwrap_or(u32::MAX));
        self.free.push(nth);
        self.ask()
    }
}
