//! Running a timer's callback, and telling of it.

use super::fired::Fired;
use super::frame::{self, CallbackId};
use super::glue::Host;
use super::shared::Shared;
use super::wakers::Wakers;
use crate::events;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tickless_core::bases::expiry::{self, CallbackResult, Firing};
use tickless_core::bases::running::Runner;

/// What a runner has in hand while it deals with a base.
pub(super) struct Batch<'a> {
    pub(super) shared: &'a Shared,
    pub(super) runner: Runner,
    pub(super) wakers: &'a mut Wakers,
}

impl expiry::Batch<Host> for Batch<'_> {
    #[inline(always)]
    fn run(&mut self, firing: &Firing<Host>) -> CallbackResult {
        run(self.shared, firing, self.runner, self.wakers)
    }

    #[cold]
    fn pause(&mut self) {
        self.shared.wake(self.wakers);
    }
}

/// Runs a timer's callback: what a driver does with everything that its base hands it.
///
/// A panic ends the callback, not the driver; it is counted and handed to the reporter (H3).
#[inline(always)]
fn run(
    shared: &Shared,
    firing: &Firing<Host>,
    runner: Runner,
    wakers: &mut Wakers,
) -> CallbackResult {
    if shared.counters.times {
        return run_timed(shared, firing, runner, wakers);
    }
    call(shared, firing, runner, wakers)
}

/// The same with a clock in hand.
#[cold]
#[inline(never)]
fn run_timed(
    shared: &Shared,
    firing: &Firing<Host>,
    runner: Runner,
    wakers: &mut Wakers,
) -> CallbackResult {
    let begun = shared.now();
    let result = call(shared, firing, runner, wakers);
    let took = shared.now() - begun;
    // What this tells it tells as the callback.
    frame::within(shared, CallbackId::of(shared, firing, runner), || timed(shared, firing, took));
    result
}

#[inline(always)]
fn call(
    shared: &Shared,
    firing: &Firing<Host>,
    runner: Runner,
    wakers: &mut Wakers,
) -> CallbackResult {
    let mut fired = Fired::new(&shared.bases.platform().clock, firing, wakers);
    frame::within(shared, CallbackId::of(shared, firing, runner), || {
        if firing.now.since(firing.due) > shared.counters.slow_after {
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
    fired.result()
}

/// Whose the timer is. It may be gone by now; then it is known by its type alone.
fn label_of(shared: &Shared, firing: &Firing<Host>) -> &'static str {
    shared.label_of(firing.timer.addr().get(), firing.task)
}

/// Counts and tells of an expiry that comes too late.
#[cold]
fn overdue(shared: &Shared, firing: &Firing<Host>) {
    shared.counters.count_overdue(firing.cpu);
    tell(shared, || events::overdue(|| label_of(shared, firing), firing));
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
