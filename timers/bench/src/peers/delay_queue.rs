//! tokio-util's `DelayQueue`.

use super::queues::Queue;
use super::tokio_sleep::runtime;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

/// A wheel over a slab, behind `&mut`.
pub struct DelayQueue {
    queue: tokio_util::time::DelayQueue<u32>,
    start: Instant,
    runtime: Runtime,
}

impl Queue for DelayQueue {
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
        runtime.block_on(unconstrained(async {
            // The runtime fires the queue's own sleep while it waits.
            sleep_until(*start + now).await;
            poll_fn(|cx| {
                while let Poll::Ready(Some(expired)) = queue.poll_expired(cx) {
                    fired.push(expired.into_inner());
                }
                Poll::Ready(())
            })
            .await;
        }));
    }

    fn pending(&self) -> usize {
        self.queue.len()
    }
}
