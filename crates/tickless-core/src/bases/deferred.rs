//! Deferred expiry: the handler finds out that timers are due, a thread fires them.
//!
//! The handler of an event device should be short: everything behind it waits. So the callbacks
//! of coarse timers, and of precise ones that ask for it, run in an expiry thread, which the
//! handler wakes. The question is when: on every tick, or only if something expired.
//!
//! # What is collected
//!
//! The published patch moved expired timers to lists of their own in the interrupt, and had to
//! merge those with what the thread had not fired yet. Here the interrupt moves one number: the
//! tick up to which the wheel is to be emptied
//! ([`Wheel::advance`](crate::queues::wheel::Wheel::advance)).
//! What lies at or before it has been collected, wherever it stands; it can still be cancelled,
//! and what is armed for the past from then on belongs to the next round. So collecting is a
//! comparison and a store, merging is the maximum of two numbers, and neither takes memory. The
//! lists are spliced, in constant time each, by the thread under the base's lock, as it comes to
//! them.
//!
//! # Guarantees
//!
//! - D1 A tick reads a scalar without any lock; lists change under the lock alone.
//! - D3 The thread is woken only if something expired, unless [`Deferral::EveryTick`].
//! - D4 The cached next expiry is stale early, never late: arming lowers it at once, and only the
//!   thread, under the lock, raises it.
//! - D6 Collecting and merging are constant time and lose nothing.
//! - D9 A callback that blocks delays what its own thread fires, until a second thread takes
//!   over; that is asked for when nothing has been fired for
//!   [`Settings::patience`](super::Settings::patience) though something is due. A timer that is
//!   due again while its own callback still runs waits for that (X2).
//!
//! While the thread is at work the event device does not come for what the thread fires, until
//! its patience is over: the thread will look by itself before it goes to sleep, and arms the
//! device then.
//!
//! After the last batch the device comes once more, when patience is over, and finds nothing. To
//! take that back would be a write for every batch instead, and on the host, whose device is a
//! thread that sleeps until then, the very wakeup that it saves. It is one a patience at most, and
//! none if anything else comes before.

use super::base::{Base, BaseState, Bases};
use super::expiry::{Batch, CallbackResult, Expired, Firing, Share, Unpaused};
pub use super::expiry_thread::{Call, DeferredCounts};
use super::expiry_thread::{bit, thread_next};
use super::family::Family;
use super::running::Runner;
use super::settings::Deferral;
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::rearm::Rearm;
use crate::state::{FiresIn, Life};
use crate::time::{CpuId, Ns};

/// What came of a handler that defers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collected {
    /// What it fired itself, and when the device comes next.
    pub expired: Expired,
    /// Whom to wake.
    pub call: Call,
}

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device on bases that defer: fires what the handler fires,
    /// collects the rest, and says whom to wake for that. Otherwise like
    /// [`expire`](Bases::expire).
    pub fn collect(&self, cpu: CpuId, run: impl FnMut(&Firing<P>) -> CallbackResult) -> Collected {
        self.collect_batch(cpu, &mut Unpaused(run))
    }

    /// [`collect`](Bases::collect) with pauses.
    pub fn collect_batch(&self, cpu: CpuId, batch: &mut impl Batch<P>) -> Collected {
        let (expired, call) = self.handle(cpu, Share::Handler, batch);
        Collected { expired, call }
    }

    /// A periodic tick of `cpu`: says whom to wake. Reads one word, and takes the lock only if
    /// something has expired (D1). On bases that do not defer, [`Call::Thread`] means that there
    /// is something to [`expire`](Bases::expire).
    pub fn tick(&self, cpu: CpuId) -> Call {
        let base = self.base(cpu);
        let now = self.platform().now();
        // Acquire: pairs with the Release in `expect`; who sees an old value ticks again.
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
            // The cached value was early; now it is exact.
            self.refresh(base, &mut state);
            Call::Nobody
        }
    }

    /// Fires what has been collected on a base, and whatever else is due for its thread until
    /// nothing is; what an expiry thread does when it has been woken. Returns how many that was.
    ///
    /// One call a runner at a time: a second one finds nothing to do. Callbacks run without any
    /// lock and may use the bases freely. Should one panic, its timer is idle, everything is as
    /// if this had ended, and the panic goes on to the caller, who calls again.
    pub fn fire(
        &self,
        cpu: CpuId,
        runner: Runner,
        run: impl FnMut(&Firing<P>) -> CallbackResult,
    ) -> u64 {
        self.fire_batch(cpu, runner, &mut Unpaused(run))
    }

    /// [`fire`](Bases::fire) with pauses.
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
            // What is due and was not fired waits for its own callback, which another runner is
            // in; that one will see to it.
            if in_pass == 0 || thread_next(&state.queues) > now {
                break;
            }
        }
        let left = self.end_batch(cpu, &mut state, runner, fired, now);
        let is_online = state.is_online;
        drop(state);
        self.finish(left);
        if !is_online {
            self.evacuate(cpu);
        }
        fired
    }

    /// A runner is through, and arms the device for what is left.
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
        // Callbacks that had their timers armed again have not told the device.
        let earliest = state.earliest();
        let rearm = state.device.started(earliest, || now);
        self.carry_out(cpu, &mut state.device, rearm)
    }

    /// A handler has fired what is its own: is the thread to be called? Under the lock.
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

    /// A timer has been armed to be due at `due`. Returns when the device must come for it.
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

    /// Makes the cached next expiry exact. Under the lock.
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
