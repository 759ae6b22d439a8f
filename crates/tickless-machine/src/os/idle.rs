//! The idle loop. Entering idle stops the tick, leaving idle restarts it.

use super::Kernel;
use crate::cpu;
use crate::engine;
use crate::irq::Masked;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

impl Kernel {
    /// The idle task of a CPU.
    pub(super) fn idle_loop(&self, cpu: CpuId) {
        self.start_tick(cpu);
        while !engine::is_ending() {
            let masked = Masked::new();
            if self.has_work(cpu) {
                self.choose();
                drop(masked);
                continue;
            }
            self.idle(cpu);
            drop(masked);
        }
        self.stop_tick(cpu);
        if let Some(slice) = self.cpus[cpu.index()].slice.get() {
            slice.shutdown_sync();
        }
    }

    /// Sleeps until a task can run. Interrupts that make none ready do not restart the tick.
    fn idle(&self, cpu: CpuId) {
        engine::charge(self.costs.idle);
        self.tick_enter_idle(cpu);
        while !self.has_work(cpu) && !engine::is_ending() {
            // A handler may have made a task ready that another CPU has taken since.
            self.settle(cpu);
            self.checked_sleep(cpu, cpu::halt);
            // Handle what has arrived, and nothing after the check above.
            crate::irq::enable_briefly();
        }
        engine::charge(self.costs.idle);
        self.start_tick(cpu);
    }

    /// Checks the flag without the lock: a CPU that adds a task also sends an interrupt.
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
