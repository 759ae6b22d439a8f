//! Priority queues that are used as timers, and embassy's queue.

use core::cmp::Reverse;
use embassy_time_queue_utils::queue_generic::ConstGenericQueue;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use tickless_conformance::{Cancel, NextEvent, Order, Timers};

/// A heap and a hash map.
#[derive(Default)]
pub struct PriorityQueue(priority_queue::PriorityQueue<u32, Reverse<u64>>);

impl Timers for PriorityQueue {
    const NAME: &str = "priority-queue 2.7.0";
    const NEXT_EVENT: NextEvent = NextEvent::Exact;
    const ORDER: Order = Order::Deadline;
    const ARM_REPLACES: bool = true;
    const REENTRANT: bool = true;

    fn new() -> PriorityQueue {
        PriorityQueue::default()
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.0.push(key, Reverse(deadline));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.0.change_priority(&key, Reverse(deadline));
    }

    fn cancel(&mut self, key: u32) -> bool {
        self.0.remove(&key).is_some()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut PriorityQueue, u32)) {
        while let Some((&key, _)) = self.0.peek().filter(|(_, deadline)| deadline.0 <= now) {
            self.0.remove(&key);
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        self.0.peek().map(|(_, deadline)| deadline.0)
    }
}

/// A heap and a hash map.
#[derive(Default)]
pub struct KeyedPriorityQueue(keyed_priority_queue::KeyedPriorityQueue<u32, Reverse<u64>>);

impl Timers for KeyedPriorityQueue {
    const NAME: &str = "keyed_priority_queue 0.4.2";
    const NEXT_EVENT: NextEvent = NextEvent::Exact;
    const ORDER: Order = Order::Deadline;
    const ARM_REPLACES: bool = true;
    const REENTRANT: bool = true;

    fn new() -> KeyedPriorityQueue {
        KeyedPriorityQueue::default()
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.0.push(key, Reverse(deadline));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.0.set_priority(&key, Reverse(deadline)).expect("the key is pending");
    }

    fn cancel(&mut self, key: u32) -> bool {
        self.0.remove(&key).is_some()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut KeyedPriorityQueue, u32)) {
        while self.0.peek().is_some_and(|(_, deadline)| deadline.0 <= now) {
            let (key, _) = self.0.pop().expect("one was there");
            fire(self, key);
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        self.0.peek().map(|(_, deadline)| deadline.0)
    }
}

/// The queue of embassy's time drivers: it wakes tasks, and a task that is scheduled twice is woken
/// at the earlier time. There is room for 64 tasks; if it is full, it wakes some early, as
/// documented.
pub struct Embassy {
    queue: ConstGenericQueue<64>,
    wakers: Vec<Waker>,
    fired: Arc<Mutex<Vec<u32>>>,
    now: u64,
}

/// A task that notes its key when it is woken.
struct Task(u32, Arc<Mutex<Vec<u32>>>);

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        self.1.lock().expect("no panic").push(self.0);
    }
}

impl Timers for Embassy {
    const NAME: &str = "embassy-time-queue-utils 0.3.2";
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    const CANCEL: Cancel = Cancel::None;

    fn new() -> Embassy {
        let queue = ConstGenericQueue::new();
        Embassy { queue, wakers: Vec::new(), fired: Arc::default(), now: 0 }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        while self.wakers.len() <= key as usize {
            let task = Task(self.wakers.len() as u32, Arc::clone(&self.fired));
            self.wakers.push(Arc::new(task).into());
        }
        self.queue.schedule_wake(deadline, &self.wakers[key as usize]);
    }

    fn cancel(&mut self, _: u32) -> bool {
        unreachable!("it has no cancel")
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Embassy, u32)) {
        self.now = now;
        self.queue.next_expiration(now);
        let fired = std::mem::take(&mut *self.fired.lock().expect("no panic"));
        fired.into_iter().for_each(|key| fire(self, key));
    }

    fn next_event(&mut self) -> Option<u64> {
        // It wakes what is due, and returns `u64::MAX` if nothing is left.
        let next = self.queue.next_expiration(self.now);
        let is_due = !self.fired.lock().expect("no panic").is_empty();
        if is_due { Some(self.now) } else { Some(next).filter(|&next| next != u64::MAX) }
    }
}
