//! Running a timer's callback, and telling of it.

use super::fired::Fired;
use super::frame::{self, Runs};
use super::glue::Host;
use super::shared::Shared;
use super::wakers::Wakers;
use crate::events;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tickless_core::bases::expiry::{self, CallbackResult, Firing};
use tickless_core::bases::running::Runner;
use tickless_core::time::CpuId;

/// What a runner has in hand while it deals with a base.
pub(super) struct Batch<'a> {
    shared: &'a Shared,
    runs: Runs,
    wakers: &'a mut Wakers,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        base: CpuId,
        runner: Runner,
        wakers: &'a mut Wakers,
    ) -> Batch<'a> {
        Batch { shared, runs: Runs::on(shared, base, runner), wakers }
    }
}

impl expiry::Batch<Host> for Batch<'_> {
    /// Runs a timer's callback: what a driver does with everything that its base hands it.
    ///
    /// A panic ends the callback, not the driver; it is counted and handed to the reporter (H3).
    #[inline(always)]
    fn run(&mut self, firing: &Firing<Host>) -> CallbackResult {
        if self.shared.counters.times {
            return self.call_timed(firing);
        }
        self.call(firing)
    }

    #[cold]
    fn pause(&mut self) {
        self.shared.wake(self.wakers);
    }
}

impl Batch<'_> {
    /// The same as [`call`](Self::call) with a clock in hand.
    #[cold]
    #[inline(never)]
    fn call_timed(&mut self, firing: &Firing<Host>) -> CallbackResult {
        let begun = self.shared.now();
        let result = self.call(firing);
        let (shared, took) = (self.shared, self.shared.now() - begun);
        // What this tells it tells as the callback.
        frame::within(&self.runs, firing.timer.addr().get(), || timed(shared, firing, took));
        result
    }

    #[inline(always)]
    fn call(&mut self, firing: &Firing<Host>) -> CallbackResult {
        let shared = self.shared;
        let mut fired = Fired::new(firing, &shared.bases.platform().clock, self.wakers);
        frame::within(&self.runs, firing.timer.addr().get(), || {
            if firing.is_overdue(shared.counters.slow_after, shared.bases.settings().tick) {
                overdue(shared, firing);
            }
            #[cfg(feature = "tracing")]
            tell(shared, || events::fired(|| label_of(shared, firing), firing));
            // SAFETY: the core hands out a timer that was put in by `Pinned::timer`, so this is a
            // live node with its own glue. It lives until the base names it no more, which is after
            // this has returned: who drops it waits for that, or leaves it to the orphans.
            let call = || unsafe { (firing.task.call)(firing.timer, &mut fired) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
                fired.stop();
                tell(shared, || events::panicked(|| label_of(shared, firing), firing));
                shared.callback_panicked(payload);
            }
        });
        // Not copied if there is nothing in it.
        fired.asked().map_or(CallbackResult::Done, CallbackResult::Restart)
    }
}

/// Whose the timer is. It may be gone by now; then it is known by its type alone.
fn label_of(shared: &Shared, firing: &Firing<Host>) -> &'static str {
    shared.label_of(firing.timer.addr().get(), firing.task)
}

/// Counts and tells of an expiry that comes too late.
#[cold]
fn overdue(shared: &Shared, firing: &Firing<Host>) {
    let by = firing.now.since(firing.due(shared.bases.settings().tick));
    shared.counters.count_overdue(firing.cpu);
    tell(shared, || events::overdue(|| label_of(shared, firing), firing, by));
}

/// Counts a callback that took this long, and tells of it if that was too long.
fn timed(shared: &Shared, firing: &Firing<Host>, took: Duration) {
    let label = || label_of(shared, firing);
    if shared.counters.count_callback(firing.cpu, took, label) {
        tell(shared, || events::slow(label, firing, took));
    }
}

/// Tells something. A listener's panic counts as a callback's.
pub(super) fn tell(shared: &Shared, told: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(told)) {
        shared.callback_panicked(payload);
    }
}
