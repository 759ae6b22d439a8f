//! Sleeps, timeouts and intervals as futures of one thread, for executors that keep a task on its
//! thread.
//!
//! The executor owns one [`Sleeps`]. Before it waits for events it calls
//! [`next_event`](Sleeps::next_event), and after it has waited [`advance`](Sleeps::advance), which
//! wakes the tasks whose sleeps are due. Tasks make their futures with a [`Handle`]:
//!
//! ```
//! use core::time::Duration;
//! use std::task::Waker;
//! use tickless_core::local::future::Sleeps;
//! use tickless_core::time::Instant;
//!
//! let sleeps = Sleeps::new(Instant::ZERO); // from any clock that the executor uses
//! let timers = sleeps.handle();
//! let mut task = Box::pin(async move {
//!     timers.sleep(Duration::from_millis(20)).await;
//!     timers.timeout(Duration::from_millis(5), core::future::pending::<()>()).await
//! });
//!
//! // The executor's loop, with one task that it polls whenever a sleep was due:
//! let mut cx = std::task::Context::from_waker(Waker::noop());
//! let result = loop {
//!     if let std::task::Poll::Ready(result) = task.as_mut().poll(&mut cx) {
//!         break result;
//!     }
//!     let now = sleeps.next_event().unwrap(); // here the executor would wait
//!     sleeps.advance(now);
//! };
//! assert!(result.is_err()); // the time for `pending` is up
//! assert!(sleeps.now() >= Instant::ZERO + Duration::from_millis(25));
//! ```
//!
//! Nothing here locks, uses atomics, reads a clock or makes a system call. A duration counts from
//! [`now`](Handle::now), the time of the last advance. The first poll of a sleep takes a record
//! from the table of a [`LocalTimers`]; this allocates only when the table grows.
//!
//! # Accuracy
//!
//! No future completes early. [`sleep`](Handle::sleep) and [`interval`](Handle::interval) complete
//! with the first advance at or after their deadline and cost O(log n).
//! [`coarse_sleep`](Handle::coarse_sleep) and [`timeout`](Handle::timeout) cost O(1), and may be
//! late by 13 % of their distance plus a tick. [`Sleep::reset`] pushes a coarse sleep out with one
//! store.
//!
//! # Corner cases
//!
//! - A future that has completed is ready again whenever it is polled.
//! - A sleep may be polled by several tasks and executors of its thread in turn: it wakes the task
//!   that polled it last. Its deadline stays on the clock of the [`Sleeps`] that it came from.
//! - After the [`Sleeps`] have been dropped no future of theirs completes, except those whose
//!   deadline had passed. Their wakers are dropped with the [`Sleeps`], which frees a task that is
//!   kept alive by its own waker alone.
//! - A leaked sleep (`mem::forget`) keeps its record, and wakes its task once.
//! - If a waker panics in [`advance`](Sleeps::advance), the panic reaches the caller of `advance`.
//!   The tasks that were not woken yet are woken by the next advance, and until then
//!   [`next_event`](Sleeps::next_event) returns the current time.
//! - A waker may use the handle: make, poll, reset and drop sleeps, and even call `advance`.

use super::{Key, LocalError, LocalTimers};
use crate::periodic::forward;
use crate::time::{Instant, Ns, Tick, Window};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// The sleeps of one thread, as its executor holds them: see the [module](self).
pub struct Sleeps {
    shared: Rc<Shared>,
}

/// Makes futures, whose tasks are woken by the [`Sleeps`] that this handle came from. A clone of a
/// handle costs an increment of a reference count.
#[derive(Clone)]
pub struct Handle {
    shared: Rc<Shared>,
}

/// The state that the [`Sleeps`], its handles and its futures share. No code of the user runs while
/// the state is borrowed: wakers are cloned, woken and dropped only when it is not.
type Shared = RefCell<State>;

struct State {
    /// The timers of sleeps, each with the waker of its task, which is taken when the timer fires.
    timers: LocalTimers<Option<Waker>>,
    /// The wakers of timers that have fired, in the order in which they fired.
    due: VecDeque<Waker>,
    /// Timers of sleeps that have ended: coarse ones, then precise ones. They are kept for later
    /// sleeps, because arming one of them again costs a quarter of inserting, arming and removing
    /// another one.
    idle: [Vec<Key>; 2],
    is_closed: bool,
}

impl State {
    fn new(now: Instant, tick: Tick) -> State {
        State {
            timers: LocalTimers::with_tick(now, tick),
            due: VecDeque::new(),
            idle: [Vec::new(), Vec::new()],
            is_closed: false,
        }
    }
}

impl Sleeps {
    /// Returns an object without sleeps. Coarse sleeps have a tick of 1 ms.
    pub fn new(now: Instant) -> Sleeps {
        Sleeps::with_tick(now, Tick::default())
    }

    /// Returns an object without sleeps, whose coarse sleeps have this tick.
    pub fn with_tick(now: Instant, tick: Tick) -> Sleeps {
        Sleeps { shared: Rc::new(RefCell::new(State::new(now, tick))) }
    }

