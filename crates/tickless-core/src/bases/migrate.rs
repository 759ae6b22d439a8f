//! Bases that go away and come back (D8).
//!
//! A base that goes offline gives its timers to the next one that is online: what is pending,
//! and what has been collected and not fired yet. A timer whose callback runs there stays until
//! that is over, as any running timer does (X2); if it has been armed again by then, it moves
//! then. Whatever is armed from a CPU without a base, or pinned to one, goes elsewhere. Timers do
//! not come back by themselves; the next arming brings them.
//!
//! Timers move one by one, each under one lock at a time, and each is migrating in between: a
//! cancel waits for the moment, finds the timer on its new base, and takes it off there. So
//! nothing is lost, fired twice, or left.

use super::base::{BaseState, Bases};
use super::family::{Arming, Family};
use super::running::RUNNERS;
use crate::link::{QueueLink, QueueRef, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queues::wheel::Wakes;
use crate::queues::windows::PreciseQueue;
use crate::rearm::{Locality, Rearm};
use crate::state::{Lane, Life};
use crate::time::{CpuId, Ns, Window};
use core::fmt;

/// Why a base did not go away or come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OnlineError {
    /// There is no such base.
    NoSuchBase(CpuId),
    /// It is the last one that is online, and there are timers to be kept.
    Last(CpuId),
}

impl fmt::Display for OnlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnlineError::NoSuchBase(cpu) => {
                write!(f, "there is no base {}; use one below the number of bases", cpu.0)
            }
            OnlineError::Last(cpu) => {
                write!(f, "base {} is the last one online; bring another one online first", cpu.0)
            }
        }
    }
}

impl core::error::Error for OnlineError {}

/// A pending timer that may leave its base.
enum Mover<P: Platform> {
    Coarse(TimerRef<P, WheelLink<P::Word>>, Life, Arming),
    Precise(TimerRef<P, QueueLink>, Life, Arming),
}

