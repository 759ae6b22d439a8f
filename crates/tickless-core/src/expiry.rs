//! Expiry: what an event device's handler does with a base.
//!
//! The base hands the timers that are due to its caller one by one, without its lock, and the
//! caller runs the callbacks: the core itself calls nothing it does not know.
//!
//! # Guarantees
//!
//! - W1 nothing is fired before its deadline; W4 timers of one instant fire as armed.
//! - R5, R6 the device is written once, at the end, on every way out, a panic included.
//! - After a callback has started, the core touches no field of its timer, unless the callback
//!   itself asks for a restart and thereby says that the timer is still there (X4).

use crate::base::{Arming, Base, BaseState, Bases, Family};
use crate::link::{Link, QueueLink, TimerRef, WheelLink};
use crate::platform::{Lock, Ordering, Platform, Word};
use crate::queue::Window;
use crate::ranged::Lane;
use crate::state::Life;
use crate::time::{CpuId, Ns};
use crate::wheel::Wakes;
use core::ptr::NonNull;

/// A timer that fires: everything its callback may know.
#[derive(Debug)]
pub struct Firing<P: Platform> {
    /// The timer's address. Only its owner may know whether it can be followed.
    pub timer: NonNull<()>,
    /// What to run.
    pub task: P::Task,
    /// The window it was armed with; coarse timers have only a deadline, which is both ends.
    pub window: Window,
    /// Whether it would have woken a CPU. A restart keeps that.
    pub wakes: Wakes,
    /// The time at which it was found to be due.
    pub now: Ns,
    /// On which base.
    pub cpu: CpuId,
}

/// What a callback wants to happen to its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing; the timer may not even exist any more.
    Done,
    /// It is armed again, deferrable or not as before, unless somebody did that meanwhile (R9)
    /// or it has been shut down.
    Restart(Window),
}

/// What came of looking at a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// How many timers fired.
    pub fired: u64,
    /// When the next one is due; the device is armed for that, or has backed off.
    pub next: Ns,
}

/// Dropped when a callback panics: the way out of the handler that remains (R6).
struct Unwinding<'a, P: Platform> {
    bases: &'a Bases<P>,
    cpu: CpuId,
    fired: u64,
}

/// A timer taken off a base's data structures.
enum Due<P: Platform> {
    Coarse(TimerRef<P, WheelLink>),
    Ranged(TimerRef<P, QueueLink>),
}

impl<P: Platform> Bases<P> {
    /// Handles an event of `cpu`'s device: runs everything that is due, then arms the device
    /// for what is left. `run` is called without any lock and may use the bases freely.
    ///
    /// One handler a base at a time: a second one, from another thread or from inside a
    /// callback, finds nothing to do. The first will see to what is due and arm the device.
    ///
    /// Should `run` panic, its timer is idle, the device is armed for what is left, and the
    /// panic goes on to the caller.
    pub fn expire(&self, cpu: CpuId, mut run: impl FnMut(&Firing<P>) -> Verdict) -> Expired {
        let base = self.base(cpu);
        let mut fired = 0;
        let mut passes = 0;
        let mut state = base.state.lock();
        if state.device.is_handling() {
            return Expired { fired: 0, next: state.device.armed() };
        }
        // Read under the lock: who had it before may have brought the wheel up to a time that
        // was still to come when this handler began to wait.
        let mut now = self.platform().now();
        state.device.enter(now);
        let rearm = loop {
            Self::begin_pass(&mut state, now);
            while let Some((due, firing)) = Self::take_due(&mut state, now, cpu) {
                fired += 1;
                state.counts.fired += 1;
                due.begin(self.base(cpu));
                drop(state);
                let unwinding = Unwinding { bases: self, cpu, fired };
                let verdict = run(&firing);
                core::mem::forget(unwinding);
                state = base.state.lock();
                if let Verdict::Restart(window) = verdict {
                    due.restart(&mut state, window, now, firing.wakes);
                }
                // Release: pairs with the Acquire in `is_active` and `is_running`, and publishes
                // what the callback wrote (X1).
                base.running.store(0, Ordering::Release);
            }
            passes += 1;
            now = self.platform().now();
            let earliest = state.queues.earliest();
            if earliest > now {
                break state.device.leave(earliest, fired, now);
            }
            if !state.device.may_pass(passes) {
                break state.device.back_off(now);
            }
        };
        let next = state.device.armed();
        let left = self.carry_out(cpu, rearm);
        drop(state);
        self.finish(left);
        Expired { fired, next }
    }

