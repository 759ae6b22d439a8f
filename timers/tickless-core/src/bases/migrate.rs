//! Bases that go offline and come back online (D8).
//!
//! When a base goes offline, its timers move to the next base that is online: pending timers, and
//! those that were found due but have not fired. A timer whose callback runs on the offline base
//! stays until the callback has returned, like any running timer (X2); if the timer has been
//! rearmed by then, it moves. A timer that is armed on the offline base's CPU, or pinned to it, is
//! armed on another base. Timers do not return by themselves when the base comes back; their next
//! arming brings them back.
//!
//! Timers move one by one. The thread holds one lock at a time, and the timer is migrating in
//! between: a cancel waits until the move has ended, and then finds the timer on its new base. So
//! no timer is lost, fired twice, or left behind.

use super::base::Bases;
use super::family::Family;
use super::running::RUNNERS;
use crate::link::{QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::time::CpuId;
use core::fmt;

/// Why a base did not go offline or come back online.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

impl<P: Platform> Bases<P> {
    /// Takes a base offline and moves its timers to other bases. Returns how many timers moved; 0
    /// if the base was offline already.
    ///
    /// Takes two locks for each timer, one after the other, and waits for no callback. A timer
    /// whose callback runs on the base moves when the callback has returned.
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
            // Relaxed: no other memory depends on this count. A thread that moves a timer checks
            // under the target's lock whether the target is online.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.online.compare_exchange(online, online - 1, success, failure).is_ok() {
                break;
            }
        }
        state.go_offline();
        drop(state);
        Ok(self.evacuate(cpu))
    }

    /// Brings a base back online. Timers that have moved away return when they are next armed.
    ///
    /// The base's event device has possibly been switched off, so its deadline counts as lost. This
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
        let after_unlock = self.carry_out(cpu, rearm);
        self.finish(state, after_unlock);
        Ok(())
    }

    /// Moves the timers whose callback does not run to other bases; stops if `cpu` is online again.
    #[cold]
    pub(crate) fn evacuate(&self, cpu: CpuId) -> u64 {
        self.evacuate_family::<WheelLink<P::Word>>(cpu) + self.evacuate_family::<QueueLink>(cpu)
    }

    /// Moves the coarse or the precise timers away from an offline base. Returns how many.
    fn evacuate_family<L: Family<P>>(&self, cpu: CpuId) -> u64 {
        let (base, now) = (self.base(cpu), self.platform().now());
        let mut moved = 0;
        loop {
            let mut state = base.state.lock();
            if state.is_online {
                return moved;
            }
            // The search below skips timers whose callback runs on this base. There is at most one
            // for each runner, so the search examines at most `RUNNERS + 1` timers.
            state.record_holding(RUNNERS + 1);
            let runs = |timer: TimerRef<P, L>| base.running.has(timer.address(), Ordering::Relaxed);
            let Some(timer) = L::find(&state.queues, |timer| !runs(timer)) else { return moved };
            let life = timer.life(Ordering::Relaxed);
            let arming = L::evacuate(&mut state.queues, timer, life);
            let (locked, target) = ((cpu, state, life.idle()), Some(self.after(cpu)));
            let (state, after_unlock) = self.arm_locked(locked, timer, arming, now, target);
            self.finish(state, after_unlock);
            moved += 1;
        }
    }
}
