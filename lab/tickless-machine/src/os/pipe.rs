//! Pipes between tasks.

use super::{Kernel, TaskId};
use crate::cpu;
use crate::platform::SimLock;
use crate::ps::Ps;
use std::rc::Rc;
use tickless_core::platform::Lock;

/// A pipe between tasks of the simulated kernel. It counts bytes, and does not store their values.
pub struct Pipe {
    kernel: Rc<Kernel>,
    buffer: SimLock<Buffer>,
    /// The duration of a read or a write itself, without the system call, waking and waiting.
    work: Ps,
    room: u64,
}

#[derive(Default)]
struct Buffer {
    bytes: u64,
    reader: Option<TaskId>,
    writers: Vec<TaskId>,
}

impl Pipe {
    /// Returns an empty pipe with a capacity of `room` bytes. Writers block while it is full.
    pub fn new(kernel: &Rc<Kernel>, work: Ps, room: u64) -> Pipe {
        Pipe { kernel: Rc::clone(kernel), buffer: SimLock::new(Buffer::default()), work, room }
    }

    /// Writes a byte, and wakes a task that waits to read one. Blocks while the pipe is full.
    pub fn write(&self) {
        cpu::charge(self.kernel.costs.syscall + self.work);
        let mut buffer = self.buffer.lock();
        while buffer.bytes >= self.room {
            let me = self.kernel.current();
            buffer.writers.push(me);
            drop(buffer);
            self.kernel.block();
            buffer = self.buffer.lock();
        }
        buffer.bytes += 1;
        let reader = buffer.reader.take();
        drop(buffer);
        if let Some(reader) = reader {
            self.kernel.wake(reader);
        }
    }

    /// Reads a byte, and wakes a waiting writer. Blocks while the pipe is empty. For one task only.
    pub fn read(&self) {
        cpu::charge(self.kernel.costs.syscall + self.work);
        loop {
            let mut buffer = self.buffer.lock();
            if buffer.bytes > 0 {
                buffer.bytes -= 1;
                let writer = buffer.writers.pop();
                drop(buffer);
                if let Some(writer) = writer {
                    self.kernel.wake(writer);
                }
                return;
            }
            buffer.reader = Some(self.kernel.current());
            drop(buffer);
            self.kernel.block();
        }
    }
}
