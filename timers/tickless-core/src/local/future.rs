//! Sleeps, timeouts and intervals as futures of one thread, for async executors that keep each task
//! on one thread.
//!
//! The executor owns one [`Sleeps`]. Before it waits for events it calls
//! [`next_event`](Sleeps::next_event), and after it has waited [`advance`](Sleeps::advance), which
//! wakes the tasks whose sleeps are due. Tasks make their futures with a [`Handle`]:
//!
//! ```
//! use core::time::Duration;
//! use std::task::Waker;
//! use tickless_core::local::{Clock, future::Sleeps};
//! use tickless_core::time::Instant;
//!
//! // An executor of a real system passes `Clock::new`, with the clock that it waits on.
//! let sleeps = Sleeps::new(Clock::manual(Instant::ZERO));
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
//! This module takes no lock, uses no atomics and makes no system call. A duration counts from
//! [`now`](Handle::now), which reads the [`Clock`] of the [`Sleeps`]: so a task that has computed
//! for long still sleeps for the whole duration. With a [`Clock::manual`] nothing reads a clock,
//! and a duration counts from the last advance. The first poll of a sleep takes a record from the
//! table of a [`LocalTimers`](super::LocalTimers); it allocates only when the table grows.
//!
//! # Accuracy
//!
//! No future completes early. [`sleep`](Handle::sleep) and [`interval`](Handle::interval) complete
//! with the first advance at or after their deadline and cost O(log n).
//! [`coarse_sleep`](Handle::coarse_sleep) and [`timeout`](Handle::timeout) cost O(1), and are late
//! by up to 13 % of their duration plus a tick. [`Sleep::reset`] to a later time is one store for
//! either kind. Cancelling a sleep and beginning another that ends later also costs one store.
//!
//! # Corner cases
//!
//! - A future that has completed is ready again whenever it is polled.
//! - Several tasks and executors of its thread can poll a sleep in turn: the sleep wakes the task
//!   that polled it last. Its deadline stays on the clock of the [`Sleeps`] that it came from.
//! - After the [`Sleeps`] have been dropped, none of their futures completes, except those whose
//!   deadline had passed. The wakers are dropped with the [`Sleeps`], which frees a task that is
//!   kept alive by its own waker alone.
//! - A leaked sleep (`mem::forget`) keeps its record, and wakes its task once.
//! - If a waker panics in [`advance`](Sleeps::advance), the panic reaches the caller of `advance`.
//!   The tasks that were not woken yet are woken by the next advance, and until then
//!   [`next_event`](Sleeps::next_event) returns the current time.
//! - A waker can use the handle: make, poll, reset and drop sleeps, and even call `advance`.

mod state;

use super::Clock;
use super::table::NO_SLOT;
use crate::periodic::forward;
use crate::time::{Instant, Ns, Tick, Window};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use state::{Kind, Waiting};

/// The sleeps of one thread. The thread's executor holds this object: see the [module](self).
pub struct Sleeps {
    shared: Rc<Shared>,
}

/// Makes futures, whose tasks are woken by the [`Sleeps`] that this handle came from. A clone of a
/// handle costs an increment of a reference count.
#[derive(Clone)]
pub struct Handle {
    shared: Rc<Shared>,
}

/// What the [`Sleeps`], its handles and its futures share. No code of the user runs while `state`
/// is borrowed: wakers are cloned, woken and dropped only when it is not borrowed.
struct Shared {
    /// A copy of the state's clock, to use without a borrow of the state.
    clock: Cell<Clock>,
    state: RefCell<Waiting>,
}

impl Shared {
    /// Returns the time of the last advance.
    #[inline(always)]
    fn advanced(&self) -> Instant {
        self.clock.get().advanced.into()
    }

    #[inline(always)]
    fn now(&self) -> Instant {
        self.clock.get().now().into()
    }

    /// Returns the time at which `after` has passed.
    #[inline(always)]
    fn deadline(&self, after: Duration) -> Instant {
        if self.clock.get().is_read() {
            return self.deadline_by_clock(after);
        }
        self.advanced() + after
    }

    #[cold]
    #[inline(never)]
    fn deadline_by_clock(&self, after: Duration) -> Instant {
        self.now() + after
    }
}

