//! Advances virtual time automatically when every thread waits for it.
//!
//! A thread is busy while it has a [`Busy`] guard, or polls a future in [`VirtualTime::block_on`].
//! The clock advances to the next expiry only when no thread is busy. A thread whose timer fires
//! counts as busy from that moment, so the clock never advances before a woken thread has run.
//!
//! The threads of a runtime on the clock count as busy, too, except while they are parked: see
//! `counts`.

use super::VirtualTime;
use super::counts::Count;
use crate::platform::worker::Worker;
use crate::timer::{frame, waits};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
#[cfg(feature = "tokio-test-util")]
use tokio::runtime::Handle;

/// How often a waiting thread checks the timers, because arming a timer does not wake that thread.
const POLL: Duration = Duration::from_millis(1);

/// Which threads are busy.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) state: Mutex<WorkState>,
    /// Notified when a thread stops being busy, is woken, or has advanced the clock, if a thread
    /// waits: a notification is a system call.
    pub(super) changed: Condvar,
    /// The runtime that runs on this clock, if there is one.
    #[cfg(feature = "tokio-test-util")]
    pub(super) runtime: Mutex<Option<Handle>>,
}

#[derive(Debug, Default)]
pub(super) struct WorkState {
    pub(super) busy: usize,
    /// The number of threads that wait for `Work::changed`.
    waiting: usize,
    /// The numbers of the threads that count as busy without a guard of the program: once for each
    /// nested call of [`VirtualTime::block_on`], and threads of a runtime on this clock.
    pub(super) counted: Vec<u64>,
    /// The thread that advances the clock to the next expiry because no thread is busy.
    stepping: Option<u64>,
    /// Whether another thread has asked for a step since the stepping thread began one. The asking
    /// thread has perhaps armed a timer that the step does not see.
    missed: bool,
}

/// While this guard exists, the clock does not advance automatically. [`VirtualTime::busy`] returns
/// it. When you give work to a new thread, or send it in a message, send this guard with it.
#[derive(Debug)]
#[must_use = "the clock moves on as soon as this is dropped"]
pub struct Busy {
    time: VirtualTime,
    counts: bool,
}

/// A thread that advances the clock whenever no thread is busy; dropping this ends it.
#[derive(Debug)]
struct AutoAdvance {
    time: VirtualTime,
    stop: Arc<AtomicBool>,
    thread: Option<Worker>,
}

impl VirtualTime {
    /// Marks the caller as busy: it is computing, or waits for something other than time, such as
    /// I/O or another program. The clock does not advance automatically while such a guard exists.
    /// If the clock is advancing automatically at the moment of this call, the call waits until the
    /// timers that are due at the new time have fired.
    ///
    /// A thread waits for time with [`Busy::sleep`], or with [`block_on`](VirtualTime::block_on)
    /// and a future such as `limiter.acquire(1)`. In both, it becomes busy at the moment its timer
    /// fires. A thread that blocks in another way, such as
    /// [`Limiter::blocking_acquire`](crate::bandwidth::Limiter::blocking_acquire), does not: by the
    /// time it runs, the clock has perhaps advanced further.
    pub fn busy(&self) -> Busy {
        self.become_busy();
        Busy { time: self.clone(), counts: true }
    }

    /// Wraps a future that waits for something outside of virtual time, such as I/O. The clock does
    /// not advance automatically from the first poll until the future is ready.
    pub async fn outside<F: Future>(&self, future: F) -> F::Output {
        let _busy = self.busy();
        future.await
    }

    /// Advances the clock to the next expiry and fires the timers that are due then, unless a
    /// thread is busy, the clock runs with real time, or the caller is a callback. Returns whether
    /// a timer fired. For executors with a hook that runs when they are idle, such as tokio's
    /// `on_thread_park`.
    ///
    /// Also returns `false`, without waiting, if another thread is advancing the clock. If that
    /// thread fires no timer, it checks again for one that the caller has perhaps armed. If it
    /// fires one, an executor of several threads calls this again when the woken tasks have run.
    ///
    /// An executor of several threads calls this only while all of them wait, and none has a task
    /// to run: the clock does not know of tasks that were woken. For tokio,
    /// `tokio_time::run_in_virtual_time` does that.
    pub fn idle(&self) -> bool {
        self.refuse_in_child();
        let state = self.inner.work.state();
        self.move_if_idle(state).1
    }

