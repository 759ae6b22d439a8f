//! Waiting with epoll: the next event is the timeout of the wait.

use crate::linux::{Wait, now};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::task::Waker;
use tickless::time::Instant;

pub struct Epoll {
    epoll: OwnedFd,
    readers: RefCell<HashMap<u64, Waker>>,
}

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll { epoll: epoll::create(CreateFlags::CLOEXEC)?, readers: RefCell::default() })
    }
}

impl Wait for Epoll {
    fn wake_when_readable(&self, fd: BorrowedFd<'_>, waker: &Waker) -> io::Result<()> {
        let data = EventData::new_u64(fd.as_raw_fd() as u64);
        let once = EventFlags::IN | EventFlags::ONESHOT;
        match epoll::add(&self.epoll, fd, data, once) {
            Err(Errno::EXIST) => epoll::modify(&self.epoll, fd, data, once)?,
            added => added?,
        }
        self.readers.borrow_mut().insert(data.u64(), waker.clone());
        Ok(())
    }

    fn wait(&self, next: Option<Instant>) -> io::Result<()> {
        let timeout = next.map(|next| next - now()).map(Timespec::try_from);
        let timeout = timeout.transpose().map_err(io::Error::other)?;
        let mut events = Vec::with_capacity(16);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Err(Errno::INTR) => {}
            waited => drop(waited?),
        }
        for event in events {
            let reader = self.readers.borrow_mut().remove(&event.data.u64());
            reader.into_iter().for_each(Waker::wake);
        }
        Ok(())
    }
}