impl<P: Platform> Bases<P> {
    /// Takes a base offline and gives its timers to others. Returns how many moved; 0 if it was
    /// offline already.
    ///
    /// Takes two locks a timer, one after the other; waits for no callback. A timer whose
    /// callback runs there moves when that is over.
    pub fn offline(&self, cpu: CpuId) -> Result<u64, OnlineError> {
        if cpu.index() >= self.count() {
            return Err(OnlineError::NoSuchBase(cpu));
        }
        let mut state = self.base(cpu).state.lock();
        if !state.is_online {
            return Ok(0);
        }
        loop {
            let online = self.online.load(Ordering::Relaxed);
            if online == 1 {
                return Err(OnlineError::Last(cpu));
            }
            // Relaxed: it is a count; who moves a timer looks at the other base under its lock.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.online.compare_exchange(online, online - 1, success, failure).is_ok() {
                break;
            }
        }
        state.go_offline();
        drop(state);
        Ok(self.evacuate(cpu))
    }

    /// Brings a base back. Timers come as they are armed.
    ///
    /// Its event device may have been switched off meanwhile, so what it was told counts for
    /// nothing any more: the next start programs it. Whatever has stayed on the base, because
    /// its callback runs there (X2), is told to it at once.
    pub fn online(&self, cpu: CpuId) -> Result<(), OnlineError> {
        if cpu.index() >= self.count() {
            return Err(OnlineError::NoSuchBase(cpu));
        }
        let mut state = self.base(cpu).state.lock();
        if state.is_online {
            return Ok(());
        }
        loop {
            let online = self.online.load(Ordering::Relaxed);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.online.compare_exchange(online, online + 1, success, failure).is_ok() {
                break;
            }
        }
        state.come_online();
        state.device.forget();
        let (earliest, now) = (state.earliest(), self.platform().now());
        let rearm = state.device.started(earliest, || now);
        let left = self.carry_out(cpu, &mut state.device, rearm);
        drop(state);
        self.finish(left);
        Ok(())
    }

    /// Moves everything off a base that may leave it, unless it has come back online.
    #[cold]
    pub(crate) fn evacuate(&self, cpu: CpuId) -> u64 {
        let now = self.platform().now();
        let mut moved = 0;
        loop {
            let mut state = self.base(cpu).state.lock();
            if state.is_online {
                return moved;
            }
            match self.take_mover(cpu, &mut state, now) {
                Some(Mover::Coarse(timer, life, arming)) => {
                    self.settle(timer, life, arming, state, self.after(cpu));
                }
                Some(Mover::Precise(timer, life, arming)) => {
                    self.settle(timer, life, arming, state, self.after(cpu));
                }
                None => return moved,
            }
            moved += 1;
        }
    }

    /// Takes a timer off whose callback does not run here.
    fn take_mover(&self, cpu: CpuId, state: &mut BaseState, now: Ns) -> Option<Mover<P>> {
        let running = &self.base(cpu).running;
        let runs = |address| running.has(address, Ordering::Relaxed);
        // Each runner's timer may be found first, in the wheel or in a queue, and one that goes.
        state.record_holding(RUNNERS + 1);
        let coarse = TimerRef::<P, WheelLink<P::Word>>::of_wheel;
        let queues = &mut state.queues;
        if let Some(node) = queues.wheel.find(|node| !runs(coarse(node).address())) {
            // Closed from here on, so that nobody puts it off who would not be heard.
            let deadline = coarse(node).node().take();
            let window = Window::new(deadline, deadline);
            let defers = queues.wheel.due_at(node) == Ns::NEVER;
            queues.wheel.unlink(node);
            let (timer, life) = (coarse(node), self.life_of(coarse(node)));
            let wakes = if defers { Wakes::No } else { Wakes::Yes };
            let arming = Arming { window, now, wakes, fires_in: life.fires_in() };
            return Some(Mover::Coarse(timer, life, arming));
        }
        let precise = |node| TimerRef::<P, QueueLink>::around(node);
        let may_leave = |node| !runs(precise(node).address());
        let stays = |node, lane| self.stays_on(precise(node), lane);
        let node = take_precise(&mut queues.precise, &may_leave, &stays)
            .or_else(|| take_precise(&mut queues.deferred, &may_leave, &stays))?;
        let (timer, life) = (precise(node), self.life_of(precise(node)));
        let fires_in = life.fires_in();
        let arming = Arming { window: node.window(), now, wakes: Wakes::Yes, fires_in };
        Some(Mover::Precise(timer, life, arming))
    }

    fn life_of<L: Family<P>>(&self, timer: TimerRef<P, L>) -> Life {
        Life::from_word(timer.word().load(Ordering::Relaxed))
    }

    fn stays_on(&self, timer: TimerRef<P, QueueLink>, lane: Lane) {
        let life = self.life_of(timer).on(lane);
        // Release: as wherever a pending timer's word is written.
        timer.word().store(life.word(), Ordering::Release);
    }

    /// Arms a timer that has been taken off on another base, as it was.
    fn settle<'a, L: Family<P>>(
        &'a self,
        timer: TimerRef<P, L>,
        life: Life,
        arming: Arming,
        state: <P::Lock<BaseState> as Lock<BaseState>>::Guard<'a>,
        target: CpuId,
    ) {
        let (cpu, mut state, life) = self.move_to(timer, life, state, Rearm::Keep, target);
        let left = self.arm_locked(cpu, &mut state, timer, life, arming, Locality::Remote);
        drop(state);
        self.finish(left);
    }
}

/// Takes a timer off that may leave, and puts those back that were in front of it and may not:
/// they are told on which lane. There are no more of them than runners.
fn take_precise(
    precise: &mut PreciseQueue,
    may_leave: &impl Fn(QueueRef) -> bool,
    stays: &impl Fn(QueueRef, Lane),
) -> Option<QueueRef> {
    let node = precise.take_any()?;
    if may_leave(node) {
        return Some(node);
    }
    let found = take_precise(precise, may_leave, stays);
    stays(node, precise.insert(node, node.window()));
    found
}
