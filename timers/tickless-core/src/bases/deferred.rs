//! Deferred expiry: the handler detects due timers, and an expiry thread fires them.
//!
//! The handler of an event device should be short, because it delays the base's other timers, and
//! in a kernel all other work of its CPU. So the callbacks of coarse timers, and of precise timers
//! that request it, run in an expiry thread, which the handler wakes: on every tick, or only if a
//! timer has expired.
//!
//! # Collecting
//!
//! The interrupt changes one number: the tick up to which the thread must empty the wheel
//! ([`Wheel::advance`](crate::queues::wheel::Wheel::advance)). Timers at or before that tick have
//! been collected, on whatever list they are, and can still be cancelled. A timer that is armed for
//! the past after that is collected next time. If timers are collected again before the thread has
//! fired the earlier ones, the larger of the two ticks is kept. The thread appends each list to the
//! list of due timers when it reaches that list, under the base's lock and in constant time.
//!
//! `docs/dev/contract.md` has the guarantees, under "Deferred expiry". The handler requests a
//! second thread when a timer is due and none has fired for
//! [`Settings::patience`](super::Settings::patience). A timer that is due again while its own
//! callback still runs waits for that callback (X2).
//!
//! While the thread is at work, the event device does not fire for the thread's timers until the
//! patience has passed: the thread checks for due timers before it sleeps, and arms the device.
//!
//! After the last batch the device fires once more, when the patience has passed, and finds nothing
//! due. Avoiding this event would take a write to the device for every batch. On the host, whose
//! device is a sleeping thread, that write would itself cause a wakeup, and save nothing. The event
//! happens at most once in each period of patience, and not if another event comes first.

