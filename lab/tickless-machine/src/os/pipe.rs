//! Pipes between tasks.

use super::{Kernel, TaskId};
use crate::cpu;
use crate::platform::SimLock;
use crate::ps::Ps;
use std::collections::VecDeque;
use std::rc::Rc;
use tickless_core::platform::Lock;

/// A pipe between tasks of the simulated kernel. It counts messages, and does not store them.
///
/// As in Linux (`fs/pipe.c`), a read or a write holds the pipe's lock while it copies: tasks of
/// other CPUs spin for it in the meantime. A read wakes a writer only when it frees a page of a
/// pipe that had no free page.
pub struct Pipe {
    kernel: Rc<Kernel>,
    buffer: SimLock<Buffer>,
    /// Half the duration of a read or a write itself, without the system call, waking and waiting.
    /// The lock is held for the second half.
    half: Ps,
    pages: u64,
    messages_per_page: u64,
}

#[derive(Default)]
struct Buffer {
    messages: u64,
    reader: Option<TaskId>,
    /// In order of arrival.
    writers: VecDeque<TaskId>,
}

impl Pipe {
    /// Returns an empty pipe of `pages` pages, with so many messages on each. A read or a write
    /// takes the time `work`.
    pub fn new(kernel: &Rc<Kernel>, work: Ps, pages: u64, messages_per_page: u64) -> Pipe {
        let (kernel, buffer) = (Rc::clone(kernel), SimLock::new(Buffer::default()));
        Pipe { kernel, buffer, half: work.scaled(0.5), pages, messages_per_page }
    }

    /// Enters the system call, and copies a message with the lock held.
    fn lock(&self) -> <SimLock<Buffer> as Lock<Buffer>>::Guard<'_> {
        cpu::charge(self.kernel.costs.syscall + self.half);
        let buffer = self.buffer.lock();
        cpu::charge(self.half);
        buffer
    }

    /// Writes a message, and wakes a task that waits to read one. Blocks while the pipe is full.
    pub fn write(&self) {
        let mut buffer = self.lock();
        while buffer.messages >= self.pages.saturating_mul(self.messages_per_page) {
            let me = self.kernel.current();
            buffer.writers.push_back(me);
            drop(buffer);
            self.kernel.block();
            buffer = self.buffer.lock();
        }
        buffer.messages += 1;
        let reader = buffer.reader.take();
        drop(buffer);
        self.leave(reader);
    }

    /// Reads a message, and wakes a writer that waits for the page that becomes free, if any.
    /// Blocks while the pipe is empty. For one task only.
    pub fn read(&self) {
        let mut buffer = self.lock();
        while buffer.messages == 0 {
            buffer.reader = Some(self.kernel.current());
            drop(buffer);
            self.kernel.block();
            buffer = self.buffer.lock();
        }
        buffer.messages -= 1;
        let frees_page = buffer.messages.is_multiple_of(self.messages_per_page);
        let writer = if frees_page { buffer.writers.pop_front() } else { None };
        drop(buffer);
        self.leave(writer);
    }

    /// Wakes a task, and returns from the system call.
    fn leave(&self, woken: Option<TaskId>) {
        if let Some(task) = woken {
            self.kernel.wake(task);
            self.kernel.preempt();
        }
    }
}
