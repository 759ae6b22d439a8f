//! The idle loop: going idle stops the tick, leaving idle restarts it.

use super::Kernel;
use crate::cpu;
use crate::engine;
use crate::irq::Masked;
use tickless_core::platform::Lock;
use tickless_core::time::CpuId;

impl Kernel {
    /// What a CPU does when it has nothing to do.
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
        let slice = self.cpus[cpu.index()].slice.borrow_mut().take();
        drop(slice);
    }

    /// Sleeps until there is something to do; interrupts that bring nothing to do leave the tick
    /// as it is.
    fn idle(&self, cpu: CpuId) {
        engine::charge(self.costs.idle);
        self.quiet_tick(cpu);
        while !self.has_work(cpu) && !engine::is_ending() {
            // A handler may have wanted a task to be chosen that somebody else has taken.
            self.settle(cpu);
            let slept = self.before_sleep(cpu);
            cpu::halt();
            self.after_sleep(slept);
            // What came in is handled here, and nothing after it: with interrupts disabled
            // again, whatever it left to do is seen above.
            crate::irq::enable_briefly();
        }
        engine::charge(self.costs.idle);
        self.start_tick(cpu);
    }

    /// A look without the lock: who puts something in sends an interrupt as well.
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
