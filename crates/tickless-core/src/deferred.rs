//! Deferred expiry: the handler finds out that timers are due, a thread fires them (seed 3).
//!
//! The handler of an event device should be short: everything behind it waits. So the callbacks
//! of coarse timers, and of ranged ones that ask for it, run in an expiry thread, which the
//! handler wakes. The question of seed 3 is when: on every tick, or only if something expired.
//!
//! # What is collected
//!
//! The published patch moved expired timers to lists of their own in the interrupt, and had to
//! merge those with what the thread had not fired yet. Here the interrupt moves one number: the
//! tick up to which the wheel is to be emptied ([`Wheel::advance`](crate::wheel::Wheel::advance)).
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
//!   over; that is asked for when nothing has been fired for [`Settings::patience`] though
//!   something is due. A timer that is due again while its own callback still runs waits for
//!   that (X2).
//!
//! While the thread is at work the event device does not come for what the thread fires, until
//! its patience is over: the thread will look by itself before it goes to sleep, and arms the
//! device then.
//!
//! After the last batch the device comes once more, when patience is over, and finds nothing. To
//! take that back would be a write for every batch instead, and on the host, whose device is a
//! thread that sleeps until then, the very wakeup that it saves. It is one a patience at most, and
//! none if anything else comes before.

use crate::base::{Base, BaseState, Bases, Settings, WheelEvents};
use crate::expiry::{Expired, Firing, Share, Verdict};
use crate::family::{Family, FiresIn, Queues};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::rearm::Rearm;
use crate::running::Runner;
use crate::state::Life;
use crate::time::{CpuId, Ns};

/// Who fires coarse timers and those that ask for it, and when that one is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Deferral {
    /// The handler, like all others. There is no expiry thread.
    #[default]
    None,
    /// An expiry thread, woken when something has expired: after the patch of seed 3.
    OnExpiry,
    /// An expiry thread, woken by every tick: before the patch.
    EveryTick,
}

/// Whom a handler or a tick wants to be woken.
#[must_use = "who is not woken fires nothing"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Nobody.
    Nobody,
    /// The base's expiry thread, to [`fire`](Bases::fire) as [`Runner::Thread`].
    Thread,
    /// A second expiry thread, to fire as [`Runner::Relief`]: the first one is stuck.
    Relief,
}

impl Call {
    /// Both calls in one. A thread that has been called must be woken; whether somebody is to
    /// stand in for it is asked again.
    pub(crate) fn and(self, later: Call) -> Call {
        match (self, later) {
            (Call::Thread, _) | (_, Call::Nobody) => self,
            _ => later,
        }
    }
}

/// What came of a handler that defers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collected {
    /// What it fired itself, and when the device comes next.
    pub expired: Expired,
    /// Whom to wake.
    pub call: Call,
}

/// What the expiry threads of a base were put through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeferredCounts {
    /// Batches of the expiry thread: times it was woken and looked.
    pub wakes: u64,
    /// Those of them that found nothing to fire.
    pub empty_wakes: u64,
    /// Timers that expiry threads fired.
    pub fired: u64,
    /// Times that more came due before a thread was through.
    pub merged: u64,
    /// The most timers fired by one wake.
    pub longest_batch: u64,
    /// Times a second thread was asked to take over.
    pub reliefs: u64,
}

impl DeferredCounts {
    /// The sum over two bases; of the longest batches the longer.
    #[must_use]
    pub fn plus(self, other: DeferredCounts) -> DeferredCounts {
        DeferredCounts {
            wakes: self.wakes + other.wakes,
            empty_wakes: self.empty_wakes + other.empty_wakes,
            fired: self.fired + other.fired,
            merged: self.merged + other.merged,
            longest_batch: self.longest_batch.max(other.longest_batch),
            reliefs: self.reliefs + other.reliefs,
        }
    }
}

/// What a base knows of its expiry threads. Used under the base's lock.
pub(crate) struct Deferred {
    deferral: Deferral,
    events: WheelEvents,
    patience: Ns,
    /// Is everything fired by the handler, and the device told of everything?
    plain: bool,
    /// The thread has been called and has not come to an end since.
    called: bool,
    /// Who is firing: a bit for each [`Runner`].
    at_work: u8,
    /// When the handler looks whether the thread is stuck, if something is due by then.
    look_at: Ns,
    /// How many callbacks had ended when it last looked.
    fired_then: u64,
    /// What `thread_next` of the base says.
    next: Ns,
    counts: DeferredCounts,
}