    /// What is due by now becomes this pass's, what is armed for the past from here on the next
    /// one's: a callback that keeps doing that cannot hold the handler up (R7).
    fn begin_pass(state: &mut BaseState, now: Ns) {
        state.queues.wheel.advance(now);
        state.queues.ranged.begin_pass(now, |node| {
            let timer = TimerRef::<P, QueueLink>::around(node);
            let life = Life::from_word(timer.word().load(Ordering::Relaxed));
            // Release: as wherever a pending timer's word is written.
            timer.word().store(life.on(Lane::Queued).word(), Ordering::Release);
        });
    }

    /// The next timer that is due: first the ranged ones, whose users asked for precision.
    fn take_due(state: &mut BaseState, now: Ns, cpu: CpuId) -> Option<(Due<P>, Firing<P>)> {
        if let Some(node) = state.queues.ranged.pop() {
            let timer = TimerRef::around(node);
            let firing = Firing::of(timer, node.window(), Wakes::Yes, now, cpu);
            return Some((Due::Ranged(timer), firing));
        }
        let mut budget = usize::MAX;
        let node = state.queues.wheel.pop(&mut budget)?;
        // What comes due wakes at a time that is not never, unless it defers.
        let defers = state.queues.wheel.due_at(node) == Ns::NEVER;
        let wakes = if defers { Wakes::No } else { Wakes::Yes };
        let timer = TimerRef::around(node);
        let window = Window::new(node.deadline(), node.deadline());
        Some((Due::Coarse(timer), Firing::of(timer, window, wakes, now, cpu)))
    }
}

impl<P: Platform> Drop for Unwinding<'_, P> {
    fn drop(&mut self) {
        let now = self.bases.platform().now();
        let base = self.bases.base(self.cpu);
        let mut state = base.state.lock();
        // Release: as where a callback returns.
        base.running.store(0, Ordering::Release);
        let earliest = state.queues.earliest();
        let rearm = state.device.leave(earliest, self.fired, now);
        let left = self.bases.carry_out(self.cpu, rearm);
        drop(state);
        self.bases.finish(left);
    }
}

impl<P: Platform> Firing<P> {
    fn of<L: Link>(
        timer: TimerRef<P, L>,
        window: Window,
        wakes: Wakes,
        now: Ns,
        cpu: CpuId,
    ) -> Firing<P> {
        Firing { timer: timer.pointer(), task: timer.task(), window, wakes, now, cpu }
    }
}

impl<P: Platform> Due<P> {
    /// The callback is about to start: from here on the timer is idle, and running.
    fn begin(&self, base: &Base<P>) {
        match self {
            Due::Coarse(timer) => begin(*timer, base),
            Due::Ranged(timer) => begin(*timer, base),
        }
    }

    fn restart(self, state: &mut BaseState, window: Window, now: Ns, wakes: Wakes) {
        match self {
            Due::Coarse(timer) => restart(timer, state, window, now, wakes),
            Due::Ranged(timer) => restart(timer, state, window, now, wakes),
        }
    }
}

fn begin<P: Platform, L: Family>(timer: TimerRef<P, L>, base: &Base<P>) {
    // First running, then idle: who looks without the lock sees one of the two (R10).
    // Release: pairs with the Acquire in `is_active` and `is_running`. Who waits for the last
    // timer and finds this one, having missed the moment in between, has to see what the last
    // one's callback wrote (X1) and that it was restarted (R10).
    base.running.store(timer.address(), Ordering::Release);
    let life = Life::from_word(timer.word().load(Ordering::Relaxed));
    // Release: pairs with the Acquire in `is_active`.
    timer.word().store(life.idle().word(), Ordering::Release);
}

/// Arms a timer again whose callback asked for it. The handler is still under way, so the
/// device is not touched (R5).
fn restart<P: Platform, L: Family>(
    timer: TimerRef<P, L>,
    state: &mut BaseState,
    window: Window,
    now: Ns,
    wakes: Wakes,
) {
    // The timer is running, so it is still on this base, whoever armed it meanwhile (X2).
    let life = Life::from_word(timer.word().load(Ordering::Acquire));
    if life.is_pending() || life.is_shut() {
        return;
    }
    let arming = Arming { window, now, wakes };
    let (_, life) = L::enqueue(&mut state.queues, timer.node(), life, arming);
    state.counts.armed += 1;
    timer.word().store(life.word(), Ordering::Release);
}
