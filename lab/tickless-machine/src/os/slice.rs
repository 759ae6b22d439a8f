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
use tickless_core::rearm::LazyTimers;
use tickless_core::time::{CpuId, Ns, Window};

impl Kernel {
    fn decides_once(&self) -> bool {
        self.config.timers.lazy_timers == LazyTimers::Honoured
    }

    pub(super) fn begin_choice(&self, cpu: CpuId) {
        if !self.decides_once() {
            self.stop_slice(cpu);
        }
    }

    /// Called when a CPU has chosen a task, with what is left of the slices of the task that has
    /// left the queue and of the chosen one, if others wait.
    pub(super) fn end_choice(&self, cpu: CpuId, left: Option<Ns>, chosen: Option<Ns>) {
        if let (Some(rest), false) = (left, self.decides_once()) {
            self.start_slice(cpu, rest);
        }
        match chosen {
            Some(rest) => self.start_slice(cpu, rest),
            None => self.stop_slice(cpu),
        }
    }

    /// Called when a task has entered a CPU's queue, with what is left of the running task's slice.
    pub(super) fn slice_is_shared(&self, cpu: CpuId, rest: Option<Ns>) {
        let (Some(rest), Some(timer)) = (rest, &self.cpus[cpu.index()].slice) else { return };
        if self.decides_once() && timer.is_pending() {
            return;
        }
        match cpu == cpu::here() {
            true => self.start_slice(cpu, rest),
            false => irq::send(cpu, Vector::Slice),
        }
    }

    /// Another CPU has added a task to this CPU's queue: starts the timer.
    pub(super) fn share_slice(&self, cpu: CpuId) {
        let mut queue = self.cpus[cpu.index()].queue.lock();
        queue.account(cpu::clock());
        let rest = queue.rest();
        drop(queue);
        if let Some(rest) = rest {
            self.start_slice(cpu, rest);
        }
    }

    fn start_slice(&self, cpu: CpuId, rest: Ns) {
        if let Some(timer) = &self.cpus[cpu.index()].slice {
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
