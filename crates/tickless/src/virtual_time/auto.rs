//! Time that moves on by itself when everything waits for it.
//!
//! A thread at work has a [`Busy`] guard, or polls a future in [`VirtualTime::block_on`], which is
//! the same. While any guard exists the clock stands. When none does, it moves to the next expiry,
//! and what fires there makes a thread busy again: a thread in [`Busy::sleep`] and a task of
//! `block_on` count as busy from the moment at which their timer fires, not from when their thread
//! gets its CPU. So the clock never moves on before a woken thread has run.

use super::VirtualTime;
use crate::platform::worker::Worker;
use crate::timer::{frame, waits};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// How often, in real time, the clock checks whether a thread that is not busy has armed a timer.
const LOOK: Duration = Duration::from_millis(1);

/// Which threads are at work.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<State>,
    /// A thread has finished, or has been woken.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    busy: usize,
    /// The threads in [`VirtualTime::block_on`], once for each call.
    blocking: Vec<u64>,
    /// The thread that moves the clock to the next expiry because no thread is at work.
    stepping: Option<u64>,
}

/// Keeps the clock from moving by itself; from [`VirtualTime::busy`]. Send it along with work: to a
/// thread that you start, or in a message.
#[must_use = "the clock moves on as soon as this is dropped"]
pub struct Busy {
    time: VirtualTime,
    counts: bool,
}

/// Moves the clock whenever nothing is busy; from [`VirtualTime::auto_advance`]. Dropping it waits
/// until a callback that it runs is over. If it is waking a task at that moment, dropping does not
/// wait: the rest of that instant runs after the waker.
#[derive(Debug)]
#[must_use = "the clock stops moving by itself as soon as this is dropped"]
pub struct AutoAdvance {
    time: VirtualTime,
    stop: Arc<AtomicBool>,
    thread: Option<Worker>,
}

impl VirtualTime {
    /// Marks the caller as busy: it is at work, or waits for something other than time, such as I/O
    /// or another program. The clock does not move by itself while such a guard exists; it may be
    /// moved by hand.
    ///
    /// Waits while the clock is moving by itself: when this returns, the clock stands.
    ///
    /// A thread waits for time with [`Busy::sleep`], or with [`block_on`](VirtualTime::block_on)
    /// and a future such as `limiter.acquire(1)`. Both count as busy from the moment at which the
    /// timer fires; `block_on` until its future is ready, so do the work inside the future, or take
    /// a guard there. A call that blocks the thread in another way does not count, not even
    /// [`Limiter::blocking_acquire`](crate::bandwidth::Limiter::blocking_acquire): by the time the
    /// thread runs, the clock may be further on.
    pub fn busy(&self) -> Busy {
        self.enter();
        Busy { time: self.clone(), counts: true }
    }

    /// Wraps a future that waits for something outside of virtual time, such as I/O. The clock does
    /// not move by itself from the first poll until the future is ready.
    pub async fn outside<F: Future>(&self, future: F) -> F::Output {
        let _busy = self.busy();
        future.await
    }

    /// Moves the clock to the next expiry and fires it, unless something is busy, the clock runs
    /// with real time, or this is a callback. Returns whether anything fired.
    ///
    /// For executors that can say when they have nothing to run, such as tokio's with
    /// `on_thread_park`:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickless::VirtualTime;
    ///
    /// let time = VirtualTime::new();
    /// let idle = time.clone();
    /// let runtime = tokio::runtime::Builder::new_current_thread()
    ///     .on_thread_park(move || { idle.idle(); })
    ///     .build()?;
    /// let timers = time.timers().clone();
    /// runtime.block_on(async move {
    ///     let task = tokio::spawn(timers.sleep(Duration::from_secs(3600)));
    ///     task.await.unwrap(); // takes no time at all
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn idle(&self) -> bool {
        let state = self.world.work.state();
        self.move_if_idle(state).1
    }

    /// Runs a future on this thread. Whenever it waits and nothing is busy, the clock moves to the
    /// next expiry: hours of sleeps take no time at all.
    ///
    /// A future that waits for something other than time does not stop the clock, and its deadlines
    /// pass: wrap it in [`outside`](VirtualTime::outside). If nothing is pending, this waits until
    /// the future is woken. Several threads may do this at once: the clock moves when all of them
    /// wait. A future may call this in turn: while it waits there, its thread is not busy.
    ///
    /// # Panics
    ///
    /// If it is called in a callback of this clock and the future is not ready at once: the clock
    /// does not move by itself there.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let task = Arc::new(Task {
            time: self.clone(),
            woken: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&task));
        let mut blocking = Blocking::begin(self);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            assert!(
                !self.moves_here(),
                "VirtualTime::block_on waits in a callback, where the clock does not move"
            );
            blocking.busy.wait_for(&task, Moves::Yes);
        }
    }

    /// Starts a thread that moves the clock whenever nothing is busy: for programs whose threads
    /// sleep with [`Busy::sleep`]. Be [`busy`](VirtualTime::busy) while you set things up. Two of
    /// these take turns.
    ///
    /// # Panics
    ///
    /// If the system refuses the thread.
    pub fn auto_advance(&self) -> AutoAdvance {
        let stop = Arc::new(AtomicBool::new(false));
        let (time, stopped) = (self.clone(), Arc::clone(&stop));
        let thread = Worker::start(move || {
            let mut state = time.world.work.state();
            while !stopped.load(Ordering::Relaxed) {
                let fired;
                (state, fired) = time.move_if_idle(state);
                if !fired {
                    state = time.world.work.wait(state);
                }
            }
        });
        AutoAdvance { time: self.clone(), stop, thread: Some(thread) }
    }

    /// One step, if nothing is busy. Takes and returns the lock, which callbacks run without.
    fn move_if_idle<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, bool) {
        let may = state.busy == 0 && state.stepping.is_none() && self.is_paused();
        if !may || self.moves_here() {
            return (state, false);
        }
        state.stepping = Some(waits::this_thread());
        drop(state);
        let stepping = Stepping(self);
        let fired = self.advance_to_next();
        drop(stepping);
        (self.world.work.state(), fired)
    }

    fn enter(&self) {
        let me = waits::this_thread();
        let mut state = self.world.work.state();
        // In a callback nothing waits: it may be the one that the step is for.
        while state.stepping.is_some_and(|who| who != me) && !frame::is_in_callback() {
            state = self.world.work.wait(state);
        }
        state.busy += 1;
    }

    fn leave(&self) {
        self.world.work.state().busy -= 1;
        self.world.work.changed.notify_all();
    }
}

