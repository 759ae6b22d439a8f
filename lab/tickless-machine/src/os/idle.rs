//! The idle loop of the simulated kernel. A CPU that becomes idle stops its tick (if so
//! configured), and restarts it when it has work again.

use super::Kernel;
use crate::cpu;
use crate::irq;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

impl Kernel {
    pub(super) fn idle_loop(&self, cpu: CpuId) {
        self.start_tick(cpu);
        loop {
            let _masked = irq::mask();
            if self.has_work(cpu) {
                self.choose();
            } else {
                self.idle(cpu);
            }
        }
    }

    /// Sleeps until a task can run. After an interrupt that makes no task ready, sleeps again
    /// without restarting the tick.
    fn idle(&self, cpu: CpuId) {
        cpu::charge(self.costs.idle);
        self.tick_enter_idle(cpu);
        while !self.has_work(cpu) {
            // An interrupt handler perhaps left the timer device unprogrammed, because the CPU
            // programs it when it chooses the next task. Here no task is ready to be chosen:
            // program the device now.
            self.settle(cpu);
            self.checked_sleep(cpu, cpu::halt);
            // Handle the interrupts that have ended the sleep. They were disabled since the check
            // above, so that none could arrive unnoticed between the check and the sleep.
            crate::irq::enable_briefly();
        }
        cpu::charge(self.costs.idle);
        self.start_tick(cpu);
    }

    /// Returns whether a task is ready. Reads the flag `must_choose` without a lock: a CPU that
    /// adds a task also sends an interrupt, whose handler sets the flag.
    fn has_work(&self, cpu: CpuId) -> bool {
        let mine = &self.cpus[cpu.index()];
        mine.must_choose.get() && {
            let is_empty = mine.queue.lock().is_empty();
            if is_empty {
                mine.must_choose.set(false);
            }
            !is_empty
        }
    }
}
