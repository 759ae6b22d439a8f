//! What a base knows of its expiry threads: which is called, which is at work, which is stuck.
//!
//! Under the base's lock throughout; [`deferred`](super::deferred) says what it is for.

use super::family::Queues;
use super::running::Runner;
use super::settings::{Deferral, Settings, WheelEvents};
use crate::link::Link;
use crate::state::{FiresIn, Life};
use crate::time::Ns;

/// Whom a handler or a tick wants to be woken.
#[must_use = "who is not woken fires nothing"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Nobody.
    Nobody,
    /// The base's expiry thread, to [`fire`](super::Bases::fire) as [`Runner::Thread`].
    Thread,
    /// A second expiry thread, to fire as [`Runner::Rescuer`]: the first one is stuck.
    Rescuer,
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

/// What the expiry threads of a base were put through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
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
    pub(super) plain: bool,
    /// The thread has been called and has not come to an end since.
    pub(super) called: bool,
    /// Who is firing: a bit for each [`Runner`].
    pub(super) at_work: u8,
    /// When the handler looks whether the thread is stuck, if something is due by then.
    look_at: Ns,
    /// How many callbacks had ended when it last looked.
    fired_then: u64,
    /// What `thread_next` of the base says.
    pub(super) next: Ns,
    pub(super) counts: DeferredCounts,
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
    pub(crate) fn for_device<L: Link>(&self, life: Life, due: Ns) -> Ns {
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
    pub(super) fn thread_is_called_at(&self, queues: &Queues) -> Ns {
        match self.events {
            WheelEvents::Device => thread_next(queues),
            WheelEvents::Tick => queues.earliest_in_thread(),
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.called || self.at_work != 0
    }

    pub(super) fn works(&self, runner: Runner) -> bool {
        self.at_work & bit(runner) != 0
    }

    pub(crate) fn forget_call(&mut self) {
        self.called = false;
    }

    pub(super) fn call(&mut self, now: Ns) -> Call {
        self.called = true;
        self.look_at = now.after(self.patience);
        self.fired_then = self.counts.fired;
        Call::Thread
    }

    /// Is somebody to take over, now that more is due while the thread is at work?
    pub(super) fn relieve(&mut self, now: Ns) -> Call {
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
        if self.works(Runner::Rescuer) {
            return Call::Nobody;
        }
        self.counts.reliefs += 1;
        Call::Rescuer
    }
}

/// When the next timer is due that the thread fires.
pub(super) fn thread_next(queues: &Queues) -> Ns {
    queues.earliest_in_thread().min(queues.wheel.next_event())
}

pub(super) fn bit(runner: Runner) -> u8 {
    1 << runner as u8
}