/// A call of [`VirtualTime::block_on`]. Its thread is busy, which an outer call of the same thread
/// has counted already.
struct Blocking {
    busy: Busy,
    is_inner: bool,
}

impl Blocking {
    fn begin(time: &VirtualTime) -> Blocking {
        let me = waits::this_thread();
        let is_inner = time.world.work.state().blocking.contains(&me);
        if !is_inner {
            time.enter();
        }
        time.world.work.state().blocking.push(me);
        Blocking { busy: Busy { time: time.clone(), counts: true }, is_inner }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        let me = waits::this_thread();
        let mut state = self.busy.time.world.work.state();
        if let Some(place) = state.blocking.iter().rposition(|&thread| thread == me) {
            state.blocking.swap_remove(place);
        }
        drop(state);
        if self.is_inner {
            self.busy.counts = false;
        }
    }
}

/// A step that is over when this is dropped, also by a panic.
struct Stepping<'a>(&'a VirtualTime);

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        self.0.world.work.state().stepping = None;
        self.0.world.work.changed.notify_all();
    }
}

impl Work {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, LOOK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Busy {
    /// Sleeps until `after` has passed in virtual time. The thread is not busy meanwhile, and is
    /// busy again from the moment at which the time is over.
    ///
    /// The clock has to move: by [`auto_advance`](VirtualTime::auto_advance), a
    /// [`block_on`](VirtualTime::block_on) elsewhere, or by hand. In a callback this moves the
    /// clock itself, and nothing fires meanwhile.
    pub fn sleep(&mut self, after: Duration) {
        if self.time.moves_here() {
            return self.time.advance(after);
        }
        let task = Arc::new(Task {
            time: self.time.clone(),
            woken: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        });
        let wakes = Arc::clone(&task);
        let timer = self.time.timers().hrtimer(move |_| wakes.wake_by_ref());
        let timer = timer.labelled("tickless::virtual_time::Busy::sleep");
        // An error is a timer that was shut down, which nobody else can do to this one.
        if timer.start(after).is_ok() {
            self.wait_for(&task, Moves::No);
        }
    }

    /// Runs `wait`, which waits for threads or tasks that wait for time. The thread is not busy
    /// until `wait` has returned. To keep the clock from moving before that is noticed, let the
    /// other side send a guard along: `tx.send((result, time.busy()))`.
    pub fn wait<R>(&mut self, wait: impl FnOnce() -> R) -> R {
        self.counts = false;
        self.time.leave();
        let waited = wait();
        self.time.enter();
        self.counts = true;
        waited
    }

    /// Not busy until the task is woken, and busy from then on.
    fn wait_for(&mut self, task: &Task, moves: Moves) {
        let work = &self.time.world.work;
        let mut state = work.state();
        task.waits.store(true, Ordering::Relaxed);
        if !task.woken.swap(false, Ordering::Relaxed) {
            state.busy -= 1;
            self.counts = false;
            work.changed.notify_all();
            while !task.woken.swap(false, Ordering::Relaxed) {
                let mut fired = false;
                if moves == Moves::Yes {
                    (state, fired) = self.time.move_if_idle(state);
                }
                if !fired {
                    state = work.wait(state);
                }
            }
            // Whoever woke it has counted it.
            self.counts = true;
        }
        task.waits.store(false, Ordering::Relaxed);
        drop(state);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.counts {
            self.time.leave();
        }
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Busy").finish_non_exhaustive()
    }
}

impl Drop for AutoAdvance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.time.world.work.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && !self.time.moves_here()
        {
            thread.finish();
        }
    }
}

/// Does a waiting thread move the clock, if everything waits for that?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moves {
    Yes,
    No,
}

/// A thread that waits to be woken. Both marks are used under the lock of the work.
struct Task {
    time: VirtualTime,
    woken: AtomicBool,
    /// Is it not counted as busy, so that its waker has to count it?
    waits: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.time.world.work.state();
        let is_first = !self.woken.swap(true, Ordering::Relaxed);
        if is_first && self.waits.load(Ordering::Relaxed) {
            state.busy += 1;
        }
        self.time.world.work.changed.notify_all();
    }
}
