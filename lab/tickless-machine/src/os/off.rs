//! Switching CPUs off and on, and detecting that another CPU's timer interrupt was lost.
//!
//! A CPU switches itself off in an interrupt handler, as in a real kernel. It stops its tick, takes
//! its base offline, which moves its timers to other CPUs' bases, and is off: its timer device
//! loses its setting, and interrupts that reach it are lost. Its program is suspended. A real
//! kernel would first move the CPU's tasks to other CPUs. This kernel instead does not switch a CPU
//! off during [`Kernel::keep_on`]. Tasks call it around calls of the timer library, which can hold
//! locks, but not around timer callbacks.

use super::{IdleSleep, Kernel, Sim};
use crate::irq::{self, Vector};
use crate::ps::Ps;
use crate::{cpu, platform};
use std::rc::Rc;
use tickless_core::bases::firing::Firing;
use tickless_core::bases::running::Runner;
use tickless_core::time::{CpuId, Ns};

impl Kernel {
    /// Asks a CPU to switch itself off until a time. The CPU ignores the request if it must stay on
    /// when the request arrives.
    pub fn request_power_off(&self, cpu: CpuId, until: Ps) {
        if let Some(state) = self.cpus.get(cpu.index()) {
            state.off_until.set(until);
            irq::send(cpu, Vector::Stop);
        }
    }

    pub fn is_off(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_none_or(|state| state.is_off.get())
    }

    pub fn power_offs(&self) -> (u64, u64) {
        self.power_offs.get()
    }

    /// Calls `f`, which takes a base offline or online. Does not call it while another call of
    /// `plug` is running: two at a time could leave a base online although its CPU is off.
    pub fn plug<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.is_plugging.replace(true) {
            return None;
        }
        let result = f();
        self.is_plugging.set(false);
        Some(result)
    }

    /// Calls `f`. The CPU that runs `f` is not switched off until `f` has returned.
    pub fn keep_on<R>(&self, f: impl FnOnce() -> R) -> R {
        let kept_on = &self.cpus[cpu::here().index()].kept_on;
        kept_on.set(kept_on.get() + 1);
        let result = f();
        kept_on.set(kept_on.get() - 1);
        result
    }

    pub fn check_sleeps(&self, check: impl Fn(IdleSleep) + 'static) {
        *self.sleep_check.borrow_mut() = Some(Rc::new(check));
    }

    /// Runs the callbacks of the expired timers, in an expiry thread. The CPU can be switched off
    /// during a callback, but not between callbacks.
    pub(super) fn fire(&self, cpu: CpuId) {
        let kept_on = &self.cpus[cpu.index()].kept_on;
        self.keep_on(|| {
            self.bases.fire(cpu, Runner::Thread, |firing: &Firing<Sim>| {
                kept_on.set(kept_on.get() - 1);
                let verdict = self.run_callback(firing);
                kept_on.set(kept_on.get() + 1);
                verdict
            });
        });
    }

    /// Moves this CPU's timers away and switches it off for a time, unless something keeps it on.
    pub(super) fn switch_off(&self, cpu: CpuId) {
        let mine = &self.cpus[cpu.index()];
        let until = mine.off_until.take();
        if mine.kept_on.get() > 0 || until <= cpu::clock() {
            return;
        }
        self.stop_tick(cpu);
        let plugged = self.plug(|| {
            // Taking the base offline fails if no other base is online. Then the CPU stays on.
            mine.is_off.set(self.bases.offline(cpu).is_ok());
        });
        if plugged.is_some() && mine.is_off.get() {
            let (count, in_callbacks) = self.power_offs.get();
            let is_in_callback = mine.expirer.get() == Some(mine.current.get());
            self.power_offs.set((count + 1, in_callbacks + u64::from(is_in_callback)));
            cpu::power_off(until);
            mine.is_off.set(false);
            let _ = self.bases.online(cpu);
            // Interrupts that ask this CPU to choose a task were lost while it was off: choose now.
            mine.must_choose.set(true);
        }
        self.start_tick(cpu);
    }

    /// Called at each tick. Checks another CPU's base for a lost event, each time the next CPU's.
    pub(super) fn check_another_base(&self, cpu: CpuId, ticks: u64) {
        let others = self.cpus.len() as u64 - 1;
        if self.config.grace == Ns::NEVER || others == 0 {
            return;
        }
        let step = 1 + ticks % others;
        let other = (u64::from(cpu.0) + step) % (others + 1);
        self.bases.recover_lost_event(CpuId(other as u16), self.config.grace);
    }

    /// Sleeps, and reports the sleep to the check that a test has set.
    pub(super) fn checked_sleep(&self, cpu: CpuId, sleep: impl FnOnce()) {
        let check = self.sleep_check.borrow().clone();
        let view = check.is_some().then(|| self.bases.view(cpu)).flatten();
        let from = platform::cycle_counter();
        sleep();
        if let (Some(check), Some(view)) = (check, view) {
            let (earliest, to) = (view.earliest.to_ns(), platform::cycle_counter());
            check(IdleSleep { cpu, from, earliest, to });
        }
    }
}
