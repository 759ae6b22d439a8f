//! Work of disks that no thread waits for in the kernel: io_submit(2).
//!
//! The kernel stores the end of each request in a ring in the memory of the program. The tracer
//! knows what is submitted, so it reads there what has yet to end. However the program learns of
//! the end, by io_getevents(2), an eventfd, or the ring, the clock stands until then.

use crate::sys::memory;
use crate::tree::Tree;
use libc::pid_t;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The clock stands for this much longer: the kernel stores a request's end a moment before it
/// wakes the thread that waits for it.
const SETTLING: Duration = Duration::from_millis(2);

/// A request that has been submitted, by the address of its structure.
struct Request {
    address: u64,
    /// The thread that is submitting it, and its place among those that the thread submits. `None`
    /// once the kernel has taken it.
    submitter: Option<(pid_t, u64)>,
}

/// A context of io_setup(2).
struct Context {
    requests: Vec<Request>,
    /// Where the ring continues, behind the ends that have been read.
    tail: u32,
}

/// The requests of all processes, by process and address of the context.
#[derive(Default)]
pub(crate) struct DiskWork {
    contexts: HashMap<(pid_t, u64), Context>,
    last_end: Option<Instant>,
}

/// The first words of a ring, as the kernel lays it out.
struct Ring {
    length: u32,
    tail: u32,
}

impl Ring {
    fn read(tid: pid_t, address: u64) -> Option<Ring> {
        const MAGIC: u64 = 0xa10a_10a1;
        let [first, second, third] = memory::words(tid, address)?;
        let ring = Ring { length: (first >> 32) as u32, tail: (second >> 32) as u32 };
        (third & u64::from(u32::MAX) == MAGIC && ring.length > 0).then_some(ring)
    }
}

impl Context {
    /// Takes the requests that have ended out of the list. `None` if the context is gone.
    fn update(&mut self, tid: pid_t, address: u64) -> Option<usize> {
        const EVENTS_AT: u64 = 32;
        let ring = Ring::read(tid, address)?;
        let before = self.requests.len();
        while self.tail != ring.tail {
            let at = address + EVENTS_AT + 32 * u64::from(self.tail % ring.length);
            let [_data, ended] = memory::words(tid, at)?;
            if let Some(at) = self.requests.iter().position(|request| request.address == ended) {
                self.requests.swap_remove(at);
            }
            self.tail = (self.tail + 1) % ring.length;
        }
        Some(before - self.requests.len())
    }
}

impl DiskWork {
    /// Records the `count` requests, whose addresses are at `requests`, that a thread is about to
    /// submit to a context.
    pub(crate) fn submit(
        &mut self,
        process: pid_t,
        tid: pid_t,
        [context, count, requests]: [u64; 3],
    ) {
        const OPERATION_AT: u64 = 16;
        const POLL: u64 = 5;
        let Some(Ring { length, tail }) = Ring::read(tid, context) else { return };
        let new = || Context { requests: Vec::new(), tail };
        let context = self.contexts.entry((process, context)).or_insert_with(new);
        for place in 0..count.min(length.into()) {
            let Some([address]) = memory::words(tid, requests + 8 * place) else { break };
            let Some([operation]) = memory::words(tid, address + OPERATION_AT) else { break };
            // A poll waits for an event, which is no work.
            if operation & 0xffff != POLL {
                context.requests.push(Request { address, submitter: Some((tid, place)) });
            }
        }
    }

    /// Forgets what the kernel has not taken of what a thread submitted.
    pub(crate) fn has_taken(&mut self, process: pid_t, tid: pid_t, context: u64, taken: i64) {
        let Some(context) = self.contexts.get_mut(&(process, context)) else { return };
        context.requests.retain_mut(|request| match request.submitter {
            Some((of, place)) if of == tid => {
                request.submitter = None;
                place.cast_signed() < taken
            }
            _ => true,
        });
    }

    /// Forgets the context that a thread destroys, which waits for all of its requests, or all of
    /// those of a process.
    pub(crate) fn forget(&mut self, process: pid_t, context: Option<u64>) {
        self.contexts.retain(|(of, address), _| {
            *of != process || context.is_some_and(|context| context != *address)
        });
    }

    /// Returns whether a disk works for the tree, or has a moment ago.
    pub(crate) fn is_under_way(&mut self, tree: &Tree) -> bool {
        let mut has_ended = false;
        self.contexts.retain(|(process, address), context| {
            if context.requests.is_empty() {
                return true;
            }
            // The first thread of a process has perhaps ended before the others.
            let mut threads = tree.threads.values().filter(|thread| thread.process == *process);
            let ended = threads.find_map(|thread| context.update(thread.tid, *address));
            has_ended |= ended.is_some_and(|ended| ended > 0);
            ended.is_some()
        });
        if has_ended {
            self.last_end = Some(Instant::now());
        }
        self.contexts.values().any(|context| !context.requests.is_empty())
            || self.last_end.is_some_and(|end| end.elapsed() < SETTLING)
    }
}
