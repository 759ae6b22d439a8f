//! A pipe: bytes that one task writes and another one waits for.

use super::{Kernel, TaskId};
use crate::engine;
use crate::platform::SimLock;
use crate::ps::Ps;
use std::rc::Rc;
use tickless_core::platform::Lock;

/// A pipe of its machine's kernel. It has room for everything.
#[derive(Debug)]
pub struct Pipe {
    kernel: Rc<Kernel>,
    inside: SimLock<Inside>,
    /// What one call does beside waking and waiting.
    work: Ps,
}

#[derive(Debug, Default)]
struct Inside {
    bytes: u64,
    reader: Option<TaskId>,
}

impl Pipe {
    /// An empty pipe; `work` is what a read or a write does in itself.
    pub fn new(kernel: &Rc<Kernel>, work: Ps) -> Pipe {
        Pipe { kernel: Rc::clone(kernel), inside: SimLock::new(Inside::default()), work }
    }

    /// Writes a byte, and wakes who waits for it.
    pub fn write(&self) {
        engine::charge(self.kernel.costs.syscall + self.work);
        let mut inside = self.inside.lock();
        inside.bytes += 1;
        let reader = inside.reader.take();
        drop(inside);
        if let Some(reader) = reader {
            self.kernel.wake(reader);
        }
    }

    /// Reads a byte, and waits for it if there is none.
    pub fn read(&self) {
        engine::charge(self.kernel.costs.syscall + self.work);
        loop {
            let mut inside = self.inside.lock();
            if inside.bytes > 0 {
                inside.bytes -= 1;
                return;
            }
            inside.reader = Some(self.kernel.current());
            drop(inside);
            self.kernel.block();
        }
    }
}
