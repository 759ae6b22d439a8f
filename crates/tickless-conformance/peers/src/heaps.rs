//! Queues of timers that are standard heaps and trees, and embassy's timer queue.

use crate::Queue;
use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
#[cfg(feature = "suite")]
use tickless_conformance::NextEvent;
use tickless_conformance::Order;

/// A deadline in ns, and the timer's key.
type Place = (u64, u32);

/// The timers of many programs: a `std` B-tree, keyed by deadline.
pub struct Tree(BTreeMap<Place, u64>);

impl Queue for Tree {
    const NAME: &str = "std BTreeMap";
    const ORDER: Order = Order::Deadline;
    type Handle = Place;

    fn new() -> Tree {
        Tree(BTreeMap::new())
    }

    fn arm(&mut self, key: u32, after: Duration) -> Place {
        let place = (after.as_nanos() as u64, key);
        self.0.insert(place, 0);
        place
    }

    fn push_out(&mut self, place: &mut Place, key: u32, after: Duration) {
        self.cancel(*place);
        *place = self.arm(key, after);
    }

    fn cancel(&mut self, place: Place) -> bool {
        self.0.remove(&place).is_some()
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let now = now.as_nanos() as u64;
        while let Some(first) = self.0.first_entry().filter(|first| first.key().0 <= now) {
            fired.push(first.remove_entry().0.1);
        }
    }

    fn pending(&self) -> usize {
        self.0.len()
    }
}

/// The timers of many programs: a `std` binary heap with lazy deletion.
///
/// An entry whose timer has been cancelled or moved stays in the heap until it comes to the top.
/// Without a bound that keeps more garbage than timers (most timeouts are cancelled), so the
/// heap is swept whenever half of it is garbage.
pub struct LazyHeap {
    /// A deadline in ns, a timer's key, and which arming of it.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    timers: Vec<Timer>,
    armed: usize,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    arming: u32,
    is_armed: bool,
}

impl LazyHeap {
    /// Garbage that is not worth a sweep.
    const GARBAGE_MIN: usize = 1024;

    /// Removes the entries of cancelled timers when they are more than half of the heap.
    fn sweep(&mut self) {
        if self.heap.len() > 2 * self.armed + Self::GARBAGE_MIN {
            let timers = &self.timers;
            self.heap.retain(|&Reverse((_, key, arming))| {
                let timer = timers[key as usize];
                timer.is_armed && timer.arming == arming
            });
        }
    }
}

impl Queue for LazyHeap {
    const NAME: &str = "std BinaryHeap, lazy deletion";
    const ORDER: Order = Order::Deadline;
    const ARM_REPLACES: bool = true;
    type Handle = u32;

    fn new() -> LazyHeap {
        LazyHeap { heap: BinaryHeap::new(), timers: Vec::new(), armed: 0 }
    }

    fn arm(&mut self, key: u32, after: Duration) -> u32 {
        if self.timers.len() <= key as usize {
            self.timers.resize(key as usize + 1, Timer::default());
        }
        let timer = &mut self.timers[key as usize];
        timer.arming = timer.arming.wrapping_add(1);
        self.armed += usize::from(!timer.is_armed);
        timer.is_armed = true;
        self.heap.push(Reverse((after.as_nanos() as u64, key, timer.arming)));
        self.sweep();
        key
    }

    fn push_out(&mut self, handle: &mut u32, _: u32, after: Duration) {
        self.arm(*handle, after);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let was_armed = core::mem::take(&mut self.timers[key as usize].is_armed);
        self.armed -= usize::from(was_armed);
        was_armed
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let now = now.as_nanos() as u64;
        while let Some(&Reverse((_, key, arming))) =
            self.heap.peek().filter(|first| first.0.0 <= now)
        {
            self.heap.pop();
            if self.timers[key as usize].arming == arming && self.cancel(key) {
                fired.push(key);
            }
        }
    }

    fn pending(&self) -> usize {
        self.armed
    }
}

/// Implements [`Queue`] for a priority queue: a heap and a hash map.
#[cfg(feature = "suite")]
macro_rules! priority_queue {
    ($type:ident, $name:literal, $queue:ty, $change:ident) => {
        #[derive(Default)]
        pub struct $type($queue);

        impl Queue for $type {
            const NAME: &str = $name;
            const NEXT_EVENT: NextEvent = NextEvent::Exact;
            const ORDER: Order = Order::Deadline;
            const ARM_REPLACES: bool = true;
            const REENTRANT: bool = true;
            type Handle = u32;

            fn new() -> $type {
                $type::default()
            }

            fn arm(&mut self, key: u32, after: Duration) -> u32 {
                self.0.push(key, Reverse(after));
                key
            }

            fn push_out(&mut self, _: &mut u32, key: u32, after: Duration) {
                let _ = self.0.$change(&key, Reverse(after));
            }

            fn cancel(&mut self, key: u32) -> bool {
                self.0.remove(&key).is_some()
            }

            fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
                if self.0.peek().is_some_and(|(_, deadline)| deadline.0 <= now) {
                    fired.extend(self.0.pop().map(|(key, _)| key));
                }
            }

            fn next_event(&mut self) -> Option<Duration> {
                self.0.peek().map(|(_, deadline)| deadline.0)
            }
        }
    };
}

