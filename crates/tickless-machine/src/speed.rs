//! How fast the threads of a core run beside each other, and what the core draws.

use crate::ps::Ps;
use crate::state::cpu::{Mode, Segment};
use crate::world::World;
use tickless_core::time::CpuId;

impl World {
    /// How fast each thread of this CPU's core runs now.
    pub(crate) fn rate(&self, cpu: usize) -> f64 {
        let busy = self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize].max(1);
        let rates = &self.costs.smt_rates;
        let all = rates.get(busy as usize - 1).or(rates.last()).copied().unwrap_or(1.0);
        all / f64::from(busy)
    }

    /// What this CPU's core has used up to now, at the load that it had.
    pub(crate) fn meter(&mut self, cpu: usize) {
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        let now = self.cpus[cpu].clock;
        let used = &mut self.used[core];
        let rates = &self.costs.smt_rates;
        let all = rates.last().copied().unwrap_or(1.0);
        let busy = usize::from(self.busy[core]);
        let done = busy.checked_sub(1).and_then(|at| rates.get(at)).copied();
        let share = if busy == 0 { 0.0 } else { done.unwrap_or(all) / all };
        let watts = self.costs.power.fixed + self.costs.power.busy * share;
        used.joules += watts * now.since(used.until).as_ns_f64() * 1e-9;
        used.until = used.until.max(now);
    }

    /// What the whole machine has used.
    pub(crate) fn joules(&mut self) -> f64 {
        let end = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(Ps::ZERO);
        let idle: f64 = self.cpus.iter().map(|cpu| cpu.joules).sum();
        let cores = self.used.len();
        for core in 0..cores {
            // Any of its CPUs stands for it.
            let clock = std::mem::replace(&mut self.cpus[core].clock, end);
            self.meter(core);
            self.cpus[core].clock = clock;
        }
        idle + self.used.iter().map(|used| used.joules).sum::<f64>()
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

    /// The number of busy threads of this CPU's core has changed: what its siblings still have
    /// to do goes at another speed from now on.
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