impl Sleeps {
    /// Returns an object without sleeps. Coarse sleeps have a tick of 1 ms.
    pub fn new(clock: Clock) -> Sleeps {
        Sleeps::with_tick(clock, Tick::default())
    }

    /// Returns an object without sleeps, whose coarse sleeps have this tick.
    pub fn with_tick(clock: Clock, tick: Tick) -> Sleeps {
        let state = RefCell::new(Waiting::new(clock, tick));
        Sleeps { shared: Rc::new(Shared { clock: Cell::new(clock), state }) }
    }

    /// Returns a handle, with which tasks make their futures.
    pub fn handle(&self) -> Handle {
        Handle { shared: Rc::clone(&self.shared) }
    }

    /// Returns when to call [`advance`](Self::advance) next; `None` if no sleep is pending. It is
    /// never later than the next deadline, and can be earlier if coarse sleeps were dropped or
    /// reset to a later time ([`LocalTimers::next_event`](super::LocalTimers::next_event)).
    pub fn next_event(&self) -> Option<Instant> {
        self.shared.state.borrow_mut().next_event()
    }

    /// Sets the current time, and wakes the tasks whose sleeps are due, in the order of their
    /// deadlines as far as the accuracy of the sleeps allows. Returns how many tasks it woke. A
    /// time before that of the last advance counts as that time.
    pub fn advance(&self, now: Instant) -> usize {
        self.shared.clock.set(self.shared.state.borrow_mut().advance(now));
        let next_due = || self.shared.state.borrow_mut().due.pop_front();
        let mut woken = 0;
        while let Some(waker) = next_due() {
            woken += 1;
            waker.wake();
        }
        woken
    }

    /// Runs a future together with the sleeps, on an executor that has a sleep of its own: polls
    /// `future`, advances the sleeps before each poll, and waits with `sleep_until` for the next
    /// event. `now` reads the clock on which the sleeps count. Returns the output of `future`.
    ///
    /// `future` can be a whole executor of one thread, such as a set of tasks. However many sleeps
    /// there are, the surrounding executor has one, made by `sleep_until`, which is replaced only
    /// if a sleep with an earlier deadline is added. That one should not end before its deadline:
    /// if it does, `sleep_until` is called again and again until the deadline has passed by `now`.
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
                // Wakes the tasks whose sleeps are due. They are part of `future`, so this also
                // wakes the current task, which then polls `future` again.
                self.advance(now());
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the current time: a reading of the [`Clock`], or, with a [`Clock::manual`], the
    /// latest time that was passed to [`advance`](Self::advance).
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Returns the number of sleeps that are pending.
    pub fn pending(&self) -> usize {
        self.shared.state.borrow().pending()
    }
}

impl Drop for Sleeps {
    fn drop(&mut self) {
        // Dropping the old state drops wakers, and this can drop tasks and their sleeps. These
        // sleeps look for their timers in the new state and find none.
        drop(self.shared.state.replace(Waiting::closed()));
    }
}

impl Handle {
    /// Returns the current time, from which durations count: see [`Sleeps::now`].
    #[inline]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Returns a future that completes when `after` has passed.
    #[inline]
    pub fn sleep(&self, after: Duration) -> Sleep {
        self.make(self.shared.deadline(after), Kind::Precise)
    }

    /// Returns a future that completes at `deadline`. If `deadline` is not after the last advance,
    /// the future is ready when first polled.
    #[inline]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.make(deadline, Kind::Precise)
    }

    /// Returns a future that completes when `after` has passed, or later by up to 13 % of `after`
    /// and a tick: for idle timeouts, which are often moved to a later time and seldom fire.
    #[inline]
    pub fn coarse_sleep(&self, after: Duration) -> Sleep {
        self.make(self.shared.deadline(after), Kind::Coarse)
    }

    #[inline]
    fn make(&self, deadline: Instant, kind: Kind) -> Sleep {
        Sleep { shared: Rc::clone(&self.shared), deadline, slot: NO_SLOT, kind }
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

/// A future that ends at a deadline, made by a [`Handle`]. Dropping the future cancels the sleep.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sleep {
    shared: Rc<Shared>,
    deadline: Instant,
    /// The slot of the sleep's timer from its first poll until it has completed, otherwise
    /// [`NO_SLOT`]. After the [`Sleeps`] have been dropped, no timer has this slot. A generation is
    /// not needed, because no other sleep uses the slot until this one has ended.
    slot: u32,
    kind: Kind,
}