impl Deferred {
    pub(crate) fn new(settings: &Settings) -> Deferred {
        let Settings { deferral, wheel, patience, .. } = *settings;
        Deferred {
            deferral,
            events: wheel,
            patience,
            plain: deferral == Deferral::None && wheel == WheelEvents::Device,
            called: false,
            at_work: 0,
            look_at: Ns::NEVER,
            fired_then: 0,
            next: Ns::NEVER,
            counts: DeferredCounts::default(),
        }
    }

    pub(crate) fn counts(&self) -> DeferredCounts {
        self.counts
    }

    /// A callback that a thread ran is over.
    pub(crate) fn has_fired(&mut self) {
        self.counts.fired += 1;
    }

    /// When the event device must come, for whatever reason.
    pub(crate) fn earliest(&self, queues: &Queues) -> Ns {
        let in_thread = self.thread_is_called_at(queues);
        let in_thread = if self.is_active() { in_thread.max(self.look_at) } else { in_thread };
        queues.earliest_in_handler().min(in_thread)
    }

    /// When the event device must come for a timer that is due at `due`.
    #[inline]
    pub(crate) fn for_device<L: Family>(&self, life: Life, due: Ns) -> Ns {
        if self.plain {
            return due;
        }
        let in_thread = self.deferral != Deferral::None && L::fires_in(life) == FiresIn::Thread;
        let ticks = L::COARSE && self.events == WheelEvents::Tick;
        match () {
            () if ticks => Ns::NEVER,
            () if in_thread && self.is_active() => due.max(self.look_at),
            () => due,
        }
    }

    /// May ticks believe that nothing is due before `next` (D4)? They need not know while the
    /// thread is at work.
    pub(crate) fn is_early(&self, next: Ns, queues: &Queues) -> bool {
        self.plain || self.is_active() || next == self.next && next <= thread_next(queues)
    }

    /// When the event device has to come to have the thread called.
    fn thread_is_called_at(&self, queues: &Queues) -> Ns {
        match self.events {
            WheelEvents::Device => thread_next(queues),
            WheelEvents::Tick => queues.earliest_in_thread(),
        }
    }

    fn is_active(&self) -> bool {
        self.called || self.at_work != 0
    }

    fn works(&self, runner: Runner) -> bool {
        self.at_work & bit(runner) != 0
    }

    pub(crate) fn forget_call(&mut self) {
        self.called = false;
    }

    fn call(&mut self, now: Ns) -> Call {
        self.called = true;
        self.look_at = now.after(self.patience);
        self.fired_then = self.counts.fired;
        Call::Thread
    }

    /// Is somebody to take over, now that more is due while the thread is at work?
    fn relieve(&mut self, now: Ns) -> Call {
        self.counts.merged += 1;
        if now < self.look_at {
            return Call::Nobody;
        }
        let is_stuck = self.fired_then == self.counts.fired;
        self.look_at = now.after(self.patience);
        self.fired_then = self.counts.fired;
        if !is_stuck {
            return Call::Nobody;
        }
        if !self.works(Runner::Thread) && !self.called {
            // The first one has come back, and it is the other one that is stuck.
            return self.call(now);
        }
        if self.works(Runner::Relief) {
            return Call::Nobody;
        }
        self.counts.reliefs += 1;
        Call::Relief
    }
}

/// When the next timer is due that the thread fires.
fn thread_next(queues: &Queues) -> Ns {
    queues.earliest_in_thread().min(queues.wheel.next_event())
}

fn bit(runner: Runner) -> u8 {
    1 << runner as u8
}

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device on bases that defer: fires what the handler fires,
    /// collects the rest, and says whom to wake for that. Otherwise like
    /// [`expire`](Bases::expire).
    pub fn collect(&self, cpu: CpuId, run: impl FnMut(&Firing<P>) -> Verdict) -> Collected {
        let (expired, call) = self.handle(cpu, Share::Handler, run);
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
        mut run: impl FnMut(&Firing<P>) -> Verdict,
    ) -> u64 {
        let base = self.base(cpu);
        let mut state = base.state.lock();
        let is_spare = runner == Runner::Relief && !state.deferred.is_active();
        if state.deferred.works(runner) || is_spare {
            return 0;
        }
        state.deferred.at_work |= bit(runner);
        let mut fired = 0;
        let mut now = self.platform().now();
        loop {
            let in_pass;
            (state, in_pass) = self.pass(cpu, runner, Share::Thread, state, now, &mut run);
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
    pub(crate) fn expect<L: Family>(
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
    fn expect_deferred<L: Family>(&self, cpu: CpuId, state: &mut BaseState, life: Life, due: Ns) {
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
