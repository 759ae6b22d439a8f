//! Bases that go offline and come back online (D8).
//!
//! When a base goes offline, its timers move to the next base that is online: pending timers, and
//! those that have been collected but not fired. A timer whose callback runs there stays until the
//! callback has returned, like any running timer (X2); if it has been rearmed by then, it moves. A
//! timer that is armed on the offline base's CPU, or pinned to it, is armed on another base. Timers
//! do not return by themselves when the base comes back; their next arming brings them back.
//!
//! Timers move one by one. The thread holds one lock at a time, and the timer is migrating in
//! between: a cancel waits for this moment and then finds the timer on its new base. So no timer is
//! lost, fired twice, or left behind.

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

/// Why a base did not go offline or come back online.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OnlineError {
    /// The base does not exist.
    NoSuchBase(CpuId),
    /// The base is the last one online, so its timers cannot move.
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

/// A pending timer that has been taken off an offline base.
enum Evacuee<P: Platform> {
    Coarse(TimerRef<P, WheelLink<P::Word>>, Life, Arming),
    Precise(TimerRef<P, QueueLink>, Life, Arming),
}

impl<P: Platform> Bases<P> {
    /// Takes a base offline and moves its timers to other bases. Returns how many timers moved; 0
    /// if the base was offline already.
    ///
    /// Takes two locks for each timer, one after the other, and waits for no callback. A timer
    /// whose callback runs there moves when the callback has returned.
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
            // Relaxed: this is only a count. A thread that moves a timer checks the other base
            // under its lock.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.online.compare_exchange(online, online - 1, success, failure).is_ok() {
                break;
            }
        }
        state.go_offline();
        drop(state);
        Ok(self.evacuate(cpu))
    }

    /// Brings a base back online. Timers return when they are armed.
    ///
    /// The base's event device may have been switched off, so its deadline counts as lost. This
    /// programs the device for timers that have stayed on the base because their callbacks run
    /// there (X2).
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

    /// Moves all timers that may leave an offline base; stops if the base has come back online.
    #[cold]
    pub(crate) fn evacuate(&self, cpu: CpuId) -> u64 {
        let now = self.platform().now();
        let mut moved = 0;
        loop {
            let mut state = self.base(cpu).state.lock();
            if state.is_online {
                return moved;
            }
            match self.take_evacuee(cpu, &mut state, now) {
                Some(Evacuee::Coarse(timer, life, arming)) => {
                    self.settle(timer, life, arming, state, self.after(cpu));
                }
                Some(Evacuee::Precise(timer, life, arming)) => {
                    self.settle(timer, life, arming, state, self.after(cpu));
                }
                None => return moved,
            }
            moved += 1;
        }
    }

    /// Takes a timer off its list whose callback does not run here.
    fn take_evacuee(&self, cpu: CpuId, state: &mut BaseState, now: Ns) -> Option<Evacuee<P>> {
        let running = &self.base(cpu).running;
        let runs = |address| running.has(address, Ordering::Relaxed);
        // The search may find each runner's timer first, in the wheel or in a queue.
        state.record_holding(RUNNERS + 1);
        let coarse = TimerRef::<P, WheelLink<P::Word>>::of_wheel;
        let queues = &mut state.queues;
        if let Some(node) = queues.wheel.find(|node| !runs(coarse(node).address())) {
            // Close the deadline word first: a concurrent push-out would be lost while the timer is
            // on no list.
            let deadline = coarse(node).node().take();
            let window = Window::new(deadline, deadline);
            let defers = queues.wheel.due_at(node) == Ns::NEVER;
            queues.wheel.unlink(node);
            let (timer, life) = (coarse(node), coarse(node).life(Ordering::Relaxed));
            let wakes = if defers { Wakes::No } else { Wakes::Yes };
            let arming = Arming { window, now, wakes, fires_in: life.fires_in() };
            return Some(Evacuee::Coarse(timer, life, arming));
        }
        let precise = |node| TimerRef::<P, QueueLink>::around(node);
        let may_leave = |node| !runs(precise(node).address());
        let stays = |node, lane| {
            let timer = precise(node);
            timer.set_life(timer.life(Ordering::Relaxed).on(lane));
        };
        let node = take_precise(&mut queues.precise, &may_leave, &stays)
            .or_else(|| take_precise(&mut queues.deferred, &may_leave, &stays))?;
        let (timer, life) = (precise(node), precise(node).life(Ordering::Relaxed));
        let fires_in = life.fires_in();
        let arming = Arming { window: node.window(), now, wakes: Wakes::Yes, fires_in };
        Some(Evacuee::Precise(timer, life, arming))
    }

    /// Arms an evacuated timer on another base, as it was armed before.
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

/// Takes a timer that may leave off its queue. Timers in front of it that may not leave, at most
/// one for each runner, are put back; `stays` records their lane.
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