    /// Returns a handle, with which tasks make their futures.
    pub fn handle(&self) -> Handle {
        Handle { shared: Rc::clone(&self.shared) }
    }

    /// Returns when to call [`advance`](Self::advance) next; `None` if no sleep is pending. It is
    /// never later than the next deadline, and may be earlier if coarse sleeps were dropped or
    /// reset to a later time ([`LocalTimers::next_event`]).
    pub fn next_event(&self) -> Option<Instant> {
        let State { timers, due, .. } = &*self.shared.borrow();
        if due.is_empty() { timers.next_event() } else { Some(timers.now()) }
    }

    /// Sets the current time, and wakes the tasks whose sleeps are due, in the order of their
    /// deadlines as far as the accuracy of the sleeps allows. Returns how many tasks it woke. A
    /// time before [`now`](Self::now) counts as `now`.
    pub fn advance(&self, now: Instant) -> usize {
        {
            let State { timers, due, .. } = &mut *self.shared.borrow_mut();
            timers.advance(now, |timers, key| {
                due.extend(timers.get_mut(key).and_then(Option::take));
            });
        }
        let next_due = || self.shared.borrow_mut().due.pop_front();
        let mut woken = 0;
        while let Some(waker) = next_due() {
            woken += 1;
            waker.wake();
        }
        woken
    }

    /// Runs a future together with the sleeps, on an executor that has a sleep of its own: polls
    /// `future`, advances the sleeps before each poll, and waits with `sleep_until` for the next
    /// event. `now` reads the clock of the sleeps. Returns the output of `future`.
    ///
    /// `future` may be the whole of an executor of one thread, such as a set of tasks. However many
    /// sleeps there are, the surrounding executor has one, from `sleep_until`, which is replaced
    /// only if an earlier deadline is added. It should not complete before its deadline: if it
    /// does, `sleep_until` is called again and again until the deadline has passed by `now`.
    pub async fn drive<F: Future, S: Future<Output = ()>>(
        &self,
        future: F,
        now: impl Fn() -> Instant,
        mut sleep_until: impl FnMut(Instant) -> S,
    ) -> F::Output {
        let (mut future, mut device) = (pin!(future), pin!(None::<S>));
        let mut armed = Instant::NEVER;
        poll_fn(|cx| {
            self.advance(now());
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            while let Some(next) = self.next_event() {
                if next < armed {
                    device.set(Some(sleep_until(next)));
                    armed = next;
                }
                if device.as_mut().as_pin_mut().is_none_or(|sleep| sleep.poll(cx).is_pending()) {
                    break;
                }
                armed = Instant::NEVER;
                // Wakes the tasks whose sleeps are due. They are part of `future`, so the current
                // task is woken too, and polls `future` again.
                self.advance(now());
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the current time: the latest that was passed to [`advance`](Self::advance).
    pub fn now(&self) -> Instant {
        self.shared.borrow().timers.now()
    }

    /// Returns the number of sleeps that are pending.
    pub fn pending(&self) -> usize {
        self.shared.borrow().timers.pending()
    }
}

impl Drop for Sleeps {
    fn drop(&mut self) {
        let closed = State { is_closed: true, ..State::new(self.now(), Tick::default()) };
        // Dropping the old state drops wakers, which may drop tasks and their sleeps. These sleeps
        // look for their timers in the new state and find none.
        drop(self.shared.replace(closed));
    }
}

impl Handle {
    /// Returns the current time, on the clock of the executor.
    pub fn now(&self) -> Instant {
        self.shared.borrow().timers.now()
    }

    /// Returns a future that completes when `after` has passed.
    pub fn sleep(&self, after: Duration) -> Sleep {
        self.make(self.now() + after, Kind::Precise)
    }

    /// Returns a future that completes at `deadline`. If that has passed, it is ready when first
    /// polled.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.make(deadline, Kind::Precise)
    }

    /// Returns a future that completes when `after` has passed, or up to 13 % of that and a tick
    /// later: for idle timeouts, which are often moved to a later time and seldom fire.
    pub fn coarse_sleep(&self, after: Duration) -> Sleep {
        self.make(self.now() + after, Kind::Coarse)
    }

    fn make(&self, deadline: Instant, kind: Kind) -> Sleep {
        Sleep { shared: Rc::clone(&self.shared), key: None, kind, deadline }
    }

    /// Yields `future`'s output, or [`Elapsed`] if `future` is not ready before `after` has passed.
    /// As accurate as [`coarse_sleep`](Self::coarse_sleep). A future that is ready never elapses.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] if the deadline passed first.
    pub fn timeout<F: Future>(
        &self,
        after: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        let mut sleep = self.coarse_sleep(after);
        async move {
            let mut future = pin!(future);
            poll_fn(|cx| match future.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Ok(output)),
                Poll::Pending => {
                    sleep.poll_elapsed(cx).map(|()| Err(Elapsed { deadline: sleep.deadline }))
                }
            })
            .await
        }
    }

    /// Returns an interval that ticks every `period`, starting one period from now. A period of
    /// zero counts as one nanosecond.
    pub fn interval(&self, period: Duration) -> Interval {
        Interval { sleep: self.sleep(period), period: Ns::from_duration(period).max(Ns(1)) }
    }
}

/// A future that completes at a deadline, made by a [`Handle`]. Dropping the future cancels the
/// sleep.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sleep {
    shared: Rc<Shared>,
    /// The sleep's timer, from its first poll until it has completed.
    key: Option<Key>,
    kind: Kind,
    deadline: Instant,
}

