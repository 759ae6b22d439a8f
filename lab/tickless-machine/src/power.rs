//! Idle states and energy of simulated CPUs: chooses the idle state of a halted CPU, charges its
//! exit latency, and adds up the energy that idle CPUs and working cores use.

use crate::cpu_state::{Mode, Segment};
use crate::machine_state::MachineState;
use crate::ps::Ps;
use tickless_core::time::CpuId;

impl MachineState {
    /// Halts a CPU, in the deepest idle state that saves energy until its timer interrupt.
    pub(crate) fn begin_halt(&mut self, cpu: usize) {
        self.count(cpu);
        let state = &self.cpus[cpu];
        let sleep = state.inbox.timer.since(state.clock);
        let states = &self.costs.idle_states;
        let fits = states.iter().rev().find(|state| state.residency <= sleep);
        let (exit, watts) =
            fits.or(states.first()).map_or((Ps::ZERO, 0.0), |state| (state.exit, state.watts));
        let state = &mut self.cpus[cpu];
        state.mode = Mode::Halted { since: state.clock, exit };
        state.watts = watts;
        self.leave_core(cpu);
    }

    /// Ends a halt: adds its energy, and the time that the CPU takes to leave the idle state.
    pub(crate) fn end_halt(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        let Mode::Halted { since, exit } = state.mode else { return };
        let slept = state.clock - since;
        state.joules += state.watts * slept.as_ns_f64() * 1e-9;
        state.clock += exit;
        state.mode = Mode::Running;
        self.join_core(cpu);
    }

    /// Adds the energy that this CPU's core has used since the last call, at its current load. Must
    /// be called before the load changes.
    pub(crate) fn meter(&mut self, cpu: usize) {
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        let now = self.cpus[cpu].clock;
        let used = &mut self.core_energy[core];
        let rates = &self.costs.smt_rates;
        let all = rates.last().copied().unwrap_or(1.0);
        let busy = usize::from(self.busy[core]);
        let done = busy.checked_sub(1).and_then(|at| rates.get(at)).copied();
        let share = if busy == 0 { 0.0 } else { done.unwrap_or(all) / all };
        let watts = self.costs.power.fixed + self.costs.power.busy * share;
        used.joules += watts * now.since(used.until).as_ns_f64() * 1e-9;
        used.until = used.until.max(now);
    }

    pub(crate) fn joules(&mut self) -> f64 {
        let end = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(Ps::ZERO);
        let idle: f64 = self.cpus.iter().map(|cpu| cpu.joules).sum();
        for core in 0..self.core_energy.len() {
            // Add the energy of each core up to the time `end`: `meter` adds it up to the clock of
            // a CPU, and the core's first CPU has the same number as the core.
            let clock = std::mem::replace(&mut self.cpus[core].clock, end);
            self.meter(core);
            self.cpus[core].clock = clock;
        }
        idle + self.core_energy.iter().map(|used| used.joules).sum::<f64>()
    }

    /// The current speed of each busy thread of this CPU's core, relative to a lone thread on a
    /// core.
    pub(crate) fn rate(&self, cpu: usize) -> f64 {
        let busy = self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize].max(1);
        let rates = &self.costs.smt_rates;
        let all = rates.get(busy as usize - 1).or(rates.last()).copied().unwrap_or(1.0);
        all / f64::from(busy)
    }

    /// Records that a CPU stops working: the other threads of its core become faster.
    pub(crate) fn leave_core(&mut self, cpu: usize) {
        self.meter(cpu);
        let core = self.costs.topology.core(CpuId(cpu as u16)) as usize;
        self.busy[core] = self.busy[core].saturating_sub(1);
        self.rescale(cpu);
    }

    /// Records that a CPU begins to work: the other threads of its core become slower.
    pub(crate) fn join_core(&mut self, cpu: usize) {
        self.meter(cpu);
        self.busy[self.costs.topology.core(CpuId(cpu as u16)) as usize] += 1;
        self.rescale(cpu);
    }

    /// Adapts the computations on the core's other threads to the new number of busy ones.
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
