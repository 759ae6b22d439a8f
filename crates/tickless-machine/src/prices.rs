//! The prices that are made of a machine file's numbers.

use crate::cost::{
    Costs, CounterCosts, IdleState, IrqCosts, LineCosts, OsCosts, PowerCosts, Shares,
};
use crate::ps::Ps;
use crate::spec::Spec;
use crate::topology::Topology;

impl Spec {
    /// The machine's prices.
    pub fn costs(&self) -> Costs {
        let count = |key| self.value(key) as u16;
        let topology = Topology {
            sockets: count("topology.sockets"),
            cores_per_socket: count("topology.cores_per_socket"),
            threads_per_core: count("topology.threads_per_core"),
            sockets_per_group: count("topology.sockets_per_group"),
        };
        Costs {
            topology,
            ghz: self.value("cpu.ghz"),
            line: self.line_costs(),
            pause: self.time("cpu.pause_ns"),
            tsc: self.time("cpu.tsc_ns"),
            counter: CounterCosts {
                latency: self.time("counter.latency_ns"),
                service: self.time("counter.service_ns"),
            },
            section: self.time("cpu.section_ns"),
            section_lines: count("cpu.section_lines"),
            program: self.time("event.program_ns"),
            irq: IrqCosts {
                entry: self.time("irq.entry_ns"),
                exit: self.time("irq.exit_ns"),
                send: self.time("irq.send_ns"),
                near: self.time("irq.near_ns"),
                far: self.time("irq.far_ns"),
            },
            smt_rates: self.smt_rates(topology.threads_per_core),
            idle_states: self.idle_states(),
            os: OsCosts {
                syscall: self.time("os.syscall_ns"),
                switch: self.time("os.switch_ns"),
                wake: self.time("os.wake_ns"),
                idle: self.time("os.idle_ns"),
                tick: self.time("os.tick_ns"),
                timekeeping: self.time("os.timekeeping_ns"),
            },
            power: PowerCosts {
                fixed: self.value("power.fixed_watts"),
                busy: self.value("power.busy_watts"),
            },
        }
    }

    fn line_costs(&self) -> LineCosts {
        LineCosts {
            hit: self.time("line.hit_ns"),
            store: self.time("line.store_ns"),
            atomic: self.time("line.atomic_ns"),
            node: self.time("line.node_ns"),
            near: self.time("line.near_ns"),
            far: self.time("line.far_ns"),
            shares: Shares {
                load: self.value("line.load_share"),
                clean_node: self.value("line.clean_node_share"),
                clean_far: self.value("line.clean_far_share"),
                store: self.value("line.store_share"),
            },
            memory: self.time("line.memory_ns"),
            port: self.time("line.port_ns"),
            directory: self.time("line.directory_ns"),
            hold: self.time("line.hold_ns"),
        }
    }

    fn smt_rates(&self, threads: u16) -> Vec<f64> {
        let several = (2..=threads).map(|busy| self.value(&format!("smt.rate_{busy}")));
        std::iter::once(1.0).chain(several).collect()
    }

    fn idle_states(&self) -> Vec<IdleState> {
        let state = |name: String| {
            let time = |part| Ps::from_ns_f64(1e3 * self.value(&format!("idle.{name}.{part}")));
            let (exit, residency) = (time("exit_us"), time("residency_us"));
            let watts = self.value(&format!("idle.{name}.watts"));
            IdleState { name, exit, residency, watts }
        };
        let mut states: Vec<IdleState> = self.idle_names().into_iter().map(state).collect();
        states.sort_by_key(|state| state.exit);
        states
    }
}