impl Sleep {
    /// Returns the deadline.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sets the deadline to `after` from now, whether later or earlier than before. One store if a
    /// coarse sleep is moved to a later time.
    pub fn reset(&mut self, after: Duration) {
        let timers = &mut self.shared.borrow_mut().timers;
        self.deadline = timers.now() + after;
        if let Some(key) = self.key {
            // Fails only if the `Sleeps` have been dropped.
            let _ = timers.start(key, after);
        }
    }

    /// Sets the deadline, whether later or earlier than before.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.deadline = deadline;
        if let Some(key) = self.key {
            let _ = self.shared.borrow_mut().timers.start_at(key, deadline);
        }
    }

    #[inline]
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.borrow_mut();
        if self.deadline <= state.timers.now() {
            drop(state);
            self.cancel();
            return Poll::Ready(());
        }
        let Some(key) = self.key else {
            let is_closed = state.is_closed;
            drop(state);
            if !is_closed {
                self.arm(cx.waker());
            }
            return Poll::Pending;
        };
        if let Some(Some(waker)) = state.timers.get_mut(key) {
            if waker.will_wake(cx.waker()) {
                return Poll::Pending;
            }
        }
        drop(state);
        self.set_waker(key, cx.waker());
        Poll::Pending
    }

    /// Arms the sleep for its deadline, which has not passed.
    #[inline]
    fn arm(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let State { timers, idle, due, .. } = &mut *self.shared.borrow_mut();
        let idle = idle[self.kind as usize].pop();
        let inserted = idle.map_or_else(|| self.kind.insert(timers), Ok);
        let Ok(key) = inserted else {
            // There is no room for a timer: there are 2^29 timers of this kind, in 12 GB of memory.
            // So every advance wakes the task, until its deadline has passed.
            due.push_back(waker);
            return;
        };
        self.key = Some(key);
        let _ = timers.start_at(key, self.deadline);
        if let Some(empty) = timers.get_mut(key) {
            *empty = Some(waker);
        }
    }

    #[cold]
    fn set_waker(&self, key: Key, waker: &Waker) {
        let mut waker = Some(waker.clone());
        if let Some(old) = self.shared.borrow_mut().timers.get_mut(key) {
            core::mem::swap(old, &mut waker);
        }
    }

    #[inline]
    fn cancel(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut state = self.shared.borrow_mut();
        let State { timers, idle, .. } = &mut *state;
        // None only if the `Sleeps` have been dropped.
        let Some(waker) = timers.cancelled(key) else { return };
        idle[self.kind as usize].push(key);
        let waker = waker.take();
        drop(state);
        // The waker is dropped only after the borrow has ended, because its drop is code of the
        // executor.
        drop(waker);
    }
}

/// The kind of a sleep's timer. The values are indices of [`State::idle`].
#[derive(Clone, Copy)]
enum Kind {
    Coarse,
    Precise,
}

impl Kind {
    fn insert(self, timers: &mut LocalTimers<Option<Waker>>) -> Result<Key, LocalError> {
        match self {
            Kind::Coarse => timers.insert(None),
            Kind::Precise => timers.insert_precise(None),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_elapsed(cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Ticks every period, without drift; from [`Handle::interval`].
///
/// Ticks are due at whole periods after the first one, however late the task awaits each of them.
pub struct Interval {
    sleep: Sleep,
    period: Ns,
}

impl Interval {
    /// Waits for the next tick. Returns how many ticks were missed before it; they are skipped.
    /// Dropping the future loses no tick.
    pub async fn tick(&mut self) -> u64 {
        poll_fn(|cx| self.sleep.poll_elapsed(cx)).await;
        let now = Ns::from(self.sleep.shared.borrow().timers.now());
        let due = Window::at(self.sleep.deadline.into());
        let (next, periods) = forward(due, now, self.period);
        self.sleep.reset_at(next.soft.into());
        periods - 1
    }

    /// Sets when the next tick is due. Later ticks follow at whole periods after it.
    pub fn reset_at(&mut self, next: Instant) {
        self.sleep.reset_at(next);
    }
}

/// The deadline passed before the future was ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Elapsed {
    /// The deadline that passed.
    pub deadline: Instant,
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the work was done")
    }
}

impl core::error::Error for Elapsed {}

impl fmt::Debug for Sleeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeps").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval").field("next", &self.sleep.deadline).finish_non_exhaustive()
    }
}