#[cfg(feature = "suite")]
priority_queue!(
    PriorityQueue,
    "priority-queue 2.7.0",
    priority_queue::PriorityQueue<u32, Reverse<Duration>>,
    change_priority
);

#[cfg(feature = "suite")]
priority_queue!(
    KeyedPriorityQueue,
    "keyed_priority_queue 0.4.2",
    keyed_priority_queue::KeyedPriorityQueue<u32, Reverse<Duration>>,
    set_priority
);

#[cfg(feature = "suite")]
pub use suite::{Calloop, Embassy};

#[cfg(feature = "suite")]
mod suite {
    use crate::Queue;
    use crate::tasks::Woken;
    use calloop::timer::{TimeoutAction, Timer};
    use calloop::{Dispatcher, EventLoop, RegistrationToken};
    use embassy_time_queue_utils::queue_generic::ConstGenericQueue;
    use std::task::Waker;
    use std::time::{Duration, Instant};
    use tickless_conformance::{Cancel, NextEvent, Order};

    /// calloop's event loop: a binary heap of timers, each an event source.
    pub struct Calloop {
        event_loop: EventLoop<'static, Vec<u32>>,
        start: Instant,
    }

    impl Queue for Calloop {
        const NAME: &str = "calloop 0.14.5, Timer";
        const CANCEL: Cancel = Cancel::Silent;
        const ORDER: Order = Order::Deadline;
        type Handle = (RegistrationToken, Dispatcher<'static, Timer, Vec<u32>>);

        fn new() -> Calloop {
            let event_loop = EventLoop::try_new().expect("a loop starts");
            Calloop { event_loop, start: Instant::now() }
        }

        fn arm(&mut self, key: u32, after: Duration) -> Self::Handle {
            let timer = Timer::from_deadline(self.start + after);
            let fire = move |_, _: &mut (), fired: &mut Vec<u32>| {
                fired.push(key);
                TimeoutAction::Drop
            };
            let timer = Dispatcher::new(timer, fire);
            let token = self.event_loop.handle().register_dispatcher(timer.clone());
            (token.expect("there is room"), timer)
        }

        fn push_out(&mut self, (token, timer): &mut Self::Handle, _: u32, after: Duration) {
            timer.as_source_mut().set_deadline(self.start + after);
            self.event_loop.handle().update(token).expect("it is pending");
        }

        fn cancel(&mut self, (token, _): Self::Handle) -> bool {
            self.event_loop.handle().remove(token);
            true
        }

        fn advance(&mut self, _: Duration, fired: &mut Vec<u32>) {
            self.event_loop.dispatch(Duration::ZERO, fired).expect("a loop of timers runs");
        }
    }

    /// The queue of embassy's time drivers: it wakes tasks, and a task that is scheduled twice is
    /// woken at the earlier time. There is room for 64 tasks; if it is full, it wakes some early,
    /// as documented.
    pub struct Embassy {
        queue: ConstGenericQueue<64>,
        wakers: Vec<Waker>,
        woken: Woken,
        now: u64,
    }

    impl Queue for Embassy {
        const NAME: &str = "embassy-time-queue-utils 0.3.2";
        const NEXT_EVENT: NextEvent = NextEvent::Bound;
        const CANCEL: Cancel = Cancel::None;
        type Handle = ();

        fn new() -> Embassy {
            let queue = ConstGenericQueue::new();
            Embassy { queue, wakers: Vec::new(), woken: Woken::default(), now: 0 }
        }

        fn arm(&mut self, key: u32, after: Duration) {
            while self.wakers.len() <= key as usize {
                self.wakers.push(self.woken.waker(self.wakers.len() as u32));
            }
            self.queue.schedule_wake(after.as_nanos() as u64, &self.wakers[key as usize]);
        }

        fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
            self.now = now.as_nanos() as u64;
            self.queue.next_expiration(self.now);
            fired.append(&mut self.woken.take());
        }

        fn next_event(&mut self) -> Option<Duration> {
            // It wakes what is due, and returns `u64::MAX` if nothing is left.
            let next = self.queue.next_expiration(self.now);
            let next = if self.woken.is_empty() { next } else { self.now };
            Some(next).filter(|&next| next != u64::MAX).map(Duration::from_nanos)
        }
    }
}
