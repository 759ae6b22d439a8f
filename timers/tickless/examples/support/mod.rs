//! The clients of the echo servers: they send messages for a while, then stop.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;
use tickless::time::Instant;

/// How long a connection may be silent.
pub const IDLE: Duration = Duration::from_millis(150);

/// Longer than any message.
pub const MESSAGE_BYTES_MAX: usize = 64;

/// Sending all takes longer than [`IDLE`]: the example fails if its server pushes nothing out.
const MESSAGES: u32 = 30;

/// The servers' clock. Any clock that does not go back will do.
pub fn now() -> Instant {
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    Instant::from_secs(1) + BEGUN.get_or_init(std::time::Instant::now).elapsed()
}

/// Clients on threads of their own.
pub struct Clients(Vec<JoinHandle<io::Result<u64>>>);

impl Clients {
    pub fn start(server: SocketAddr, count: usize) -> Clients {
        let client = |nth| std::thread::spawn(move || talk(TcpStream::connect(server)?, nth));
        Clients((0..count as u32).map(client).collect())
    }

    /// Waits until all clients have been disconnected. Returns how many echoes they received.
    pub fn finish(self) -> u64 {
        let join = |client: JoinHandle<_>| client.join().expect("no client is let down");
        self.0.into_iter().map(|client| join(client).expect("the server is there")).sum()
    }
}

/// Sends a few messages, then waits to be disconnected. Returns how many echoes it received.
fn talk(mut server: TcpStream, nth: u32) -> io::Result<u64> {
    server.set_nodelay(true)?;
    // If the server never disconnects, this is an error instead of a wait without end.
    server.set_read_timeout(Some(Duration::from_secs(20)))?;
    let (mut received, mut last) = (0, std::time::Instant::now());
    for round in 0..MESSAGES {
        let sent = std::time::Instant::now();
        let message = format!("message {round} of client {nth}");
        if !is_echoed(&mut server, message.as_bytes())? {
            // On a busy machine this thread may itself have been silent for too long.
            break;
        }
        (received, last) = (received + 1, sent);
        std::thread::sleep(Duration::from_millis(u64::from(6 + nth % 5)));
    }
    let is_silent = received < u64::from(MESSAGES) || read(&mut server, &mut [0])? == 0;
    assert!(is_silent, "the server sends only echoes");
    assert!(last.elapsed() >= IDLE, "disconnected after {:?}", last.elapsed());
    Ok(received)
}

/// Sends a message and reads its echo. Returns false if the server has closed the connection.
fn is_echoed(server: &mut TcpStream, message: &[u8]) -> io::Result<bool> {
    if server.write_all(message).is_err() {
        return Ok(false);
    }
    let (mut echo, mut length) = ([0; MESSAGE_BYTES_MAX], 0);
    while length < message.len() {
        match read(server, &mut echo[length..])? {
            0 => return Ok(false),
            bytes => length += bytes,
        }
    }
    assert_eq!(&echo[..length], message);
    Ok(true)
}

/// Reads what has arrived. Returns zero if the server has closed the connection.
fn read(server: &mut TcpStream, bytes: &mut [u8]) -> io::Result<usize> {
    match server.read(bytes) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
        outcome => outcome,
    }
}
