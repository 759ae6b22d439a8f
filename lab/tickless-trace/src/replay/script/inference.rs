//! Infers operations that must have happened without a record: only where the records contradict
//! each other without them. The rules: `docs/book/src/replay.md`, "Operations without a record".
//!
//! A tick that is late because its virtual CPU did not run is wrongly taken for a restarted one.
//! That does not change the number of device writes, since a late interrupt is delivered when it
//! was recorded. The time of an inferred arming is an assumption: timers that are restarted without
//! a record are periodic, so they are assumed to be armed right after their last expiry. The other
//! extreme, to arm them just before their next expiry, would add 0.6 % of device writes on
//! `traces/idle` and none on the other samples.

use super::interrupt::Interrupt;
use super::writer::{Armed, Known, Writer};
use super::{Inference, ItemKind, Op, Start};
use crate::read::Family;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// A tick timer that is later than this was stopped by the kernel, not delayed.
const TICK_LATE_MAX: Ns = Ns::from_ms(1);

impl Writer {
    /// Infers that a timer was restarted if it is pending at `at`, though it should have fired.
    pub(super) fn infer_restart(&mut self, timer: u32, at: Ns) {
        let state = self.states[timer as usize];
        let (Known::Pending, Some(armed)) = (state.known, state.armed) else { return };
        if self.script.families[timer as usize] == Family::Wheel {
            return;
        }
        let Start { window, base, .. } = self.script.starts[armed.start as usize];
        let seen = self.interrupt_began(base, at);
        // An interrupt before the arming cannot have fired the timer, so compare with the later of
        // expiry and arming.
        let due = window.hard.max(armed.at);
        let passed_over = !state.is_soft && due < self.cpus[base.index()].last_interrupt;
        let is_late = armed.at < seen && seen.since(window.hard) > TICK_LATE_MAX;
        if passed_over || state.is_tick && is_late {
            self.push_inferred(due, Start::guessed(timer, seen, base));
        }
    }

    /// Infers the start of an idle timer that expires at `at`: like a periodic timer, it was armed
    /// when it was last seen idle.
    pub(super) fn infer_start(&mut self, guess: Start, at: Ns) {
        let cpu = &self.cpus[guess.base.index()];
        let idle_since = self.states[guess.timer as usize].idle_since;
        // The timer expired in an interrupt: the current one; or the last one, if its callback runs
        // in a softirq after that interrupt.
        let expired = match &cpu.interrupt {
            Some(interrupt) => interrupt.moment.0,
            None if cpu.last_interrupt > idle_since => cpu.last_interrupt,
            None => at,
        };
        let before = Ns(expired.0.saturating_sub(1));
        self.push_inferred(idle_since.after(Ns(1)).min(before), guess);
    }

    /// Infers the cancel of a timer that a record at `at` on `cpu` shows idle (not pending), though
    /// it was pending before.
    pub(super) fn infer_cancel(&mut self, timer: u32, cpu: CpuId, at: Ns) {
        let state = self.states[timer as usize];
        if self.inference == Inference::Off || state.known != Known::Pending {
            return;
        }
        if let Some(armed) = state.armed {
            let Start { window, base, .. } = self.script.starts[armed.start as usize];
            let interrupt = &self.cpus[cpu.index()].interrupt;
            let moment = |interrupt: &Interrupt| interrupt.moment;
            let (at, place) = interrupt.as_ref().map_or((at, self.place), moment);
            // The trace has no expiry of this timer, so it was cancelled at its expiry or before.
            let at = window.hard.max(armed.at).min(at);
            let ops = [Op::InferredCancel(timer)];
            self.script.push((at, place), base, ItemKind::Operation, &ops);
            self.script.inferred += 1;
        }
    }

    /// Adds an arming that no record shows, unless inference is off.
    pub(super) fn push_inferred(&mut self, at: Ns, inferred: Start) {
        if self.inference == Inference::Off {
            return;
        }
        let start = self.script.push_start(inferred);
        self.states[inferred.timer as usize].armed = Some(Armed { start, at, is_guess: true });
        let ops = [Op::InferredStart(start)];
        self.script.push((at, self.place), inferred.base, ItemKind::Operation, &ops);
        self.script.inferred += 1;
    }
}

impl Start {
    /// Returns an assumed start for a timer whose expiry is not known: `at` stands for its expiry.
    pub(super) fn guessed(timer: u32, at: Ns, base: CpuId) -> Start {
        Start { timer, window: Window::at(at), base, wakes: Wakes::Yes }
    }
}
