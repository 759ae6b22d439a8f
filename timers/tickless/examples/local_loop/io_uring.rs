//! Waiting with io_uring: the event device is one absolute timeout in the ring, which is moved when
//! an earlier event comes first. Where the kernel has no io_uring, or a policy forbids it,
//! [`Ring::new`] fails.

use crate::linux::Wait;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, TimeoutFlags, Timespec};
use io_uring::{IoUring, opcode};
use rustix::event::PollFlags;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::task::Waker;
use std::time::Duration;
use tickless::time::Instant;

/// The entry of the timeout, and of its updates.
const TIMEOUT: u64 = u64::MAX;
const UPDATE: u64 = u64::MAX - 1;

pub struct Ring {
    ring: RefCell<IoUring>,
    readers: RefCell<HashMap<u64, Waker>>,
    /// The deadline of the timeout in the ring.
    armed: Cell<Option<Instant>>,
}

impl Ring {
    pub fn new() -> io::Result<Ring> {
        let ring = RefCell::new(IoUring::new(64)?);
        Ok(Ring { ring, readers: RefCell::default(), armed: Cell::new(None) })
    }

    fn push(&self, entry: &Entry) -> io::Result<()> {
        // SAFETY: an entry refers to a timeout, which lives until it has been submitted, or to a
        // descriptor: if that has been closed, the kernel reports an error.
        unsafe { self.ring.borrow_mut().submission().push(entry) }.map_err(io::Error::other)
    }
}

impl Wait for Ring {
    fn wake_when_readable(&self, fd: BorrowedFd<'_>, waker: &Waker) -> io::Result<()> {
        let reader = fd.as_raw_fd() as u64;
        if self.readers.borrow_mut().insert(reader, waker.clone()).is_none() {
            let readable = PollFlags::IN.bits() as u32;
            let poll = opcode::PollAdd::new(Fd(fd.as_raw_fd()), readable).build();
            self.push(&poll.user_data(reader))?;
        }
        Ok(())
    }

    fn wait(&self, next: Option<Instant>) -> io::Result<()> {
        let since_boot = next.map_or(Duration::ZERO, |next| next - Instant::ZERO);
        let deadline = Timespec::from(since_boot);
        match (next, self.armed.get()) {
            // A timeout for earlier stays: it ends the wait once for nothing.
            (Some(next), Some(armed)) if next < armed => {
                let update = opcode::TimeoutUpdate::new(TIMEOUT, &deadline);
                self.push(&update.flags(TimeoutFlags::ABS).build().user_data(UPDATE))?;
                self.armed.set(Some(next));
            }
            (Some(next), None) => {
                let timeout = opcode::Timeout::new(&deadline).flags(TimeoutFlags::ABS).build();
                self.push(&timeout.user_data(TIMEOUT))?;
                self.armed.set(Some(next));
            }
            _ => {}
        }
        let mut ring = self.ring.borrow_mut();
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            waited => drop(waited?),
        }
        let ended: Vec<u64> = ring.completion().map(|entry| entry.user_data()).collect();
        drop(ring);
        for entry in ended {
            match entry {
                TIMEOUT => self.armed.set(None),
                UPDATE => {}
                reader => {
                    let waker = self.readers.borrow_mut().remove(&reader);
                    waker.into_iter().for_each(Waker::wake);
                }
            }
        }
        Ok(())
    }
}
