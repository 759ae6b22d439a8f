//! A base's record of its expiry threads: which one is called, at work, or stuck.
//!
//! Used under the base's lock only. [`deferred`](super::deferred) explains expiry threads.

use super::family::Queues;
use super::running::Runner;
use super::settings::{Deferral, Settings, WheelEvents};
use crate::link::Link;
use crate::state::{FiresIn, Life};
use crate::time::Ns;

/// The expiry thread that must be woken after a handler or a tick.
#[must_use = "a thread that is not woken fires nothing"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// None.
    Nobody,
    /// A base's expiry thread; must call [`fire`](super::Bases::fire) as [`Runner::Thread`].
    Thread,
    /// A second expiry thread, which must call `fire` as [`Runner::Rescuer`]: the first is stuck.
    Rescuer,
}

impl Call {
    /// Combines the calls of two passes into one. A call of the thread must not be lost, but a call
    /// of the rescuer can be: the need for it is checked again later.
    pub(crate) fn and(self, later: Call) -> Call {
        match (self, later) {
            (Call::Thread, _) | (_, Call::Nobody) => self,
            _ => later,
        }
    }
}

/// Counts of what the expiry threads of a base did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct DeferredCounts {
    /// Batches of timers that the expiry thread has fired, one for each wakeup.
    pub wakes: u64,
    /// Batches that found nothing to fire.
    pub empty_wakes: u64,
    /// Timers that expiry threads fired.
    pub fired: u64,
    /// How often the handler or a tick found timers due while a thread was firing earlier ones.
    pub merged: u64,
    /// The most timers that fired in one batch.
    pub longest_batch: u64,
    /// Requests for a second thread, because the first one seemed to be stuck in a callback.
    pub reliefs: u64,
}

impl DeferredCounts {
    /// The sum over two bases, and the maximum of their longest batches.
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

/// A base's record of its expiry threads. Used under the base's lock.
pub(crate) struct Deferred {
    deferral: Deferral,
    events: WheelEvents,
    patience: Ns,
    /// Whether the handler fires all timers, and the device is programmed for all of them.
    pub(super) plain: bool,
    /// Whether the expiry thread has been called and has not finished a batch since.
    pub(super) called: bool,
    /// The runners that are firing: a bit for each [`Runner`].
    pub(super) at_work: u8,
    /// From this time on, a handler that finds timers of the expiry thread due checks whether that
    /// thread is stuck.
    check_at: Ns,
    /// How many callbacks had returned at the last check for a stuck thread. If the next check
    /// finds the same number, it takes the thread for stuck.
    fired_at_check: u64,
    /// A copy of the base's `thread_next`, which is outside the lock.
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
            check_at: Ns::NEVER,
            fired_at_check: 0,
            next: Ns::NEVER,
            counts: DeferredCounts::default(),
        }
    }

    pub(crate) fn counts(&self) -> DeferredCounts {
        self.counts
    }

    pub(crate) fn has_fired(&mut self) {
        self.counts.fired += 1;
    }

    /// When the event device must fire next.
    #[inline]
    pub(crate) fn earliest(&self, queues: &Queues) -> Ns {
        let in_thread = self.thread_is_called_at(queues);
        let in_thread = if self.is_active() { in_thread.max(self.check_at) } else { in_thread };
        queues.earliest_in_handler().min(in_thread)
    }

    /// When the event device must fire for a timer that is due at `due`.
    #[inline]
    pub(crate) fn for_device<L: Link>(&self, life: Life, due: Ns) -> Ns {
        if self.plain {
            return due;
        }
        let in_thread = self.deferral != Deferral::None && L::fires_in(life) == FiresIn::Thread;
        let ticks = L::COARSE && self.events == WheelEvents::Tick;
        match () {
            () if ticks => Ns::NEVER,
            () if in_thread && self.is_active() => due.max(self.check_at),
            () => due,
        }
    }

    /// Returns whether `next`, the time from which a tick wakes the thread, is not after the time
    /// at which the thread's next timer is due (D4). Returns `true` while the thread is at work: it
    /// checks for due timers before it sleeps, and then `next` is updated.
    pub(crate) fn is_early(&self, next: Ns, queues: &Queues) -> bool {
        self.plain || self.is_active() || next == self.next && next <= thread_next(queues)
    }

    /// When the event device must fire so that its handler calls the expiry thread.
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

    /// Calls the expiry thread, and sets when to check whether it makes progress.
    pub(super) fn call(&mut self, now: Ns) -> Call {
        self.called = true;
        self.check_at = now.after(self.patience);
        self.fired_at_check = self.counts.fired;
        Call::Thread
    }

    /// Checks for a stuck thread when more timers are due while the thread is at work. Returns
    /// which thread must take over.
    pub(super) fn relieve(&mut self, now: Ns) -> Call {
        self.counts.merged += 1;
        if now < self.check_at {
            return Call::Nobody;
        }
        let is_stuck = self.fired_at_check == self.counts.fired;
        self.check_at = now.after(self.patience);
        self.fired_at_check = self.counts.fired;
        if !is_stuck {
            return Call::Nobody;
        }
        if !self.works(Runner::Thread) && !self.called {
            // The expiry thread has finished, but the rescuer is stuck.
            return self.call(now);
        }
        if self.works(Runner::Rescuer) {
            return Call::Nobody;
        }
        self.counts.reliefs += 1;
        Call::Rescuer
    }
}

pub(super) fn thread_next(queues: &Queues) -> Ns {
    queues.earliest_in_thread().min(queues.wheel.next_event())
}

pub(super) fn bit(runner: Runner) -> u8 {
    1 << runner as u8
}