impl Sleep {
    /// Returns the deadline.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sets the deadline to `after` from now, whether later or earlier than before. Moving it to a
    /// later time costs one store.
    #[inline]
    pub fn reset(&mut self, after: Duration) {
        self.reset_at(self.shared.deadline(after));
    }

    /// Sets the deadline, whether later or earlier than before.
    #[inline]
    pub fn reset_at(&mut self, deadline: Instant) {
        self.deadline = deadline;
        let started = self.shared.state.borrow_mut().start(self.kind, self.slot, deadline.to_ns());
        if !started {
            self.start_slow();
        }
    }

    #[cold]
    fn start_slow(&self) {
        self.shared.state.borrow_mut().start_slow(self.kind, self.slot, self.deadline.to_ns());
    }

    /// Polls the sleep; the first poll arms it. Inlined into the future that awaits the sleep,
    /// where the compiler knows the kind of the sleep and that it is not armed.
    #[inline(always)]
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.slot != NO_SLOT || self.deadline <= self.shared.advanced() {
            return self.poll_again(cx.waker());
        }
        let waker = cx.waker().clone();
        let armed = self.shared.state.borrow_mut().arm(self.kind, self.deadline.to_ns(), waker);
        match armed {
            Ok(slot) => self.slot = slot,
            Err(waker) => self.arm_slow(waker),
        }
        Poll::Pending
    }

    /// Polls a sleep that is armed or due.
    #[inline(never)]
    fn poll_again(&mut self, waker: &Waker) -> Poll<()> {
        if self.deadline <= self.shared.advanced() {
            self.cancel();
            return Poll::Ready(());
        }
        self.set_waker(waker);
        Poll::Pending
    }

    /// Arms a sleep if one store is not enough. This allocates if no timer is idle, and can fail.
    #[cold]
    fn arm_slow(&mut self, waker: Waker) {
        let mut state = self.shared.state.borrow_mut();
        match state.arm_slow(self.kind, self.deadline.to_ns(), waker) {
            Ok(slot) => self.slot = slot,
            // If there is no timer, every advance wakes the task, until the deadline has passed.
            Err(waker) if !state.is_closed => state.due.push_back(waker),
            Err(waker) => {
                drop(state);
                drop(waker);
            }
        }
    }

    /// Stores the waker of the task that polls, unless the stored one wakes this task already.
    #[inline]
    fn set_waker(&self, waker: &Waker) {
        let is_set = |old: &Waker| old.will_wake(waker);
        if self.shared.state.borrow().waker(self.kind, self.slot).is_none_or(|old| !is_set(old)) {
            self.replace_waker(waker.clone());
        }
    }

    #[cold]
    fn replace_waker(&self, waker: Waker) {
        let old = self.shared.state.borrow_mut().set_waker(self.kind, self.slot, waker);
        // Drop the old waker only now that the borrow has ended: its drop runs the executor's code.
        drop(old);
    }

    #[inline(always)]
    fn cancel(&mut self) {
        let slot = core::mem::replace(&mut self.slot, NO_SLOT);
        let waker = self.shared.state.borrow_mut().cancel(self.kind, slot);
        // Drop the waker only now that the borrow has ended: its drop runs the executor's code.
        drop(waker);
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_elapsed(cx)
    }
}

impl Drop for Sleep {
    #[inline(always)]
    fn drop(&mut self) {
        self.cancel();
    }
}

/// An interval that ticks every period, without drift; made by [`Handle::interval`].
///
/// Ticks are due at whole periods after the first one, however late the task awaits each of them.
pub struct Interval {
    sleep: Sleep,
    period: Ns,
}

impl Interval {
    /// Waits for the next tick. Returns how many ticks before this one were missed; the missed
    /// ticks are skipped. Dropping the future loses no tick.
    pub async fn tick(&mut self) -> u64 {
        poll_fn(|cx| self.sleep.poll_elapsed(cx)).await;
        let now = self.sleep.shared.advanced().to_ns();
        let due = Window::at(self.sleep.deadline.to_ns());
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
