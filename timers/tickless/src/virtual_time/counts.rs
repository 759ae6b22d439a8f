//! Counts the threads of a runtime on a virtual clock.
//!
//! Each thread of the runtime is one count of `WorkState::busy` from the moment at which another
//! thread starts it until it ends, except while it is parked. The clock does not know which tasks
//! are woken. So on a runtime's clock, a count ends in a task that is queued behind the woken ones.

use super::VirtualTime;
#[cfg(feature = "tokio-test-util")]
use crate::platform::locked::locked;
use crate::timer::waits;
#[cfg(feature = "tokio-test-util")]
use tokio::runtime::Handle;

/// One count of [`WorkState::busy`]; dropping this ends it.
pub(super) struct Count(pub(super) VirtualTime);

impl Drop for Count {
    fn drop(&mut self) {
        let work = &self.0.inner.work;
        let mut state = work.state();
        state.busy -= 1;
        work.notify(&state);
    }
}

impl VirtualTime {
    /// Keeps the clock of a runtime from advancing until the tasks that are woken now have been
    /// taken up. If a worker has begun to wait during a step of the clock, it asks for a step again
    /// then.
    pub(super) fn wait_for_tasks(&self) {
        #[cfg(feature = "tokio-test-util")]
        if locked(&self.inner.work.runtime).is_some() {
            self.count_thread();
            self.end_behind_tasks(Count(self.clone()));
        }
    }

    /// Ends a count. On a runtime's clock, a task does that which is queued behind those that are
    /// woken now: the worker that runs it looks for further tasks before it waits.
    pub(super) fn end_behind_tasks(&self, count: Count) {
        #[cfg(feature = "tokio-test-util")]
        let runtime = locked(&self.inner.work.runtime).clone();
        #[cfg(feature = "tokio-test-util")]
        if let Some(runtime) = runtime {
            runtime.spawn(async move { drop(count) });
            return;
        }
        drop(count);
    }

    /// Counts a thread that the runtime is about to start, or that stops waiting, as busy. Does not
    /// wait for a step of the clock, because that step perhaps waits for the runtime.
    #[cfg(feature = "tokio-test-util")]
    pub(crate) fn count_thread(&self) {
        self.inner.work.state().busy += 1;
    }

    /// Puts the calling thread of the runtime among those that count without a guard.
    #[cfg(feature = "tokio-test-util")]
    pub(crate) fn enter_thread(&self) {
        self.inner.work.state().counted.push(waits::this_thread());
    }

    /// Ends the count of a thread of the runtime that ends.
    #[cfg(feature = "tokio-test-util")]
    pub(crate) fn end_thread(&self) {
        self.uncount();
        self.leave();
    }

    /// Called by a worker that has found no task to run: advances the clock if nothing is busy.
    #[cfg(feature = "tokio-test-util")]
    pub(crate) fn park_thread(&self) {
        drop(Count(self.clone()));
        self.idle();
    }

    /// Sets the runtime whose threads count as busy, or removes it.
    #[cfg(feature = "tokio-test-util")]
    pub(crate) fn set_runtime(&self, runtime: Option<Handle>) {
        let before = std::mem::replace(&mut *locked(&self.inner.work.runtime), runtime);
        drop(before);
    }

    /// Removes the calling thread from those that count as busy without a guard.
    pub(super) fn uncount(&self) {
        let (me, mut state) = (waits::this_thread(), self.inner.work.state());
        if let Some(place) = state.counted.iter().rposition(|&thread| thread == me) {
            state.counted.swap_remove(place);
        }
    }

    /// Gives up the count of the calling thread, if it is busy without a guard, until the result is
    /// dropped.
    pub(super) fn pause_count(&self) -> Option<impl Drop + use<>> {
        let is_counted = self.inner.work.state().counted.contains(&waits::this_thread());
        is_counted.then(|| {
            self.leave();
            Paused(self.clone())
        })
    }
}

/// When dropped, makes the thread busy again that had given up its count.
struct Paused(VirtualTime);

impl Drop for Paused {
    fn drop(&mut self) {
        if !self.0.is_forked_child() {
            self.0.become_busy();
        }
    }
}
