//! What must have happened without a record.
//!
//! Traces have gaps: a kernel does not trace a CPU on its way into and out of idle if that CPU
//! is not being watched there (the tick is stopped and started again, and its device written,
//! without a line), and a full buffer drops events. An operation is inferred only where what
//! is recorded contradicts itself without it:
//!
//! - *An idle timer expires.* It was armed for now, as soon as it was idle.
//! - *A pending hrtimer is seen, and an interrupt of its CPU has begun past its expiry.* That
//!   interrupt would have fired it. It was moved to now, at its old expiry at the latest.
//! - *The tick is seen a millisecond or more after its expiry.* An armed tick is on time. It was
//!   moved likewise.
//! - *A pending timer is set up, or is found idle by its next start (`was_armed=0`).* It was
//!   cancelled, before it expired.
//!
//! What such an operation wrote to the device is not in the trace either, so the replay does
//! not count it, nor the lateness of an expiry that was guessed.
//!
//! The third is the one that could be wrong: a CPU that did not run for a millisecond has a
//! late tick, too. It makes no difference to the device: a late interrupt is delivered when it
//! was recorded either way. "As soon as it was idle" in the first is a choice, made because
//! what re-arms itself without a record is periodic; the other extreme, just before the
//! expiry, would be 0.6 % more writes on `traces/idle` and none on the other samples.

use super::interrupt::Interrupt;
use super::writer::{Armed, Known, Writer};
use super::{Inference, ItemKind, Op, Start};
use crate::replay::family::Family;
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// A tick this late was stopped meanwhile, not delayed.
const TICK_LATE_MAX: Ns = Ns::from_ms(1);

impl Writer {
    /// A pending timer is seen at `at`: was it moved since it was armed?
    pub(super) fn notice_move(&mut self, timer: u32, at: Ns) {
        let state = self.states[timer as usize];
        let (Known::Pending, Some(armed)) = (state.known, state.armed) else { return };
        if self.script.families[timer as usize] == Family::Wheel {
            return;
        }
        let Start { window, base, .. } = self.script.starts[armed.start as usize];
        let seen = self.began(base, at);
        // Before it was armed no interrupt could have fired it.
        let due = window.hard.max(armed.at);
        let passed_over = !state.is_soft && due < self.cpus[base.index()].last_interrupt;
        let is_late = armed.at < seen && seen.since(window.hard) > TICK_LATE_MAX;
        if passed_over || state.is_tick && is_late {
            self.move_unseen(due, Start::guessed(timer, seen, base));
        }
    }

    /// An idle timer expires at `at`: it was armed for that since it was last seen idle, as a
    /// periodic timer is.
    pub(super) fn notice_start(&mut self, guess: Start, at: Ns) {
        let cpu = &self.cpus[guess.base.index()];
        let idle_since = self.states[guess.timer as usize].idle_since;
        // A callback that runs after the interrupt is still the interrupt's doing.
        let expired = match &cpu.interrupt {
            Some(interrupt) => interrupt.began,
            None if cpu.last_interrupt > idle_since => cpu.last_interrupt,
            None => at,
        };
        let before = Ns(expired.0.saturating_sub(1));
        self.move_unseen(idle_since.after(Ns(1)).min(before), guess);
    }

    /// A pending timer turns out to be idle at `at` on `cpu`.
    pub(super) fn notice_cancel(&mut self, timer: u32, cpu: CpuId, at: Ns) {
        let state = self.states[timer as usize];
        if self.inference == Inference::Off || state.known != Known::Pending {
            return;
        }
        if let Some(armed) = state.armed {
            let Start { window, base, .. } = self.script.starts[armed.start as usize];
            let interrupt = self.cpus[cpu.index()].interrupt.as_ref();
            let (at, place) = interrupt.map_or((at, self.place), Interrupt::moment);
            // No expiry of it was recorded, so it was gone before that.
            let at = window.hard.max(armed.at).min(at);
            self.script.push((at, place), base, ItemKind::Operation, &[Op::Gone(timer)]);
            self.script.inferred += 1;
        }
    }

    fn move_unseen(&mut self, at: Ns, moved: Start) {
        if self.inference == Inference::Off {
            return;
        }
        let start = self.script.starts.len() as u32;
        self.script.starts.push(moved);
        self.states[moved.timer as usize].armed = Some(Armed { start, at, is_guess: true });
        self.script.push((at, self.place), moved.base, ItemKind::Operation, &[Op::Moved(start)]);
        self.script.inferred += 1;
    }
}

impl Start {
    /// Of a timer whose real expiry is not known, but only when it was seen.
    pub(super) fn guessed(timer: u32, at: Ns, base: CpuId) -> Start {
        Start { timer, window: Window::new(at, at), base, wakes: Wakes::Yes }
    }
}
