//! A time driver whose clock advances only when a test moves it.
//!
//! ```
//! use embassy_time::{Duration, Instant, Timer};
//! use tickless_embassy::virtual_time;
//!
//! let begin = Instant::now();
//! virtual_time::block_on(Timer::after_secs(3600)); // takes no time at all
//! assert_eq!(begin.elapsed(), Duration::from_secs(3600));
//! ```
//!
//! embassy has one clock per process, so tests that move it must run in separate processes, or one
//! at a time.

use crate::TimerQueue;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use embassy_time_driver::Driver;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Hand {
    now: u64,
    queue: Option<TimerQueue>,
}

struct VirtualDriver(Mutex<Hand>);

embassy_time_driver::time_driver_impl!(static DRIVER: VirtualDriver =
    VirtualDriver(Mutex::new(Hand { now: 0, queue: None })));

impl VirtualDriver {
    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for VirtualDriver {
    fn now(&self) -> u64 {
        self.hand().now
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        let mut hand = self.hand();
        if at <= hand.now {
            drop(hand);
            return waker.wake_by_ref();
        }
        hand.queue.get_or_insert_default().schedule_wake(at, waker);
    }
}

/// Advances the clock by `ticks`, from one expiry to the next, and wakes each task at its own time.
/// A woken task that schedules another wakeup within `ticks` is woken again. If a waker panics, so
/// does this, after it has woken the other tasks that are due.
pub fn advance(ticks: u64) {
    let to = DRIVER.hand().now.saturating_add(ticks);
    while step(to) {}
}

/// Advances the clock to the next expiry and wakes the tasks that are due. Returns `false` if no
/// task waits.
pub fn advance_to_next() -> bool {
    let next = next_expiry();
    next != u64::MAX && {
        step(next);
        true
    }
}

/// Returns the time of the next expiry in ticks, or `u64::MAX` if no task waits.
pub fn next_expiry() -> u64 {
    let mut hand = DRIVER.hand();
    let now = hand.now;
    // No task is due now: those were woken when the clock reached this time.
    hand.queue.as_mut().map_or(u64::MAX, |queue| queue.expire(now, Waker::wake))
}

/// Runs a future on this thread. Whenever the future waits, the clock advances to the next expiry.
/// If no timer is pending, the thread waits until the future is woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let task = Arc::new(Task { thread: std::thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&task));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !task.woken.swap(false, Ordering::Acquire) {
            if !advance_to_next() {
                std::thread::park();
            }
        }
    }
}

/// Advances the clock to the next expiry, or to `to` if that is earlier. Returns whether it reached
/// an expiry.
fn step(to: u64) -> bool {
    let next = next_expiry();
    let mut hand = DRIVER.hand();
    hand.now = hand.now.max(next.min(to));
    let now = hand.now;
    let mut due = Vec::new();
    if let Some(queue) = &mut hand.queue {
        queue.expire(now, |waker| due.push(waker));
    }
    drop(hand);
    if let Err(panic) = crate::wake_all(due.drain(..)) {
        std::panic::resume_unwind(panic);
    }
    next <= to && next != u64::MAX
}

struct Task {
    thread: std::thread::Thread,
    woken: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