    /// Runs a future on this thread and blocks until it is ready. Whenever the future waits and no
    /// thread is busy, advances the clock to the next expiry: a sleep of hours takes no real time.
    ///
    /// A future that waits for something other than time does not stop the clock: wrap it in
    /// [`outside`](VirtualTime::outside). If no timer is pending, this waits until the future is
    /// woken. If several threads call this, the clock advances when all of them wait. Calls can be
    /// nested.
    ///
    /// # Panics
    ///
    /// If it is called in a callback of this clock and the future is not ready when first polled:
    /// the clock does not advance automatically there.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.refuse_in_child();
        let mut future = pin!(future);
        let task = Task::new(self);
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

    /// Starts a thread that advances the clock whenever no thread is busy, until the returned guard
    /// is dropped: for programs whose threads sleep with [`Busy::sleep`]. Hold a
    /// [`busy`](VirtualTime::busy) guard during setup.
    ///
    /// Dropping the guard waits until the thread has ended, and so for a callback that it is
    /// running. If the thread is running wakers of tasks, which perhaps need a lock of the caller,
    /// the drop does not wait: after the wakers have returned, the thread fires the remaining
    /// timers of that instant and ends.
    ///
    /// # Panics
    ///
    /// If the system refuses the thread.
    #[must_use = "the clock stops moving by itself as soon as the guard is dropped"]
    pub fn auto_advance(&self) -> impl fmt::Debug + use<> {
        self.refuse_in_child();
        let stop = Arc::new(AtomicBool::new(false));
        let (time, stopped) = (self.clone(), Arc::clone(&stop));
        let thread = Worker::spawn("tickless-v".into(), move || {
            let mut state = time.inner.work.state();
            while !stopped.load(Ordering::Relaxed) {
                let fired;
                (state, fired) = time.move_if_idle(state);
                if !fired {
                    state = time.inner.work.wait(state);
                }
            }
        });
        assert!(thread.is_ok(), "the system refuses a thread: {thread:?}");
        AutoAdvance { time: self.clone(), stop, thread: thread.ok() }
    }

    /// If no thread is busy, advances the clock to the next expiry and fires the timers that are
    /// due. Returns whether a timer fired. Unlocks the state while callbacks run.
    fn move_if_idle<'a>(
        &'a self,
        mut state: MutexGuard<'a, WorkState>,
    ) -> (MutexGuard<'a, WorkState>, bool) {
        state.missed = true;
        while state.missed && state.busy == 0 && state.stepping.is_none() && !self.moves_here() {
            state.missed = false;
            state.stepping = Some(waits::this_thread());
            drop(state);
            let stepping = Stepping(self);
            let fired = self.advance_to_next();
            drop(stepping);
            if fired {
                self.wait_for_tasks();
            }
            state = self.inner.work.state();
            if fired {
                return (state, true);
            }
        }
        (state, false)
    }

    /// Keeps the clock from advancing. Waits while another thread advances it.
    pub(super) fn become_busy(&self) {
        self.refuse_in_child();
        let me = waits::this_thread();
        let mut state = self.inner.work.state();
        // In a callback, do not wait: the thread that advances the clock is perhaps waiting for
        // that callback to return.
        while state.stepping.is_some_and(|thread| thread != me) && !frame::is_in_callback() {
            state = self.inner.work.wait(state);
        }
        state.busy += 1;
    }

    /// Ends one thread's time of being busy. Without busy threads, the clock can advance.
    pub(super) fn leave(&self) {
        if !self.is_forked_child() {
            self.end_behind_tasks(Count(self.clone()));
        }
    }
}

/// A call of [`VirtualTime::block_on`]. Counts its thread as busy, unless an outer call does.
struct Blocking {
    busy: Busy,
    is_inner: bool,
}

impl Blocking {
    fn begin(time: &VirtualTime) -> Blocking {
        let me = waits::this_thread();
        let is_inner = time.inner.work.state().counted.contains(&me);
        if !is_inner {
            time.become_busy();
        }
        time.inner.work.state().counted.push(me);
        Blocking { busy: Busy { time: time.clone(), counts: true }, is_inner }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if self.busy.time.is_forked_child() {
            return;
        }
        self.busy.time.uncount();
        if self.is_inner {
            self.busy.counts = false;
        }
    }
}

/// When dropped, marks the end of an automatic advance of the clock, also if the advance panics.
struct Stepping<'a>(&'a VirtualTime);

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        if self.0.is_forked_child() {
            return;
        }
        let work = &self.0.inner.work;
        let mut state = work.state();
        state.stepping = None;
        work.notify(&state);
    }
}

