//! Tasks that are woken, and the timers of tokio-util.

use crate::{HOUR, MS, Queue};
use core::task::{Context, Poll};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

/// The keys of tasks that have been woken.
#[derive(Clone, Default)]
pub struct Woken(Arc<Mutex<Vec<u32>>>);

struct Task(u32, Woken);

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        self.1.0.lock().expect("no panic under this lock").push(self.0);
    }
}

impl Woken {
    /// Returns a waker that adds `key`.
    pub fn waker(&self, key: u32) -> Waker {
        Arc::new(Task(key, self.clone())).into()
    }

    pub fn take(&self) -> Vec<u32> {
        core::mem::take(&mut *self.0.lock().expect("no panic under this lock"))
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().expect("no panic under this lock").is_empty()
    }
}

/// A runtime without I/O, so that waking its driver is no system call: the cheapest form.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime without I/O")
}

/// Adds the keys that `expired` returns at `now`, in a runtime whose timers fire until then.
pub(crate) fn fire(
    runtime: &Runtime,
    start: Instant,
    now: Duration,
    fired: &mut Vec<u32>,
    mut expired: impl FnMut(&mut Context<'_>) -> Poll<Option<u32>>,
) {
    runtime.block_on(unconstrained(async {
        // The runtime fires the queue's own sleep while it waits. A sleep until the rest of a tick
        // has passed would wait.
        sleep_until(start + Duration::from_millis(now.as_millis() as u64)).await;
        core::future::poll_fn(|cx| {
            while let Poll::Ready(Some(key)) = expired(cx) {
                fired.push(key);
            }
            Poll::Ready(())
        })
        .await;
    }));
}

/// tokio-util's `DelayQueue`: a wheel over a slab, behind `&mut`.
pub struct DelayQueue {
    queue: tokio_util::time::DelayQueue<u32>,
    start: Instant,
    runtime: Runtime,
}

impl Queue for DelayQueue {
    const NAME: &str = "tokio-util 0.7.20, DelayQueue";
    const GRANULARITY: u64 = MS;
    // Tokio's timers reach two years ahead.
    const HORIZON: u64 = 365 * 24 * HOUR;
    type Handle = tokio_util::time::delay_queue::Key;

    fn new() -> DelayQueue {
        let (runtime, start) = (runtime(), Instant::now());
        let queue = runtime.block_on(async { tokio_util::time::DelayQueue::new() });
        DelayQueue { queue, start, runtime }
    }

    fn runtime(&self) -> Option<Handle> {
        Some(self.runtime.handle().clone())
    }

    fn arm(&mut self, key: u32, after: Duration) -> Self::Handle {
        self.queue.insert_at(key, self.start + after)
    }

    fn push_out(&mut self, handle: &mut Self::Handle, _: u32, after: Duration) {
        self.queue.reset_at(handle, self.start + after);
    }

    fn cancel(&mut self, handle: Self::Handle) -> bool {
        self.queue.try_remove(&handle).is_some()
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let DelayQueue { queue, start, runtime } = self;
        fire(runtime, *start, now, fired, |cx| {
            queue.poll_expired(cx).map(|expired| Some(expired?.into_inner()))
        });
    }

    fn pending(&self) -> usize {
        self.queue.len()
    }
}
