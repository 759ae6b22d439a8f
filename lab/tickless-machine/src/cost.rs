//! The prices of a simulated machine: how long each of its operations takes, in picoseconds. They
//! are read from the TOML file that describes the machine.
//!
//! The keys of that file, with the numbers that each may have, are declared here and nowhere else:
//! `prices!` has those that every file needs, and `OPTIONAL` the others.

use crate::ps::Ps;
use crate::topology::{Distance, Topology};

#[derive(Clone, Debug)]
pub struct Costs {
    pub topology: Topology,
    pub ghz: f64,
    pub line: LineCosts,
    /// The duration of one round of a waiting loop, such as the x86 instruction `PAUSE`.
    pub pause: Ps,
    pub tsc: Ps,
    pub counter: CounterCosts,
    /// The computation in a critical section of the timer code, without its accesses to shared
    /// lines: the time for searching and changing the lists and trees of timers.
    pub section: Ps,
    /// The number of cache lines of guarded data that a critical section of the timer code accesses
    /// one after the other: the queue's root, the device's state, the timer's neighbours.
    pub section_lines: u16,
    pub program: Ps,
    pub irq: IrqCosts,
    /// The total speed of a core with one busy SMT thread, with two, and so on, relative to a core
    /// with a single busy thread.
    pub smt_rates: Vec<f64>,
    /// The idle states, shallowest first. Without any, idle CPUs poll, and wake without delay.
    pub idle_states: Vec<IdleState>,
    pub power: PowerCosts,
    pub os: OsCosts,
}

/// Which numbers a key may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Count,
    Positive,
    Amount,
    /// A part of a whole, which may be zero.
    Part,
    Share,
    Clock,
}

/// A number of a machine's file, in the unit of its key, as the price that it stands for.
trait Price {
    fn of(number: f64) -> Self;
}

impl Price for Ps {
    fn of(ns: f64) -> Ps {
        Ps::from_ns_f64(ns)
    }
}

impl Price for f64 {
    fn of(number: f64) -> f64 {
        number
    }
}

impl Price for u16 {
    fn of(count: f64) -> u16 {
        count as u16
    }
}

impl Price for bool {
    fn of(number: f64) -> bool {
        number > 0.0
    }
}

