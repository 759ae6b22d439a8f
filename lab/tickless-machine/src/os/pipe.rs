//! Pipes between tasks.

use super::{Kernel, TaskId};
use crate::cpu;
use crate::platform::{GuardedLines, SimWord};
use crate::ps::Ps;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tickless_core::platform::{Ordering, Word};

/// A pipe between tasks of the simulated kernel. It counts messages, and does not store them.
///
/// As in Linux (`fs/pipe.c`), a read or a write holds the pipe's lock while it copies. A read wakes
/// a writer only when it frees a page of a pipe that had no free page.
pub struct Pipe {
    kernel: Rc<Kernel>,
    mutex: Mutex,
    lines: GuardedLines,
    buffer: RefCell<Buffer>,
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
        let (kernel, mutex, half) = (Rc::clone(kernel), Mutex::new(), work.scaled(0.5));
        let (lines, buffer) = (GuardedLines::default(), RefCell::default());
        Pipe { kernel, mutex, lines, buffer, half, pages, messages_per_page }
    }

    /// Writes a message, and wakes a task that waits to read one. Blocks while the pipe is full.
    pub fn write(&self) {
        self.call(|buffer| {
            if buffer.messages >= self.pages.saturating_mul(self.messages_per_page) {
                buffer.writers.push_back(self.kernel.current());
                return None;
            }
            buffer.messages += 1;
            Some(buffer.reader.take())
        });
    }

    /// Reads a message, and wakes a writer that waits for the page that becomes free, if any.
    /// Blocks while the pipe is empty. For one task only.
    pub fn read(&self) {
        self.call(|buffer| {
            if buffer.messages == 0 {
                buffer.reader = Some(self.kernel.current());
                return None;
            }
            buffer.messages -= 1;
            let frees_page = buffer.messages.is_multiple_of(self.messages_per_page);
            Some(if frees_page { buffer.writers.pop_front() } else { None })
        });
    }

    fn lock(&self, copies: Ps) {
        self.mutex.lock(&self.kernel);
        self.lines.access::<Buffer>();
        cpu::charge(copies);
    }

    /// A system call: copies a message with the lock held. `change` returns the task that must be
    /// woken, if any; it returns `None` if the caller must wait before it can go on.
    fn call(&self, change: impl Fn(&mut Buffer) -> Option<Option<TaskId>>) {
        self.kernel.mark(|task| task.is_in_kernel = true);
        cpu::charge(self.kernel.costs.syscall + self.half);
        self.lock(self.half);
        let woken = loop {
            let changed = change(&mut self.buffer.borrow_mut());
            self.mutex.unlock(&self.kernel);
            if let Some(woken) = changed {
                break woken;
            }
            self.kernel.block();
            self.lock(Ps::ZERO);
        };
        if let Some(task) = woken {
            self.kernel.wake(task);
        }
        self.kernel.mark(|task| task.is_in_kernel = false);
        self.kernel.preempt();
    }
}

/// A lock that tasks sleep for, as in Linux (`kernel/locking/mutex.c`). A task that finds it taken
/// spins as long as the owner has a CPU, and else sleeps. The first of the sleepers is woken when
/// the lock is free. If another task takes it before, the next release hands it to the sleeper.
struct Mutex {
    /// One more than the number of the task that has the lock; zero if none has.
    owner: SimWord,
    /// In order of arrival.
    sleepers: RefCell<VecDeque<TaskId>>,
    hands_over: Cell<bool>,
}

impl Mutex {
    fn new() -> Mutex {
        Mutex { owner: SimWord::new(0), sleepers: RefCell::default(), hands_over: Cell::new(false) }
    }

    /// Takes the lock for the current task, which makes way before if it must.
    fn lock(&self, kernel: &Kernel) {
        if kernel.must_yield() {
            kernel.yield_cpu();
        }
        let me = kernel.current();
        let (mut is_queued, mut has_slept) = (false, false);
        let take = || self.owner.compare_exchange(0, of(me), Ordering::AcqRel, Ordering::Acquire);
        while let Err(owner) = take()
            && owner != of(me)
        {
            let is_first = has_slept && self.sleepers.borrow().front() == Some(&me);
            self.hands_over.set(self.hands_over.get() || is_first);
            let owner_runs = || kernel.runs(TaskId(owner as u32 - 1)) && !kernel.must_yield();
            if owner_runs() && (is_first || !is_queued) {
                while owner_runs() && self.owner.load(Ordering::Acquire) == owner {
                    cpu::wait_until(cpu::clock() + kernel.pause);
                }
            } else if is_queued {
                kernel.block();
                has_slept = true;
            } else {
                self.sleepers.borrow_mut().push_back(me);
                is_queued = true;
            }
        }
        let mut sleepers = self.sleepers.borrow_mut();
        sleepers.retain(|task| *task != me);
        self.hands_over.set(self.hands_over.get() && !sleepers.is_empty());
    }

    fn unlock(&self, kernel: &Kernel) {
        let next = self.sleepers.borrow().front().filter(|_| self.hands_over.take()).copied();
        self.owner.store(next.map_or(0, of), Ordering::Release);
        let first = self.sleepers.borrow().front().copied();
        if let Some(first) = first {
            kernel.wake(first);
        }
    }
}

fn of(task: TaskId) -> u64 {
    u64::from(task.0) + 1
}
