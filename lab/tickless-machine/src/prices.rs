//! Builds a machine's prices (the durations of its operations) from the numbers in its file. A file
//! must have every key that `costs` reads, except for optional ones, with a value of the kind that
//! `costs` expects.

use crate::cost::{Costs, CounterCosts, IdleState, IrqCosts, LineCosts, OsCosts, PowerCosts};
use crate::ps::Ps;
use crate::spec::Spec;
use crate::topology::Topology;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Count,
    Positive,
    Amount,
    Clock,
}

/// Optional keys, zero in a file without them: numbers of the workload that was measured on the
/// real machine, for the studies that simulate it; prices of system calls that only one study
/// makes; and how lines pass between CPUs, which is known only of hosts that were measured.
const OPTIONAL: &[(&str, Kind)] = &[
    ("workload.hz", Kind::Positive),
    ("workload.reads_per_tick", Kind::Count),
    ("workload.jobs_per_cpu_minute", Kind::Positive),
    ("workload.timers_per_tick", Kind::Count),
    ("workload.pipe_ns", Kind::Amount),
    ("workload.expiry_ns", Kind::Positive),
    ("workload.tick_skew_ns", Kind::Amount),
    ("workload.next_timer_ms", Kind::Positive),
    ("workload.watchdog_ms", Kind::Positive),
    ("workload.timer_work_ns", Kind::Amount),
    ("workload.work_s", Kind::Positive),
    ("line.request_share", Kind::Amount),
    ("line.migrates", Kind::Amount),
    ("line.overlap_ns", Kind::Amount),
    ("cpu.window_ns", Kind::Amount),
    ("os.futex_ns", Kind::Amount),
    ("os.membarrier_ns", Kind::Amount),
    ("os.membarrier_cpu_ns", Kind::Amount),
];

const THREADS_MAX: f64 = 64.0;

impl Spec {
    pub fn costs(&self) -> Costs {
        costs(&mut |key, _| self.value(key), self.idle_names())
    }

    /// Returns a required parameter that the machine lacks.
    pub(crate) fn missing_key(&self) -> Option<String> {
        let mut missing = None;
        let mut check = |key: &str, _| {
            if self.parameter(key).is_none() && !is_optional(key) {
                missing.get_or_insert(key.to_string());
            }
            self.value(key)
        };
        costs(&mut check, self.idle_names());
        missing
    }
}

fn is_optional(key: &str) -> bool {
    OPTIONAL.iter().any(|(known, _)| *known == key)
}

/// Returns which kind of value a parameter must have; `None` if there is no such parameter. Each
/// number that `costs` reads here is the maximum, to make it ask for all keys `smt.rate_N`, too.
pub(crate) fn kind(key: &str) -> Option<Kind> {
    if let Some((_, kind)) = OPTIONAL.iter().find(|(known, _)| *known == key) {
        return Some(*kind);
    }
    let mut found = None;
    let mut compare = |known: &str, kind| {
        if known == key {
            found = Some(kind);
        }
        THREADS_MAX
    };
    costs(&mut compare, idle_name(key).into_iter().collect());
    found
}

pub(crate) fn idle_name(key: &str) -> Option<&str> {
    Some(key.strip_prefix("idle.")?.split_once('.')?.0)
}

/// Builds prices from the numbers that `read` returns. Calls `read` for every key, so a caller can
/// also pass a `read` that lists or checks the keys.
fn costs(read: &mut dyn FnMut(&str, Kind) -> f64, idle_names: Vec<&str>) -> Costs {
    let mut file = Numbers(read);
    let topology = Topology {
        sockets: file.count("topology.sockets"),
        cores_per_socket: file.count("topology.cores_per_socket"),
        threads_per_core: file.count("topology.threads_per_core"),
        sockets_per_group: file.count("topology.sockets_per_group"),
    };
    let several = 2..=topology.threads_per_core;
    let smt_rates = several.map(|busy| file.positive(&format!("smt.rate_{busy}")));
    let smt_rates = std::iter::once(1.0).chain(smt_rates).collect();
    let mut idle_states: Vec<IdleState> =
        idle_names.into_iter().map(|name| file.idle_state(name)).collect();
    idle_states.sort_by_key(|state| state.exit);
    Costs {
        topology,
        smt_rates,
        idle_states,
        ghz: (file.0)("cpu.ghz", Kind::Clock),
        pause: file.duration("cpu.pause_ns"),
        tsc: file.time("cpu.tsc_ns"),
        section: file.time("cpu.section_ns"),
        section_lines: file.count("cpu.section_lines"),
        power: PowerCosts::read(&mut file),
        line: LineCosts::read(&mut file),
        counter: CounterCosts::read(&mut file),
        program: file.time("event.program_ns"),
        irq: IrqCosts::read(&mut file),
        os: OsCosts::read(&mut file),
    }
}

pub(crate) struct Numbers<'a>(&'a mut dyn FnMut(&str, Kind) -> f64);

impl Numbers<'_> {
    fn count(&mut self, key: &str) -> u16 {
        (self.0)(key, Kind::Count) as u16
    }

    pub(crate) fn positive(&mut self, key: &str) -> f64 {
        (self.0)(key, Kind::Positive)
    }

    pub(crate) fn amount(&mut self, key: &str) -> f64 {
        (self.0)(key, Kind::Amount)
    }

    pub(crate) fn flag(&mut self, key: &str) -> bool {
        self.amount(key) > 0.0
    }

    /// A time that may be zero.
    pub(crate) fn time(&mut self, key: &str) -> Ps {
        Ps::from_ns_f64(self.amount(key))
    }

    /// A time that is greater than zero.
    pub(crate) fn duration(&mut self, key: &str) -> Ps {
        Ps::from_ns_f64(self.positive(key))
    }

    fn idle_state(&mut self, name: &str) -> IdleState {
        let mut part = |part| self.amount(&format!("idle.{name}.{part}"));
        IdleState {
            exit: Ps::from_ns_f64(1e3 * part("exit_us")),
            residency: Ps::from_ns_f64(1e3 * part("residency_us")),
            watts: part("watts"),
        }
    }
}
