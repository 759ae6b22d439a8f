//! CPUs that are switched off and come back, and looking after another CPU's base.
//!
//! A CPU goes as a kernel's does: by itself, in an interrupt. It stops its tick, takes its base
//! offline, which gives the timers to others, and is off: its event device forgets, interrupts
//! that reach it are lost. What it was in the middle of stands still. A kernel would first move
//! its tasks away, all but those that cannot be moved: so it does not go while a task says that
//! it must not stand still, which is whenever it is inside of the timer core and not in a
//! callback.

use super::Kernel;
use crate::irq::{self, Vector};
use crate::ps::Ps;
use crate::{cpu, engine, platform};
use std::rc::Rc;
use tickless_core::bases::expiry::Firing;
use tickless_core::bases::running::Runner;
use tickless_core::time::{CpuId, Ns};

use super::{Sim, Slept};

impl Kernel {
    /// Has a CPU switch itself off until a time, if it can when that reaches it.
    pub fn send_off(&self, cpu: CpuId, until: Ps) {
        if let Some(state) = self.cpus.get(cpu.index()) {
            state.off_until.set(until);
            irq::send(cpu, Vector::Stop);
        }
    }

    /// Is a CPU off, or about to be?
    pub fn is_off(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_none_or(|state| state.is_off.get())
    }

    /// How many times CPUs were switched off, and how often that hit a callback.
    pub fn deaths(&self) -> (u64, u64) {
        self.deaths.get()
    }

    /// Takes a base offline or online, unless somebody is in the middle of that: two at a time
    /// could leave a base online whose CPU is off.
    pub fn one_at_a_time<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.is_plugging.replace(true) {
            return None;
        }
        let result = f();
        self.is_plugging.set(false);
        Some(result)
    }

    /// Does something that must not stand still half way: its CPU is not switched off meanwhile.
    pub fn steadily<R>(&self, f: impl FnOnce() -> R) -> R {
        let steady = &self.cpus[engine::here().index()].steady;
        steady.set(steady.get() + 1);
        let result = f();
        steady.set(steady.get() - 1);
        result
    }

    /// Has every sleep of an idle CPU checked.
    pub fn check_sleeps(&self, check: impl Fn(Slept) + 'static) {
        *self.sleep_check.borrow_mut() = Some(Rc::new(check));
    }

    /// What an expiry thread does when it is woken. Callbacks may stand still.
    pub(super) fn fire(&self, cpu: CpuId) {
        let steady = &self.cpus[cpu.index()].steady;
        self.steadily(|| {
            self.bases.fire(cpu, Runner::Thread, |firing: &Firing<Sim>| {
                steady.set(steady.get() - 1);
                let verdict = self.run_callback(firing);
                steady.set(steady.get() + 1);
                verdict
            });
        });
    }

    pub(super) fn switch_off(&self, cpu: CpuId) {
        let mine = &self.cpus[cpu.index()];
        let until = mine.off_until.take();
        if mine.steady.get() > 0 || until <= engine::clock() || engine::is_ending() {
            return;
        }
        self.stop_tick(cpu);
        let gone = self.one_at_a_time(|| {
            // The last base cannot go, and then its CPU stays.
            mine.is_off.set(self.bases.offline(cpu).is_ok());
        });
        if gone.is_some() && mine.is_off.get() {
            let (deaths, in_callbacks) = self.deaths.get();
            let is_in_callback = mine.expirer.get() == Some(mine.current.get());
            self.deaths.set((deaths + 1, in_callbacks + u64::from(is_in_callback)));
            cpu::power_off(until);
            mine.is_off.set(false);
            let _ = self.bases.online(cpu);
            // Whoever wanted it to choose a task meanwhile was not heard.
            mine.must_choose.set(true);
        }
        self.start_tick(cpu);
    }

    /// Each tick looks after the next of the other CPUs.
    pub(super) fn look_after_another(&self, cpu: CpuId, ticks: u64) {
        let others = self.cpus.len() as u64 - 1;
        if self.config.grace == Ns::NEVER || others == 0 {
            return;
        }
        let step = 1 + ticks % others;
        let other = (u64::from(cpu.0) + step) % (others + 1);
        self.bases.look_after(CpuId(other as u16), self.config.grace);
    }

    /// An idle CPU is about to sleep, if anybody wants to know.
    pub(super) fn before_sleep(&self, cpu: CpuId) -> Option<Slept> {
        self.sleep_check.borrow().as_ref()?;
        let earliest = self.bases.view(cpu)?.earliest.into();
        let now = platform::cycle_counter();
        Some(Slept { cpu, from: now, earliest, to: now })
    }

    /// It has woken.
    pub(super) fn after_sleep(&self, slept: Option<Slept>) {
        let check = self.sleep_check.borrow().clone();
        if let (Some(slept), Some(check)) = (slept, check) {
            check(Slept { to: platform::cycle_counter(), ..slept });
        }
    }
}
