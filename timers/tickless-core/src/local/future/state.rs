//! The timers of sleeps, each with the waker of its task.

use crate::local::advance::event;
use crate::local::table::{NO_SLOT, Record};
use crate::local::{Clock, Key, LocalTimers};
use crate::time::{Instant, Ns, Tick, Window};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::task::Waker;

pub(super) struct Waiting {
    timers: LocalTimers<()>,
    /// The tasks of coarse sleeps, then those of precise ones.
    tasks: [Tasks; 2],
    /// The wakers of timers that have fired, in the order in which they fired.
    pub(super) due: VecDeque<Waker>,
    pub(super) is_closed: bool,
}

/// The wakers for timers of one kind, and the idle timers, whose sleeps have ended. Later sleeps
/// use idle timers again, at a fraction of the cost of inserting and removing a timer.
struct Tasks {
    /// For each slot: the waker of its sleep's task, or, if the slot is idle, the number of the
    /// next idle slot. The waker is taken when the timer fires.
    of_slot: Vec<Result<Waker, u32>>,
    /// The slot that has become idle last, or [`NO_SLOT`].
    idle: u32,
}

/// The kind of a sleep's timer. The values are indices of [`Waiting::tasks`].
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Coarse,
    Precise,
}

impl Kind {
    /// Returns the kind of a timer, and its slot number among the timers of that kind.
    fn of(key: Key) -> (Kind, u32) {
        if key.is_precise() {
            (Kind::Precise, key.precise().index)
        } else {
            (Kind::Coarse, key.coarse().index)
        }
    }
}

impl Waiting {
    pub(super) fn new(clock: Clock, tick: Tick) -> Waiting {
        let timers = LocalTimers::with_tick(clock, tick);
        let tasks = [(); 2].map(|()| Tasks { of_slot: Vec::new(), idle: NO_SLOT });
        Waiting { timers, tasks, due: VecDeque::new(), is_closed: false }
    }

    /// Returns a state without timers, in which none can be armed.
    pub(super) fn closed() -> Waiting {
        Waiting { is_closed: true, ..Waiting::new(Clock::manual(Instant::ZERO), Tick::default()) }
    }

    pub(super) fn pending(&self) -> usize {
        self.timers.pending()
    }

    pub(super) fn next_event(&mut self) -> Option<Instant> {
        let LocalTimers { clock, wheel, precise, heap, .. } = &mut self.timers;
        if !self.due.is_empty() {
            return event(clock.advanced);
        }
        event(wheel.next_event().min(heap.settled_next_event(&mut precise.records)))
    }

    /// Sets the time of the last advance, and moves the wakers of sleeps that are due to `due`.
    pub(super) fn advance(&mut self, now: Instant) -> Clock {
        let Waiting { timers, tasks, due, .. } = self;
        timers.advance(now, |_, key| {
            let (kind, slot) = Kind::of(key);
            let fired = tasks[kind as usize].of_slot.get_mut(slot as usize);
            due.extend(fired.and_then(|task| core::mem::replace(task, Err(NO_SLOT)).ok()));
        });
        timers.clock
    }

    /// Arms an idle timer for a sleep, and returns its slot. Returns the waker if there is no idle
    /// timer or arming it takes more than a store; then [`arm_slow`](Self::arm_slow) arms one.
    #[inline(always)]
    pub(super) fn arm(&mut self, kind: Kind, deadline: Ns, waker: Waker) -> Result<u32, Waker> {
        let slot = self.tasks[kind as usize].idle;
        if !self.start(kind, slot, deadline) {
            return Err(waker);
        }
        self.use_slot(kind, slot, waker)
    }

