//! The loops in which driver threads, expiry threads and event loops run due timers' callbacks.

use super::frame::{self, Runs};
use super::run::{Batch, tell};
use super::shared::Shared;
use super::wakers::Wakers;
use crate::events;
use crate::platform::wakeup::Waking;
use std::sync::atomic::Ordering;
use tickless_core::bases::Deferral;
use tickless_core::bases::expiry::Expired;
use tickless_core::bases::running::Runner;
use tickless_core::time::{CpuId, Ns};

impl Shared {
    /// Fires the timers of a base that are due, and wakes the tasks of those that are futures. Then
    /// the time of the next timer is not known, because these perhaps arm timers.
    pub(crate) fn expire(&self, base: CpuId, wakers: &mut Wakers) -> Expired {
        let mut batch = Batch::new(self, base, wakers);
        let expired = self.bases.expire_batch(base, &mut batch);
        let earliest = if self.end_batch(wakers) { Ns::ZERO } else { expired.earliest };
        Expired { earliest, ..expired }
    }

    /// The loop of a driver thread: fires due timers, then sleeps until the next one.
    pub(crate) fn drive(&self, base: CpuId) {
        let host = self.bases.platform();
        let device = &host.devices[base.index()];
        let (mut next_tick, mut wakers) = (self.next_tick(), Wakers::default());
        let mut waking = Waking::new(self.wakeup, self.now());
        device.bell().begin();
        // Acquire: pairs with the Release in `end_drivers`.
        while !self.stop.load(Ordering::Acquire) {
            device.quiet();
            let margin = if waking.spins() { waking.margin(self.now()) } else { Ns::ZERO };
            self.handle(base, &mut wakers);
            self.report_clock_fallback();
            if next_tick <= self.now() {
                device.bell().ticks.fetch_add(1, Ordering::Relaxed);
                self.expirers.call(base, self.bases.tick(base));
                next_tick = self.next_tick();
            }
            device.sleep(&host.clock, margin, next_tick, &self.stop, &mut waking);
        }
    }

    /// Runs the due callbacks, in an event loop of the program. Returns how many timers fired.
    pub(crate) fn run_loop(&self, base: CpuId, wakers: &mut Wakers) -> u64 {
        self.bases.platform().devices[base.index()].quiet();
        let fired = self.expire(base, wakers).fired;
        self.report_clock_fallback();
        fired
    }

    /// Emits an event, once, if the timers had to change to the system's clock. The clock itself
    /// cannot emit it: some threads read the clock under the lock of a base, where no code of the
    /// program is allowed to run.
    fn report_clock_fallback(&self) {
        if let Some(why) = self.bases.platform().clock.take_new_fallback() {
            let emit = || tell(self, || events::clock_fell_back(why));
            frame::within(&Runs::nowhere(self), 0, emit);
        }
    }

    /// Handles an event of a base: runs the due callbacks, and wakes the base's expiry thread.
    fn handle(&self, base: CpuId, wakers: &mut Wakers) {
        if self.bases.settings().deferral == Deferral::None {
            self.expire(base, wakers);
            return;
        }
        let mut batch = Batch::new(self, base, wakers);
        let call = self.bases.collect_batch(base, &mut batch).call;
        self.expirers.call(base, call);
        self.end_batch(wakers);
    }

    pub(crate) fn serve(&self, base: CpuId) {
        let mut wakers = Wakers::default();
        self.expirers.serve(base, &self.stop, || self.fire(base, Runner::Thread, &mut wakers));
    }

    /// The main loop of the rescuer, which takes over from an expiry thread that is stuck.
    pub(crate) fn rescue(&self) {
        let mut wakers = Wakers::default();
        self.expirers.rescue(&self.stop, |base| self.fire(base, Runner::Rescuer, &mut wakers));
    }

    fn fire(&self, base: CpuId, runner: Runner, wakers: &mut Wakers) {
        self.bases.fire_batch(base, runner, &mut Batch::new(self, base, wakers));
        self.end_batch(wakers);
    }

    /// Frees orphans (timers that were dropped while their callback ran), and wakes tasks. Returns
    /// whether there were any.
    fn end_batch(&self, wakers: &mut Wakers) -> bool {
        let has_freed = self.orphans.free_ended(self);
        if wakers.is_empty() {
            return has_freed;
        }
        self.wake(wakers);
        true
    }

    /// Wakes the tasks whose timers have fired. Called when the thread is in no callback.
    #[cold]
    pub(super) fn wake(&self, wakers: &mut Wakers) {
        // Let the wakers count as a callback. A waker can drop the set, and only a drop in a
        // callback does not wait for the drivers, of which this thread is perhaps one.
        let panicked = frame::within(&Runs::nowhere(self), 0, || wakers.wake());
        self.panics.fetch_add(panicked, Ordering::Relaxed);
    }

    fn next_tick(&self) -> Ns {
        self.ticks.map_or(Ns::NEVER, |tick| tick.start(tick.floor(self.now()) + 1))
    }
}
