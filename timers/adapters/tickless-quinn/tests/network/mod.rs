//! A network in memory.

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// A set of sockets that send to each other. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Network {
    state: Arc<Mutex<Inboxes>>,
}

#[derive(Debug, Default)]
struct Inboxes {
    inboxes: HashMap<SocketAddr, Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    reader: Option<Waker>,
}

impl Network {
    pub fn socket(&self, address: SocketAddr) -> Arc<dyn AsyncUdpSocket> {
        self.state().inboxes.insert(address, Inbox::default());
        Arc::new(Socket { address, network: self.clone() })
    }

    fn state(&self) -> MutexGuard<'_, Inboxes> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }
}

#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    network: Network,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut state = self.network.state();
        let reader = state.inboxes.get_mut(&transmit.destination).and_then(|inbox| {
            inbox.datagrams.push_back((self.address, transmit.contents.to_vec()));
            inbox.reader.take()
        });
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.network.state();
        let inbox = state.inboxes.get_mut(&self.address).expect("made with the socket");
        let Some((addr, datagram)) = inbox.datagrams.pop_front() else {
            inbox.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let len = datagram.len();
        buffers[0][..len].copy_from_slice(&datagram);
        let mut received = RecvMeta::default();
        (received.addr, received.len, received.stride) = (addr, len, len);
        meta[0] = received;
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
