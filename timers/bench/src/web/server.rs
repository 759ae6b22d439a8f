//! A server with keep-alive on tokio's multi-thread runtime.
//!
//! Each connection has an idle timeout, which every request pushes out, and each request a
//! deadline. A handler yields once before it answers, like one that queries a database: the
//! deadline of a handler that never waits would never be armed.

use super::guards::{IDLE, Scene, Time};
use crate::affinity::{self, Half};
use crate::peers::tokio_sleep::multi_thread;
use rustix::net;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

pub const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n\
                             Accept: text/plain\r\nConnection: keep-alive\r\n\r\n";
pub const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                              Content-Length: 13\r\n\r\nHello, world!";

const HEAD_BYTES_MAX: usize = 1024;

pub struct Server {
    runtime: Option<Runtime>,
    pub port: u16,
}

impl Server {
    /// Starts a server. It has half of the CPUs if there are four, and otherwise shares all.
    pub fn start<T: Time>(scene: Scene) -> io::Result<Server> {
        let workers = (affinity::remember() / 2).max(2);
        let settle = || affinity::keep_to_half(Half::First);
        let runtime = multi_thread(workers).on_thread_start(settle).enable_all().build()?;
        let listener = listen()?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        drop(entered);
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve::<T>(scene, socket));
            }
        });
        Ok(Server { runtime: Some(runtime), port })
    }

    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it exists until the drop")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(10));
        }
    }
}

/// A socket with a long queue: beyond that, connections fail and are retried after a second.
fn listen() -> io::Result<TcpListener> {
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None)?;
    net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    net::listen(&socket, 4096)?;
    Ok(socket.into())
}

async fn serve<T: Time>(scene: Scene, mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut idle = pin!(T::sleep(IDLE));
    let (mut bytes, mut length) = ([0; HEAD_BYTES_MAX], 0);
    loop {
        let head = loop {
            if let Some(head) = head_bytes(&bytes[..length])? {
                break head;
            }
            match unless_idle(socket.read(&mut bytes[length..]), idle.as_mut()).await {
                None => return Ok(()),
                Some(read) => match read? {
                    0 => return Ok(()),
                    count => length += count,
                },
            }
        };
        bytes.copy_within(head..length, 0);
        length -= head;
        scene.push_out::<T>(idle.as_mut());
        scene.answer::<T, _>(answer(&mut socket)).await.ok_or(io::ErrorKind::TimedOut)??;
    }
}

async fn answer(socket: &mut TcpStream) -> io::Result<()> {
    tokio::task::yield_now().await;
    socket.write_all(RESPONSE).await
}

fn head_bytes(bytes: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes).map_err(io::Error::other)? {
        httparse::Status::Complete(head) if request.path == Some("/hello") => Ok(Some(head)),
        httparse::Status::Complete(_) => Err(io::ErrorKind::NotFound.into()),
        httparse::Status::Partial => Ok(None),
    }
}

async fn unless_idle<F, I>(work: F, mut idle: Pin<&mut I>) -> Option<F::Output>
where
    F: Future,
    I: Future<Output = ()>,
{
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => idle.as_mut().poll(cx).map(|()| None),
    })
    .await
}
