//! The timer that ends the slice of a fair task (`HRTICK` in Linux), if the kernel has one.
//!
//! Up to 7.0, Linux acts at each step: the timer is cancelled when a CPU begins to choose a task,
//! started when a task leaves the queue, started for the chosen task, and started when a task
//! enters the queue, but not if the task was still there when it was woken. Since 7.1, whose slice
//! timers are lazy, it decides once, after the choice: the timer is restarted in place, or
//! cancelled if the CPU becomes idle. A task that enters the queue then starts it only if it is not
//! armed.

use super::Kernel;
use crate::cpu;
use crate::irq::{self, Vector};
use crate::platform;
use tickless_core::bases::Options;
use tickless_core::platform::Lock;
use tickless_core::time::{CpuId, Ns, Window};

impl Kernel {
    pub(super) fn begin_choice(&self, cpu: CpuId) {
        if !self.config.is_since_7_1() {
            self.stop_slice(cpu);
        }
    }

    /// Called when a CPU has chosen a task, with what is left of the slices of the task that has
    /// left the queue and of the chosen one, if others wait.
    pub(super) fn end_choice(&self, cpu: CpuId, left: Option<Ns>, chosen: Option<Ns>) {
        if let (Some(rest), false) = (left, self.config.is_since_7_1()) {
            self.start_slice(cpu, rest);
        }
        match chosen {
            Some(rest) => self.start_slice(cpu, rest),
            None => self.stop_slice(cpu),
        }
    }

    /// Called when a task has entered a CPU's queue, with what is left of the running task's slice.
    /// Returns whether that is used up, so that the CPU must choose a task.
    pub(super) fn slice_is_shared(&self, cpu: CpuId, rest: Option<Ns>) -> bool {
        let (Some(rest), Some(timer)) = (rest, &self.cpus[cpu.index()].slice) else { return false };
        match cpu == cpu::here() {
            _ if self.config.is_since_7_1() && timer.is_pending() => {}
            true => self.start_slice(cpu, rest),
            false => irq::send(cpu, Vector::Slice),
        }
        rest == Ns::ZERO
    }

    /// Another CPU has added a task to this CPU's queue: starts the timer.
    pub(super) fn share_slice(&self, cpu: CpuId) {
        let mine = &self.cpus[cpu.index()];
        let mut queue = mine.queue.lock();
        let (must_share, rest) = (queue.account(cpu::clock()), queue.rest());
        drop(queue);
        mine.must_choose.set(mine.must_choose.get() | must_share);
        if let Some(rest) = rest {
            self.start_slice(cpu, rest);
        }
    }

    fn start_slice(&self, cpu: CpuId, rest: Ns) {
        if let (Some(timer), true) = (&self.cpus[cpu.index()].slice, rest > Ns::ZERO) {
            let _masked = irq::mask();
            let now = platform::now();
            let _ = timer.start(Window::at(now.after(rest)), now, Options::default());
        }
    }

    fn stop_slice(&self, cpu: CpuId) {
        if let Some(timer) = &self.cpus[cpu.index()].slice {
            timer.cancel();
        }
    }
}