use super::base::{Base, BaseState, Bases};
pub use super::expiry::Collected;
use super::expiry::{Batch, NoPause, Share};
pub use super::expiry_thread::{Call, DeferredCounts};
use super::expiry_thread::{bit, thread_next};
use super::family::Family;
use super::firing::{CallbackResult, Firing};
use super::running::Runner;
use super::settings::Deferral;
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::rearm::Rearm;
use crate::state::{FiresIn, Life};
use crate::time::{CpuId, Ns};

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device on bases with expiry threads: fires the timers that fire
    /// in the handler, and returns which thread to wake for the other due timers. Otherwise like
    /// [`expire`](Bases::expire).
    pub fn collect(&self, cpu: CpuId, run: impl FnMut(&Firing<P>) -> CallbackResult) -> Collected {
        self.collect_batch(cpu, &mut NoPause(run))
    }

    /// Does the same as [`collect`](Bases::collect), with pauses between callbacks.
    pub fn collect_batch(&self, cpu: CpuId, batch: &mut impl Batch<P>) -> Collected {
        self.handle(cpu, Share::Handler, batch)
    }

    /// Handles a periodic tick of `cpu`: returns which thread to wake. Reads one word, and takes
    /// the lock only if a timer has expired (D1). On bases without expiry threads, [`Call::Thread`]
    /// means that there are timers to [`expire`](Bases::expire).
    pub fn tick(&self, cpu: CpuId) -> Call {
        let base = self.base(cpu);
        let now = self.platform().now();
        // Acquire: pairs with the Release in `expect_deferred`. A CPU that reads an old value reads
        // the new one at a later tick.
        let next = Ns(base.thread_next.load(Ordering::Acquire));
        let every_tick = self.settings().deferral == Deferral::EveryTick;
        if now < next && !every_tick {
            return Call::Nobody;
        }
        let mut state = base.state.lock();
        if state.deferred.is_active() {
            if now < next { Call::Nobody } else { state.deferred.relieve(now) }
        } else if every_tick || thread_next(&state.queues) <= now {
            state.queues.wheel.advance(now);
            state.deferred.call(now)
        } else {
            // The stored time was too early. Make it exact, so that later ticks return early.
            self.refresh(base, &mut state);
            Call::Nobody
        }
    }

    /// Fires the timers that have been collected on a base, and all other due timers that fire in
    /// its expiry thread. A woken expiry thread calls this. Returns how many timers have fired.
    ///
    /// Each runner executes one call at a time: a second call for the same runner returns 0 at
    /// once. Callbacks run without a lock and can use the bases. If a callback panics, its timer is
    /// idle, the base is left as after a return of this function, and the panic continues in the
    /// caller, which must call the function again.
    pub fn fire(
        &self,
        cpu: CpuId,
        runner: Runner,
        run: impl FnMut(&Firing<P>) -> CallbackResult,
    ) -> u64 {
        self.fire_batch(cpu, runner, &mut NoPause(run))
    }

    /// Does the same as [`fire`](Bases::fire), with pauses between callbacks.
    pub fn fire_batch(&self, cpu: CpuId, runner: Runner, batch: &mut impl Batch<P>) -> u64 {
        let base = self.base(cpu);
        let mut state = base.state.lock();
        let is_spare = runner == Runner::Rescuer && !state.deferred.is_active();
        if state.deferred.works(runner) || is_spare {
            return 0;
        }
        state.deferred.at_work |= bit(runner);
        let mut fired = 0;
        let mut now = self.platform().now();
        loop {
            let in_pass;
            (state, in_pass) = self.pass(cpu, runner, Share::Thread, state, now, batch);
            fired += in_pass;
            now = self.platform().now();
            // If this pass fired nothing, a timer that is still due waits for its own previous
            // callback. The runner that executes that callback will fire the timer.
            if in_pass == 0 || thread_next(&state.queues) > now {
                break;
            }
        }
        let after_unlock = self.end_batch(cpu, &mut state, runner, fired, now);
        self.end_handling(cpu, state, after_unlock);
        fired
    }

    /// Ends the batch of timers that a runner has fired, and arms the device for the next timer.
    pub(crate) fn end_batch(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        runner: Runner,
        fired: u64,
        now: Ns,
    ) -> Rearm {
        let deferred = &mut state.deferred;
        deferred.at_work &= !bit(runner);
        if runner == Runner::Thread {
            deferred.called = false;
            deferred.counts.wakes += 1;
            deferred.counts.empty_wakes += u64::from(fired == 0);
        }
        deferred.counts.longest_batch = deferred.counts.longest_batch.max(fired);
        if !deferred.is_active() {
            self.refresh(self.base(cpu), state);
        }
        // Callbacks that restarted timers have not updated the device: update it once for all.
        let earliest = state.earliest();
        let rearm = state.device.started(earliest, || now);
        self.carry_out(cpu, rearm)
    }

    /// Returns which expiry thread a handler must wake after its work. The caller holds the lock.
    pub(crate) fn collect_due(&self, state: &mut BaseState, now: Ns) -> Call {
        let BaseState { queues, deferred, .. } = state;
        if deferred.is_active() {
            let is_due = thread_next(queues) <= now;
            return if is_due { deferred.relieve(now) } else { Call::Nobody };
        }
        if deferred.thread_is_called_at(queues) > now {
            return Call::Nobody;
        }
        queues.wheel.advance(now);
        deferred.call(now)
    }

    /// Records that a timer was armed to be due at `due`. Returns when the device must fire for it.
    #[inline]
    pub(crate) fn expect<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        life: Life,
        due: Ns,
    ) -> Ns {
        if !state.deferred.plain {
            self.expect_deferred::<L>(cpu, state, life, due);
        }
        state.for_device::<L>(life, due)
    }

    /// Stores when the expiry thread's next timer is due, if this timer is now the first of these.
    #[inline(never)]
    fn expect_deferred<L: Family<P>>(
        &self,
        cpu: CpuId,
        state: &mut BaseState,
        life: Life,
        due: Ns,
    ) {
        if L::fires_in(life) == FiresIn::Thread && due < state.deferred.next {
            state.deferred.next = due;
            // Release: pairs with the Acquire in `tick`.
            self.base(cpu).thread_next.store(due.0, Ordering::Release);
        }
    }

    /// Corrects the stored due time of the expiry thread's next timer, which is too early at times.
    pub(crate) fn refresh(&self, base: &Base<P>, state: &mut BaseState) {
        if state.deferred.plain {
            return;
        }
        let next = thread_next(&state.queues);
        state.deferred.next = next;
        // Release: pairs with the Acquire in `tick`.
        base.thread_next.store(next.0, Ordering::Release);
    }
}
