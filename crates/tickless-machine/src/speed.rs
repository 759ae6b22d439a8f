//! The speed of SMT threads, which depends on how many threads of their core are busy.

use crate::machine_state::MachineState;
use crate::state::cpu::{Mode, Segment};
use tickless_core::time::CpuId;

impl MachineState {
    /// The current speed of each busy thread of this CPU's core, relative to a thread that is alone
    /// on its core.
    pub(crate) fn rate(&self, cpu: usize) -> f64 {
        let busy = self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize].max(1);
        let rates = &self.costs.smt_rates;
        let all = rates.get(busy as usize - 1).or(rates.last()).copied().unwrap_or(1.0);
        all / f64::from(busy)
    }

    pub(crate) fn leave_core(&mut self, cpu: usize) {
        self.meter(cpu);
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        self.busy[core] = self.busy[core].saturating_sub(1);
        self.rescale(cpu);
    }

    pub(crate) fn join_core(&mut self, cpu: usize) {
        self.meter(cpu);
        self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize] += 1;
        self.rescale(cpu);
    }

    /// Changes the speed of the computations on the other threads of this CPU's core, after the
    /// number of busy threads has changed.
    fn rescale(&mut self, cpu: usize) {
        let topology = self.costs.topology;
        if topology.threads_per_core == 1 {
            return;
        }
        let now = self.cpus[cpu].clock;
        let rate = self.rate(cpu);
        for sibling in topology.threads(topology.core(CpuId(cpu as u16))) {
            let other = &mut self.cpus[sibling.index()];
            if sibling.index() != cpu
                && let Mode::Working(segment) = other.mode
                && segment.rate != rate
            {
                let from = now.max(segment.since);
                let work = segment.work - (from - segment.since).scaled(segment.rate);
                other.mode = Mode::Working(Segment::new(from, work, rate, segment.limit));
                self.reschedule(sibling.index());
            }
        }
    }
}
