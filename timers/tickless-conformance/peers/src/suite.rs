//! Published timers as the suite calls them, on a clock that is set.

use crate::clock;
use conformance_peers::Queue;
use core::ops::RangeInclusive;
use std::collections::HashMap;
use std::time::Duration;
use tickless_conformance::{Cancel, NextEvent, Order, Rounding, Timers};

/// A queue, and the handle of each key.
pub struct Queued<Q: Queue> {
    queue: Q,
    handles: HashMap<u32, Q::Handle>,
    now: u64,
}

impl<Q: Queue> Queued<Q> {
    /// Calls `f` at the current time, inside of the queue's runtime.
    fn call<R>(&mut self, f: impl FnOnce(&mut Q, &mut HashMap<u32, Q::Handle>) -> R) -> R {
        let runtime = self.queue.runtime();
        let _entered = runtime.as_ref().map(|runtime| runtime.enter());
        clock::at(self.now, || f(&mut self.queue, &mut self.handles))
    }
}

impl<Q: Queue> Timers for Queued<Q> {
    const NAME: &str = Q::NAME;
    const GRANULARITY: u64 = Q::GRANULARITY;
    const ROUNDING: Rounding = Q::ROUNDING;
    const CANCEL: Cancel = Q::CANCEL;
    const NEXT_EVENT: NextEvent = Q::NEXT_EVENT;
    const ORDER: Order = Q::ORDER;
    const ARM_REPLACES: bool = Q::ARM_REPLACES;
    const REENTRANT: bool = Q::REENTRANT;
    const HORIZON: u64 = Q::HORIZON;

    fn new() -> Queued<Q> {
        Queued { queue: clock::at(0, Q::new), handles: HashMap::new(), now: 0 }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.call(|queue, handles| {
            handles.insert(key, queue.arm(key, Duration::from_nanos(deadline)));
        });
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.call(|queue, handles| {
            let handle = handles.get_mut(&key).expect("a pending timer has a handle");
            queue.push_out(handle, key, Duration::from_nanos(deadline));
        });
    }

    fn cancel(&mut self, key: u32) -> bool {
        self.call(|queue, handles| handles.remove(&key).is_some_and(|handle| queue.cancel(handle)))
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Queued<Q>, u32)) {
        self.now = now;
        let mut fired = Vec::new();
        loop {
            clock::at(now, || self.queue.advance(Duration::from_nanos(now), &mut fired));
            if fired.is_empty() {
                return;
            }
            for key in fired.drain(..) {
                self.call(|queue, handles| {
                    handles.remove(&key).into_iter().for_each(|handle| queue.free(handle));
                });
                fire(self, key);
            }
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        let next = self.call(|queue, _| queue.next_event())?;
        Some(u64::try_from(next.as_nanos()).unwrap_or(u64::MAX))
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        Q::may_fire(now, deadline)
    }
}

impl<Q: Queue> Drop for Queued<Q> {
    fn drop(&mut self) {
        self.call(|queue, handles| {
            handles.drain().for_each(|(_, handle)| queue.free(handle));
        });
    }
}