/// Declares structs of prices. Behind each price are the kind of its number and its key in the
/// machine's file.
macro_rules! prices {
    ($($(#[$doc:meta])* $name:ident { $(
        $(#[$price_doc:meta])*
        $price:ident: $type:ty = $kind:ident $key:literal,
    )* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Debug)]
            pub struct $name { $($(#[$price_doc])* pub $price: $type,)* }

            impl $name {
                fn read(value: &dyn Fn(&str) -> f64) -> $name {
                    $name { $($price: Price::of(value($key)),)* }
                }
            }
        )*

        const KEYS: &[(&str, Kind)] = &[$($(($key, Kind::$kind),)*)*];
    };
}

prices! {
    /// What [`Costs`] contains one by one.
    Basics {
        sockets: u16 = Count "topology.sockets",
        cores_per_socket: u16 = Count "topology.cores_per_socket",
        threads_per_core: u16 = Count "topology.threads_per_core",
        sockets_per_group: u16 = Count "topology.sockets_per_group",
        ghz: f64 = Clock "cpu.ghz",
        pause: Ps = Positive "cpu.pause_ns",
        tsc: Ps = Amount "cpu.tsc_ns",
        section: Ps = Amount "cpu.section_ns",
        section_lines: u16 = Count "cpu.section_lines",
        program: Ps = Amount "event.program_ns",
    }

    LineCosts {
        hit: Ps = Positive "line.hit_ns",
        /// The delay of the instruction after a store. The store itself can take longer: it waits
        /// in the store buffer.
        store: Ps = Positive "line.store_ns",
        atomic: Ps = Amount "line.atomic_ns",
        /// The duration of an atomic operation on a line that another core of the socket has
        /// written. The shares below are fractions of this duration, and of `near` and `far`. A
        /// failed operation takes as long as a successful one.
        node: Ps = Positive "line.node_ns",
        /// The duration of an atomic operation on a line that a socket one hop away wrote.
        near: Ps = Positive "line.near_ns",
        /// The duration of an atomic operation on a line that a socket further away wrote.
        far: Ps = Positive "line.far_ns",
        /// The time of a load of a line that another core wrote, as a share of an atomic operation.
        load_share: f64 = Share "line.load_share",
        /// The duration of a load of a clean line (no core has written it since its last transfer)
        /// from a cache of the same socket, as a share of an atomic operation's duration.
        clean_node_share: f64 = Share "line.clean_node_share",
        /// The duration of a load of a clean line from another socket, as a share of an atomic
        /// operation's duration.
        clean_far_share: f64 = Share "line.clean_far_share",
        /// The duration of a store to a line that other cores share or another core has written, as
        /// a share of an atomic operation's duration.
        store_share: f64 = Share "line.store_share",
        /// The fraction of a transfer's duration in which the request reaches the line's directory,
        /// where requests queue. A request that has waited there does not take this time again.
        request_share: f64 = Part "line.request_share",
        /// If true, a load takes a line away from the core that has written it, and a store after
        /// the load needs no further transfer. If false, both cores share the line after the load.
        /// (Cox and Fowler, "Adaptive cache coherency for detecting migratory shared data", ISCA
        /// 1993.)
        migrates: bool = Amount "line.migrates",
        /// The delay between a core's requests for two lines, if the second address does not depend
        /// on the first line's content. Zero if a core waits for each line before it requests the
        /// next.
        overlap: Ps = Amount "line.overlap_ns",
        /// How much of the later instructions a core executes while an earlier one waits for a
        /// cache line, as the duration of their computation.
        window: Ps = Amount "cpu.window_ns",
        memory: Ps = Positive "line.memory_ns",
        /// The time for which one reader occupies a socket's cache, so that the next reader waits.
        port: Ps = Amount "line.port_ns",
        /// The time for which one reader occupies a line's directory, so the next reader waits.
        directory: Ps = Amount "line.directory_ns",
        /// After a core has received a line to write it, the line stays with that core for at least
        /// this time, while requests of other cores wait.
        hold: Ps = Amount "line.hold_ns",
    }

    PowerCosts {
        /// The power that does not depend on the core's load.
        fixed: f64 = Amount "power.fixed_watts",
        /// The additional power of a core while all its threads are busy. With fewer busy threads,
        /// the addition is in proportion to their combined speed.
        busy: f64 = Amount "power.busy_watts",
    }

    CounterCosts {
        /// The time in which a read travels from the CPU to the counter's device and back.
        latency: Ps = Amount "counter.latency_ns",
        /// The time for which one read occupies the counter's device, so that the next read waits.
        service: Ps = Amount "counter.service_ns",
    }

    IrqCosts {
        entry: Ps = Amount "irq.entry_ns",
        exit: Ps = Amount "irq.exit_ns",
        send: Ps = Amount "irq.send_ns",
        /// The time for which an interrupt travels between CPUs of one socket.
        near: Ps = Amount "irq.near_ns",
        /// The time for which an interrupt travels between CPUs of different sockets.
        far: Ps = Amount "irq.far_ns",
    }

    /// The durations of the little simulated kernel's operations, without their accesses to shared
    /// cache lines: each access is simulated, and takes its own time.
    OsCosts {
        syscall: Ps = Amount "os.syscall_ns",
        switch: Ps = Amount "os.switch_ns",
        wake: Ps = Amount "os.wake_ns",
        idle: Ps = Amount "os.idle_ns",
        /// The duration of the handling of a tick, without the timers that expire in it.
        tick: Ps = Amount "os.tick_ns",
        /// How much longer a tick takes on the one CPU that updates the kernel's time for all CPUs.
        timekeeping: Ps = Amount "os.timekeeping_ns",
    }
}

impl LineCosts {
    #[inline]
    pub fn hop(&self, distance: Distance) -> Ps {
        match distance {
            Distance::Core => self.hit,
            Distance::Socket => self.node,
            Distance::Near => self.near,
            Distance::Far => self.far,
        }
    }

    /// The rest of a line's transfer, after its request has already waited for the time `waited`.
    #[inline]
    pub fn rest_of_transfer(&self, transfer: Ps, waited: Ps) -> Ps {
        transfer - transfer.scaled(self.request_share).min(waited)
    }

    /// The duration of the fastest access to another core's line. An action that another core
    /// begins now cannot affect this core before that time has passed.
    pub fn nearest(&self) -> Ps {
        let loads = self.load_share.min(self.clean_node_share).min(self.clean_far_share);
        let least = loads.min(self.store_share).min(1.0);
        self.node.min(self.near).min(self.far).scaled(least)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct IdleState {
    pub exit: Ps,
    /// The shortest sleep for which entering this state saves energy.
    pub residency: Ps,
    pub watts: f64,
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
    ("line.request_share", Kind::Part),
    ("line.migrates", Kind::Amount),
    ("line.overlap_ns", Kind::Amount),
    ("cpu.window_ns", Kind::Amount),
];

/// The numbers of each idle state, `idle.NAME.` before each.
const IDLE: [&str; 3] = ["exit_us", "residency_us", "watts"];

const THREADS_MAX: u16 = 64;

/// Returns which kind of number a key must have; `None` if there is no such key.
pub(crate) fn kind(key: &str) -> Option<Kind> {
    let rate = key.strip_prefix("smt.rate_").and_then(|busy| busy.parse().ok());
    if rate.is_some_and(|busy| (2..=THREADS_MAX).contains(&busy)) {
        return Some(Kind::Positive);
    }
    let idle = idle_name(key).map(|name| &key["idle.".len() + name.len() + 1..]);
    if idle.is_some_and(|part| IDLE.contains(&part)) {
        return Some(Kind::Amount);
    }
    let of_key = |(known, kind): &(&str, Kind)| (*known == key).then_some(*kind);
    OPTIONAL.iter().chain(KEYS).find_map(of_key)
}

/// Returns the idle state that a key belongs to.
pub(crate) fn idle_name(key: &str) -> Option<&str> {
    Some(key.strip_prefix("idle.")?.split_once('.')?.0)
}

/// Returns the keys that a file needs, if it has cores of so many threads and these idle states.
pub(crate) fn required(threads: u16, idle_names: &[&str]) -> Vec<String> {
    let is_optional = |key: &str| OPTIONAL.iter().any(|(known, _)| *known == key);
    let fixed = KEYS.iter().filter(|(key, _)| !is_optional(key)).map(|(key, _)| key.to_string());
    let rates = (2..=threads).map(|busy| format!("smt.rate_{busy}"));
    let idle = idle_names.iter().flat_map(|name| IDLE.map(|part| format!("idle.{name}.{part}")));
    fixed.chain(rates).chain(idle).collect()
}

impl Costs {
    /// Makes the prices from the numbers of a machine's file, which `value` returns.
    pub(crate) fn read(value: &dyn Fn(&str) -> f64, idle_names: &[&str]) -> Costs {
        let basics = Basics::read(value);
        let several = 2..=basics.threads_per_core;
        let smt_rates = several.map(|busy| value(&format!("smt.rate_{busy}")));
        let idle_state = |name: &&str| {
            let [exit, residency, watts] = IDLE.map(|part| value(&format!("idle.{name}.{part}")));
            let time = |us: f64| Ps::from_ns_f64(1e3 * us);
            IdleState { exit: time(exit), residency: time(residency), watts }
        };
        let mut idle_states: Vec<IdleState> = idle_names.iter().map(idle_state).collect();
        idle_states.sort_by_key(|state| state.exit);
        Costs {
            topology: Topology {
                sockets: basics.sockets,
                cores_per_socket: basics.cores_per_socket,
                threads_per_core: basics.threads_per_core,
                sockets_per_group: basics.sockets_per_group,
            },
            smt_rates: std::iter::once(1.0).chain(smt_rates).collect(),
            idle_states,
            ghz: basics.ghz,
            pause: basics.pause,
            tsc: basics.tsc,
            section: basics.section,
            section_lines: basics.section_lines,
            program: basics.program,
            power: PowerCosts::read(value),
            line: LineCosts::read(value),
            counter: CounterCosts::read(value),
            irq: IrqCosts::read(value),
            os: OsCosts::read(value),
        }
    }
}
