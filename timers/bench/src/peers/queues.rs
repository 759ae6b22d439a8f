//! Queues of timers that their caller drives, as tables, in steps of time, and behind a mutex.

use super::{CAUGHT_UP, Expire, Shared, Steps, Table};
use crate::sample::Stopwatch;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Published timers, called as their users call them. Times are distances from the moment at which
/// the queue was made.
pub trait Queue: Sized + 'static {
    /// What the user keeps of a timer.
    type Handle;

    fn new() -> Self;

    /// Returns the runtime inside of which the queue must be used, if it needs one.
    fn runtime(&self) -> Option<Handle> {
        None
    }

    /// Arms a timer. No other pending timer has this key.
    fn arm(&mut self, key: u32, after: Duration) -> Self::Handle;

    /// Arms a timer that is never cancelled or moved.
    fn arm_and_forget(&mut self, key: u32, after: Duration) {
        self.arm(key, after);
    }

    /// Moves a pending timer.
    fn push_out(&mut self, handle: &mut Self::Handle, key: u32, after: Duration);

    /// Returns whether the timer was pending.
    fn cancel(&mut self, handle: Self::Handle) -> bool;

    /// Releases what the handle of a timer that has fired still occupies.
    fn free(&mut self, _: Self::Handle) {}

    /// Moves the time, and adds the keys of all due timers.
    fn advance(&mut self, now: Duration, fired: &mut Vec<u32>);

    fn pending(&self) -> usize;
}

/// The key of the timer that pairs arm and cancel.
const SPARE: u32 = 0;

/// A queue, and the handle of each timer. Their keys are one more than their numbers.
pub struct Handles<Q: Queue> {
    queue: Q,
    handles: Vec<Q::Handle>,
    due: Vec<u32>,
}

impl<Q: Queue> Default for Handles<Q> {
    fn default() -> Self {
        Handles { queue: Q::new(), handles: Vec::new(), due: Vec::new() }
    }
}

impl<Q: Queue> Table for Handles<Q> {
    fn runtime(&self) -> Option<Handle> {
        self.queue.runtime()
    }

    fn add(&mut self, after: Duration) {
        let handle = self.queue.arm(self.handles.len() as u32 + 1, after);
        self.handles.push(handle);
    }

    fn pair(&mut self, after: Duration) {
        let handle = self.queue.arm(SPARE, after);
        let cancelled = self.queue.cancel(handle);
        debug_assert!(cancelled);
    }

    fn push_out(&mut self, timer: usize, after: Duration) {
        self.queue.push_out(&mut self.handles[timer], timer as u32 + 1, after);
    }

    fn pending(&mut self) -> usize {
        self.queue.pending()
    }
}

impl<Q: Queue> Drop for Handles<Q> {
    fn drop(&mut self) {
        self.handles.drain(..).for_each(|handle| self.queue.free(handle));
    }
}

impl<Q: Queue> Steps for Handles<Q> {
    fn arm_all(&mut self, after: &[Duration]) {
        self.due.reserve(after.len());
        let runtime = self.runtime();
        let _entered = runtime.as_ref().map(Handle::enter);
        (1..).zip(after).for_each(|(key, &after)| self.queue.arm_and_forget(key, after));
    }

    fn advance(&mut self, ms: u64) -> u64 {
        self.queue.advance(Duration::from_millis(ms), &mut self.due);
        self.due.drain(..).map(|key| u64::from(key != SPARE)).sum()
    }
}

/// Lets a queue that reads the clock expire when all timers are due.
pub fn caught_up<Q: Queue>(name: &'static str) -> Expire {
    let run = |after: &[Duration]| {
        let mut queue = Handles::<Q>::default();
        let all_due = Instant::now() + Duration::from_millis(1_010);
        queue.arm_all(after);
        std::thread::sleep(all_due.saturating_duration_since(Instant::now()));
        let watch = Stopwatch::start();
        let fired = queue.advance(1_000);
        (fired, watch.elapsed())
    };
    Expire { name, how: CAUGHT_UP, run }
}

/// A queue that threads share, and the number of keys in use.
pub struct Locked<Q: Queue>(Mutex<(Q, u32)>);

impl<Q: Queue> Locked<Q> {
    fn lock(&self) -> MutexGuard<'_, (Q, u32)> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

impl<Q: Queue<Handle: Send> + Send> Shared for Locked<Q> {
    type Timer = Box<(u32, Option<Q::Handle>)>;

    fn new() -> Self {
        Locked(Mutex::new((Q::new(), SPARE)))
    }

    fn timer(&self) -> Self::Timer {
        let mut locked = self.lock();
        locked.1 += 1;
        Box::new((locked.1, None))
    }

    fn arm(&self, timer: &mut Self::Timer, after: Duration) {
        timer.1 = Some(self.lock().0.arm(timer.0, after));
    }

    fn cancel(&self, timer: &mut Self::Timer) {
        let cancelled = timer.1.take().is_some_and(|handle| self.lock().0.cancel(handle));
        debug_assert!(cancelled);
    }
}
