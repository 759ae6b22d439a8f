//! The prices of a simulated machine: how long each of its operations takes, in picoseconds. They
//! are read from the TOML file that describes the machine.

use crate::ps::Ps;
use crate::topology::{Distance, Topology};

#[derive(Clone, Debug)]
pub struct Costs {
    pub topology: Topology,
    pub ghz: f64,
    pub line: LineCosts,
    /// One round of a waiting loop, such as the x86 instruction `PAUSE`.
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

#[derive(Clone, Copy, Debug)]
pub struct LineCosts {
    pub hit: Ps,
    /// The delay of the instruction after a store. The store itself may take longer: it waits in
    /// the store buffer.
    pub store: Ps,
    pub atomic: Ps,
    /// The duration of an atomic operation on a line that another core of the socket has written.
    pub node: Ps,
    /// The duration of an atomic operation on a line that a core of a socket one hop away wrote.
    pub near: Ps,
    /// The duration of an atomic operation on a line written by a core behind a node controller.
    pub far: Ps,
    pub shares: Shares,
    /// The fraction of a transfer's duration in which the request reaches the line's directory,
    /// where requests queue. A request that has waited there does not take this time again.
    pub request_share: f64,
    /// If true, a load takes a line away from the core that has written it, and a store after the
    /// load needs no further transfer. If false, both cores share the line after the load. (Cox and
    /// Fowler, "Adaptive cache coherency for detecting migratory shared data", ISCA 1993.)
    pub migrates: bool,
    /// The delay between a core's requests for two lines, if the second address does not depend on
    /// the first line's content. `None` if a core waits for each line before it requests the next.
    pub overlap: Option<Ps>,
    /// How much of the later instructions a core executes while an earlier one waits for a cache
    /// line, as the duration of their computation.
    pub window: Ps,
    pub memory: Ps,
    /// The time for which one reader occupies a socket's cache, so that the next reader waits.
    pub port: Ps,
    /// The time for which one reader occupies a line's directory, so that the next reader waits.
    pub directory: Ps,
    /// After a core has received a line to write it, the line stays with that core for at least
    /// this time, while requests of other cores wait.
    pub hold: Ps,
}

/// The durations of operations on lines that another core has, as fractions of the duration of an
/// atomic operation on a line that another core has written. A failed operation takes as long as a
/// successful one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shares {
    /// The fraction of an atomic operation that a load takes, of a line that another core wrote.
    pub load: f64,
    /// The fraction of an atomic operation that a load takes, of a clean line (no core has written
    /// it since its last transfer) from a cache of the same socket.
    pub clean_node: f64,
    /// The fraction of an atomic operation that a load takes, of a clean line from another socket.
    pub clean_far: f64,
    /// The fraction of an atomic operation that a store takes, to a line that other cores share or
    /// that another core has written.
    pub store: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerCosts {
    /// Independent of its load.
    pub fixed: f64,
    /// The additional power of a core while all its threads are busy. With fewer busy threads, the
    /// addition is in proportion to their combined speed.
    pub busy: f64,
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
        let Shares { load, clean_node, clean_far, store } = self.shares;
        let least = load.min(clean_node).min(clean_far).min(store).min(1.0);
        self.node.min(self.near).min(self.far).scaled(least)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CounterCosts {
    /// The time in which a read travels from the CPU to the counter's device and back.
    pub latency: Ps,
    /// The time for which one read occupies the counter's device, so that the next read waits.
    pub service: Ps,
}

#[derive(Clone, Copy, Debug)]
pub struct IrqCosts {
    pub entry: Ps,
    pub exit: Ps,
    pub send: Ps,
    /// The time for which an interrupt travels between CPUs of one socket.
    pub near: Ps,
    /// The time for which an interrupt travels between CPUs of different sockets.
    pub far: Ps,
}

#[derive(Clone, PartialEq, Debug)]
pub struct IdleState {
    pub exit: Ps,
    /// The shortest sleep for which entering this state saves energy.
    pub residency: Ps,
    pub watts: f64,
}

/// The durations of the little simulated kernel's operations, without their accesses to shared
/// cache lines: each access is simulated, and takes its own time.
#[derive(Clone, Copy, Debug)]
pub struct OsCosts {
    pub syscall: Ps,
    pub switch: Ps,
    pub wake: Ps,
    pub idle: Ps,
    /// The duration of the handling of a tick, without the timers that expire in it.
    pub tick: Ps,
    /// How much longer a tick takes on the one CPU that updates the kernel's time for all CPUs.
    pub timekeeping: Ps,
}
