//! A pipe: bytes that one task writes and another one waits for.

use super::{Kernel, TaskId};
use crate::engine;
use crate::platform::SimLock;
use crate::ps::Ps;
use std::rc::Rc;
use tickless_core::platform::Lock;

/// A pipe of its machine's kernel.
#[derive(Debug)]
pub struct Pipe {
    kernel: Rc<Kernel>,
    inside: SimLock<Inside>,
    /// What one call does beside waking and waiting.
    work: Ps,
    /// How much it holds.
    room: u64,
}

#[derive(Debug, Default)]
struct Inside {
    bytes: u64,
    reader: Option<TaskId>,
    writers: Vec<TaskId>,
}

impl Pipe {
    /// An empty pipe with room for everything; `work` is what a read or a write does in itself.
    pub fn new(kernel: &Rc<Kernel>, work: Ps) -> Pipe {
        Pipe::with_room(kernel, work, u64::MAX)
    }

    /// The same with room for so many bytes: whoever writes more waits.
    pub fn with_room(kernel: &Rc<Kernel>, work: Ps, room: u64) -> Pipe {
        Pipe { kernel: Rc::clone(kernel), inside: SimLock::new(Inside::default()), work, room }
    }

    /// Writes a byte, once there is room, and wakes the task that waits for it.
    pub fn write(&self) {
        engine::charge(self.kernel.costs.syscall + self.work);
        let mut inside = self.inside.lock();
        while inside.bytes >= self.room {
            let me = self.kernel.current();
            inside.writers.push(me);
            drop(inside);
            self.kernel.block();
            inside = self.inside.lock();
        }
        inside.bytes += 1;
        let reader = inside.reader.take();
        drop(inside);
        if let Some(reader) = reader {
            self.kernel.wake(reader);
        }
    }

    /// Reads a byte, and waits for it if there is none. One task may read.
    pub fn read(&self) {
        engine::charge(self.kernel.costs.syscall + self.work);
        loop {
            let mut inside = self.inside.lock();
            if inside.bytes > 0 {
                inside.bytes -= 1;
                let writer = inside.writers.pop();
                drop(inside);
                if let Some(writer) = writer {
                    self.kernel.wake(writer);
                }
                return;
            }
            inside.reader = Some(self.kernel.current());
            drop(inside);
            self.kernel.block();
        }
    }
}