    /// Arms a timer for a sleep, and returns its slot. Returns the waker if there is no timer: the
    /// state is closed, or has 2^29 timers of this kind, in 12 GB of memory.
    pub(super) fn arm_slow(
        &mut self,
        kind: Kind,
        deadline: Ns,
        waker: Waker,
    ) -> Result<u32, Waker> {
        if self.tasks[kind as usize].idle == NO_SLOT && !self.is_closed {
            let inserted = match kind {
                Kind::Coarse => self.timers.insert(()),
                Kind::Precise => self.timers.insert_precise(()),
            };
            // Timers are never removed, so slots are numbered without gaps.
            if let Ok(key) = inserted {
                self.tasks[kind as usize].of_slot.push(Err(NO_SLOT));
                self.tasks[kind as usize].idle = Kind::of(key).1;
            }
        }
        let slot = self.tasks[kind as usize].idle;
        self.start_slow(kind, slot, deadline);
        self.use_slot(kind, slot, waker)
    }

    /// Takes the slot `slot`, the first of the idle ones, off their list, and stores the waker in
    /// it. Returns the waker if there is no such slot.
    #[inline(always)]
    fn use_slot(&mut self, kind: Kind, slot: u32, waker: Waker) -> Result<u32, Waker> {
        let Tasks { of_slot, idle } = &mut self.tasks[kind as usize];
        let Some(task @ &mut Err(next)) = of_slot.get_mut(slot as usize) else {
            return Err(waker);
        };
        (*task, *idle) = (Ok(waker), next);
        Ok(slot)
    }

    /// Arms the timer in a slot by storing its deadline. Returns false if more than that must be
    /// done; then [`start_slow`](Self::start_slow) arms it.
    #[inline(always)]
    pub(super) fn start(&mut self, kind: Kind, slot: u32, deadline: Ns) -> bool {
        let LocalTimers { clock, coarse, wheel, precise, heap, .. } = &mut self.timers;
        match kind {
            Kind::Coarse => coarse.records.record(slot).is_some_and(|record| {
                let generation = record.key(slot).generation;
                wheel.push_out(record, generation, deadline, deadline.since(clock.advanced))
            }),
            Kind::Precise => {
                precise.records.record(slot).is_some_and(|record| heap.push_out(record, deadline))
            }
        }
    }

    /// Arms the timer in a slot, pending or not. Does nothing if there is no such slot.
    pub(super) fn start_slow(&mut self, kind: Kind, slot: u32, deadline: Ns) {
        let LocalTimers { coarse, wheel, precise, heap, .. } = &mut self.timers;
        match kind {
            _ if slot as usize >= self.tasks[kind as usize].of_slot.len() => {}
            Kind::Coarse => wheel.arm(&mut coarse.records, slot, deadline),
            Kind::Precise => heap.arm(&mut precise.records, slot, Window::at(deadline)),
        }
    }

    /// Returns the waker for a slot, if its timer has not fired.
    #[inline]
    pub(super) fn waker(&self, kind: Kind, slot: u32) -> Option<&Waker> {
        self.tasks[kind as usize].of_slot.get(slot as usize)?.as_ref().ok()
    }

    /// Sets the waker for a slot, and returns the previous waker.
    pub(super) fn set_waker(&mut self, kind: Kind, slot: u32, waker: Waker) -> Option<Waker> {
        match self.tasks[kind as usize].of_slot.get_mut(slot as usize) {
            Some(task) => core::mem::replace(task, Ok(waker)).ok(),
            None => Some(waker),
        }
    }

    /// Cancels the timer in a slot, makes the slot idle, and returns its waker.
    #[inline(always)]
    pub(super) fn cancel(&mut self, kind: Kind, slot: u32) -> Option<Waker> {
        let Tasks { of_slot, idle } = &mut self.tasks[kind as usize];
        // `None` only if the state is closed.
        let task = of_slot.get_mut(slot as usize)?;
        // The slot becomes the first in the list of idle ones: each has the number of the next.
        let task = core::mem::replace(task, Err(core::mem::replace(idle, slot)));
        let LocalTimers { coarse, wheel, precise, heap, .. } = &mut self.timers;
        let is_pending = |record: &&mut Record| record.is_pending();
        match kind {
            Kind::Coarse => {
                if let Some(record) = coarse.records.record(slot).filter(is_pending) {
                    wheel.cancel_in_place(record);
                }
            }
            Kind::Precise => {
                if let Some(record) = precise.records.record(slot).filter(is_pending) {
                    heap.cancel_in_place(record);
                }
            }
        }
        task.ok()
    }
}
