//! Timers that the benchmark does not have.

use crate::tasks::{DelayQueue, Woken, fire, runtime};
use crate::wheels::TICK;
use crate::{HOUR, MS, Queue};
use calloop::timer::{TimeoutAction, Timer};
use calloop::{Dispatcher, EventLoop, RegistrationToken};
use core::cmp::Reverse;
use core::ops::RangeInclusive;
use embassy_time_queue_utils::queue_generic::ConstGenericQueue;
use std::task::Waker;
use std::time::{Duration, Instant};
use tickless_conformance::{Cancel, NextEvent, Order, Rounding};
use tokio::runtime::{Handle, Runtime};

/// Implements [`Queue`] for a priority queue: a heap and a hash map.
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

priority_queue!(
    PriorityQueue,
    "priority-queue 2.7.0",
    priority_queue::PriorityQueue<u32, Reverse<Duration>>,
    change_priority
);

priority_queue!(
    KeyedPriorityQueue,
    "keyed_priority_queue 0.4.2",
    keyed_priority_queue::KeyedPriorityQueue<u32, Reverse<Duration>>,
    set_priority
);

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

/// The queue of embassy's time drivers: it wakes tasks, and a task that is scheduled twice is woken
/// at the earlier time. There is room for 64 tasks; if it is full, it wakes some early, as
/// documented.
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

/// `HashMapDelay`, over a `DelayQueue`.
pub struct DelayMap {
    map: delay_map::HashMapDelay<u32, ()>,
    start: Instant,
    runtime: Runtime,
}

impl Queue for DelayMap {
    const NAME: &str = "delay_map 0.4.1, HashMapDelay";
    const GRANULARITY: u64 = MS;
    const ARM_REPLACES: bool = true;
    const HORIZON: u64 = DelayQueue::HORIZON;
    type Handle = u32;

    fn new() -> DelayMap {
        let (runtime, start) = (runtime(), Instant::now());
        let map = runtime.block_on(async { delay_map::HashMapDelay::new(Duration::from_secs(1)) });
        DelayMap { map, start, runtime }
    }

    fn runtime(&self) -> Option<Handle> {
        Some(self.runtime.handle().clone())
    }

    fn arm(&mut self, key: u32, after: Duration) -> u32 {
        self.map.insert_at(key, (), (self.start + after).saturating_duration_since(Instant::now()));
        key
    }

    fn push_out(&mut self, _: &mut u32, key: u32, after: Duration) {
        let delay = (self.start + after).saturating_duration_since(Instant::now());
        self.map.update_timeout(&key, delay);
    }

    fn cancel(&mut self, key: u32) -> bool {
        self.map.remove(&key).is_some()
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        let DelayMap { map, start, runtime } = self;
        fire(runtime, (*start).into(), now, fired, |cx| {
            map.poll_expired(cx).map(|expired| Some(expired?.ok()?.0))
        });
    }
}

/// The wheel of quinn's author: any 64-bit time, in this case nanoseconds.
pub struct TimerQueue(timer_queue::TimerQueue<u32>);

impl Queue for TimerQueue {
    const NAME: &str = "timer-queue 0.1.1";
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    type Handle = timer_queue::Timer;

    fn new() -> TimerQueue {
        TimerQueue(timer_queue::TimerQueue::new())
    }

    fn arm(&mut self, key: u32, after: Duration) -> timer_queue::Timer {
        self.0.insert(after.as_nanos() as u64, key)
    }

    fn push_out(&mut self, timer: &mut timer_queue::Timer, _: u32, after: Duration) {
        self.0.reset(*timer, after.as_nanos() as u64);
    }

    fn cancel(&mut self, timer: timer_queue::Timer) -> bool {
        self.0.remove(timer);
        true
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        fired.extend(core::iter::from_fn(|| self.0.poll(now.as_nanos() as u64)));
    }

    fn next_event(&mut self) -> Option<Duration> {
        self.0.next_timeout().map(Duration::from_nanos)
    }
}

/// One ring of slots; it is told each tick and returns what is in the slot.
pub struct RingWheel {
    wheel: wheel_timer::WheelTimer<u32>,
    now: Duration,
}

impl RingWheel {
    const SLOTS: u64 = 1 << 16;
}

impl Queue for RingWheel {
    const NAME: &str = "wheel_timer 0.3.1";
    const GRANULARITY: u64 = MS;
    const CANCEL: Cancel = Cancel::None;
    const HORIZON: u64 = (RingWheel::SLOTS - 2) * MS;
    type Handle = ();

    fn new() -> RingWheel {
        let wheel = wheel_timer::WheelTimer::new(RingWheel::SLOTS as usize);
        RingWheel { wheel, now: Duration::ZERO }
    }

    fn arm(&mut self, key: u32, after: Duration) {
        let delay = after.saturating_sub(self.now).as_nanos();
        self.wheel.schedule(delay.div_ceil(u128::from(MS)) as usize, key);
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        while self.now + TICK <= now {
            self.now += TICK;
            fired.extend(self.wheel.tick());
        }
    }

    /// A value is available after its ticks have passed: in the call after them.
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = deadline.max(now);
        due..=due.div_ceil(MS) * MS + MS
    }
}

/// Several layers of slots; durations are rounded to the nearest tick.
pub struct MultiWheel {
    wheel: wheel_timer2::MultiWheel,
    woken: Woken,
    now: Duration,
}

impl Queue for MultiWheel {
    const NAME: &str = "wheel-timer2 0.1.2";
    const GRANULARITY: u64 = MS;
    const ROUNDING: Rounding = Rounding::Nearest;
    const CANCEL: Cancel = Cancel::None;
    const HORIZON: u64 = HOUR;
    type Handle = ();

    fn new() -> MultiWheel {
        let wheel = wheel_timer2::MultiWheel::new(5, 60, TICK);
        MultiWheel { wheel, woken: Woken::default(), now: Duration::ZERO }
    }

    fn arm(&mut self, key: u32, after: Duration) {
        let waker = self.woken.waker(key);
        let delay = after.saturating_sub(self.now);
        let added = self.wheel.add_handle().add(move || waker.wake_by_ref(), delay);
        added.expect("the wheel exists");
    }

    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>) {
        while self.now + TICK <= now {
            self.now += TICK;
            self.wheel.tick();
        }
        fired.append(&mut self.woken.take());
    }

    /// A task is added in the next tick, and its time counts from there.
    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let due = deadline.max(now);
        due.saturating_sub(MS)..=due + 2 * MS
    }
}
