//! Runs the callback of one timer, and emits events about it.

use super::fired::Fired;
use super::frame::{self, Frame, Runs};
use super::glue::Host;
use super::shared::Shared;
use super::wakers::Wakers;
use crate::events;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tickless_core::bases::expiry;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::time::CpuId;

/// The callbacks that one thread runs in one go for the due timers of a base.
pub(super) struct Batch<'a> {
    shared: &'a Shared,
    runs: Runs,
    wakers: &'a mut Wakers,
}

impl<'a> Batch<'a> {
    pub(super) fn new(shared: &'a Shared, base: CpuId, wakers: &'a mut Wakers) -> Batch<'a> {
        Batch { shared, runs: Runs::on(shared, base), wakers }
    }
}

impl expiry::Batch<Host> for Batch<'_> {
    // H3: a panic ends the callback, not the driver.
    #[inline(always)]
    fn run(&mut self, firing: &Firing<Host>) -> CallbackResult {
        let shared = self.shared;
        let mut fired = Fired::new(firing, &shared.bases.platform().clock, self.wakers);
        let frame = Frame::new(&self.runs, firing.timer.addr().get());
        // Not `frame::within`: the compiler does not inline its closure here, which costs 20
        // instructions.
        // SAFETY: `entered` is dropped below, or when this function unwinds.
        let entered = unsafe { frame.enter() };
        if shared.counters.times {
            call_timed(shared, firing, &mut fired);
        } else {
            call(shared, firing, &mut fired);
        }
        // Do not restart a timer whose callback was detached: it has ended, and another timer is
        // perhaps at its address by now (X4).
        if fired.asked().is_some() && frame::is_detached() {
            fired.stop();
        }
        drop(entered);
        // Copy the window (when the timer fires next) only if the timer is restarted.
        fired.asked().map_or(CallbackResult::Done, CallbackResult::Restart)
    }

    #[inline(always)]
    fn wants_pause(&self) -> bool {
        self.wakers.are_many()
    }

    #[cold]
    fn pause(&mut self) {
        self.shared.wake(self.wakers);
    }
}

#[cold]
#[inline(never)]
fn call_timed(shared: &Shared, firing: &Firing<Host>, fired: &mut Fired<'_>) {
    let begun = shared.now();
    call(shared, firing, fired);
    timed(shared, firing, shared.now() - begun);
}

/// Calls the timer's callback. A panic in it is caught, counted and reported.
#[inline(always)]
fn call(shared: &Shared, firing: &Firing<Host>, fired: &mut Fired<'_>) {
    if firing.is_overdue(shared.counters.slow_after, shared.bases.settings().tick) {
        overdue(shared, firing);
    }
    #[cfg(feature = "tracing")]
    {
        tell(shared, || events::fired(|| label_of(shared, firing), firing));
        // A subscriber may have dropped the timer.
        if frame::is_detached() {
            return;
        }
    }
    // SAFETY: `firing` contains a live node and the functions for its type. The node lives until
    // the callback has returned: its owner waits for that, or leaves the node to the orphans. Or
    // the owner detaches this callback, after which nothing in this function uses the address.
    let call = || unsafe { (firing.task.call)(firing.timer, fired) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        fired.stop();
        tell(shared, || events::panicked(|| label_of(shared, firing), firing));
        shared.callback_panicked(payload);
    }
}

fn label_of(shared: &Shared, firing: &Firing<Host>) -> &'static str {
    shared.label_of(frame::innermost_timer(), firing.task)
}

/// Counts and reports a timer that fires too late.
#[cold]
fn overdue(shared: &Shared, firing: &Firing<Host>) {
    let by = firing.now.since(firing.due(shared.bases.settings().tick));
    shared.counters.count_overdue(firing.cpu);
    tell(shared, || events::overdue(|| label_of(shared, firing), firing, by));
}

/// Counts how long a callback took, and emits an event if it was slow.
fn timed(shared: &Shared, firing: &Firing<Host>, took: Duration) {
    let label = || label_of(shared, firing);
    if shared.counters.count_callback(firing.cpu, took, label) {
        tell(shared, || events::slow(label, firing, took));
    }
}

/// Emits an event. A panic of the subscriber is counted like one of a callback.
pub(super) fn tell(shared: &Shared, emit: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(emit)) {
        shared.callback_panicked(payload);
    }
}