impl Work {
    pub(super) fn state(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, WorkState>) -> MutexGuard<'a, WorkState> {
        state.waiting += 1;
        let waited = self.changed.wait_timeout(state, POLL);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting -= 1;
        state
    }

    /// Lets the threads that wait look at the state again, which the caller has changed.
    pub(super) fn notify(&self, state: &WorkState) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl Busy {
    /// Sleeps until `after` has passed in virtual time. The thread is not busy until then.
    ///
    /// [`auto_advance`](VirtualTime::auto_advance), a [`block_on`](VirtualTime::block_on) on
    /// another thread, or the program must advance the clock. In a callback this advances the clock
    /// itself, and no timer fires until the callback has returned.
    pub fn sleep(&mut self, after: Duration) {
        self.time.refuse_in_child();
        if self.time.moves_here() {
            return self.time.advance(after);
        }
        let task = Task::new(&self.time);
        let wakes = Arc::clone(&task);
        let timer = self.time.timers().hrtimer(move |_| wakes.wake_by_ref());
        let timer = timer.labelled("tickless::virtual_time::Busy::sleep");
        let _paused = self.time.pause_count();
        // A start fails only after a shutdown of the timer, and no other code has its handle.
        if timer.start(after).is_ok() {
            self.wait_for(&task, Moves::No);
        }
    }

    /// Runs `wait`, which blocks for the result of another thread or task that itself waits for
    /// virtual time. The calling thread is not busy while `wait` runs. To keep the clock from
    /// advancing between the result and the return of `wait`, send a guard with the result:
    /// `tx.send((result, time.busy()))`.
    pub fn wait<R>(&mut self, wait: impl FnOnce() -> R) -> R {
        let _paused = self.time.pause_count();
        self.counts = false;
        self.time.leave();
        let _waiting = Waiting(self);
        wait()
    }

    /// Waits until the task is woken. The calling thread does not count as busy until then.
    fn wait_for(&mut self, task: &Task, moves: Moves) {
        self.time.refuse_in_child();
        let time = &self.time;
        let work = &time.inner.work;
        let mut state = work.state();
        task.waits.store(true, Ordering::Relaxed);
        if !task.woken.swap(false, Ordering::Relaxed) {
            self.counts = false;
            drop(state);
            time.leave();
            let sleeping = Sleeping { counts: &mut self.counts, task };
            state = work.state();
            while !task.woken.load(Ordering::Relaxed) {
                let mut fired = false;
                if moves == Moves::Yes {
                    (state, fired) = time.move_if_idle(state);
                }
                if !fired {
                    state = work.wait(state);
                }
            }
            drop(state);
            drop(sleeping);
        }
        task.waits.store(false, Ordering::Relaxed);
    }
}

/// Counts a thread as busy again when [`Busy::wait`] ends, also if the thread panics there.
struct Waiting<'a>(&'a mut Busy);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !(std::thread::panicking() && self.0.time.is_forked_child()) {
            self.0.time.become_busy();
            self.0.counts = true;
        }
    }
}

/// Counts a thread as busy again when [`Busy::wait_for`] ends, also if the clock panics there.
struct Sleeping<'a> {
    counts: &'a mut bool,
    task: &'a Task,
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        let mut state = self.task.time.inner.work.state();
        // A thread that has woken the task has counted this thread as busy.
        if !self.task.woken.swap(false, Ordering::Relaxed) {
            state.busy += 1;
        }
        self.task.waits.store(false, Ordering::Relaxed);
        *self.counts = true;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.counts {
            self.time.leave();
        }
    }
}

impl Drop for AutoAdvance {
    fn drop(&mut self) {
        if self.time.is_forked_child() {
            // The thread exists in the parent only.
            return std::mem::forget(self.thread.take());
        }
        self.stop.store(true, Ordering::Relaxed);
        self.time.inner.work.changed.notify_all();
        if let Some(thread) = self.thread.take().filter(|_| !self.time.moves_here()) {
            thread.finish();
        }
    }
}

/// Whether a waiting thread advances the clock when no thread is busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moves {
    Yes,
    No,
}

/// A thread that waits to be woken. Both flags are accessed under the lock of [`Work`].
struct Task {
    time: VirtualTime,
    woken: AtomicBool,
    /// Whether the thread waits and is not counted as busy. A waker then counts the thread as busy,
    /// before the thread itself runs.
    waits: AtomicBool,
}

impl Task {
    fn new(time: &VirtualTime) -> Arc<Task> {
        let not = || AtomicBool::new(false);
        Arc::new(Task { time: time.clone(), woken: not(), waits: not() })
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.time.is_forked_child() {
            return;
        }
        let mut state = self.time.inner.work.state();
        let is_first = !self.woken.swap(true, Ordering::Relaxed);
        if is_first && self.waits.load(Ordering::Relaxed) {
            state.busy += 1;
        }
        self.time.inner.work.notify(&state);
    }
}
