//! What things cost on a machine: the numbers of its file, ready for use.
//!
//! Nothing here is a default: a machine's file names every one of them, with its source
//! ([`spec`](crate::spec)).

use crate::ps::Ps;
use crate::topology::{Distance, Topology};

/// The prices of one machine.
#[derive(Clone, Debug)]
pub struct Costs {
    /// What it consists of.
    pub topology: Topology,
    /// Cycles per nanosecond.
    pub ghz: f64,
    /// Cache lines.
    pub line: LineCosts,
    /// One turn of a waiting loop.
    pub pause: Ps,
    /// Reading the CPU's own cycle counter.
    pub tsc: Ps,
    /// The shared counter that is read over MMIO.
    pub counter: CounterCosts,
    /// Private work in a critical section: what a base's lists and trees cost in themselves.
    pub section: Ps,
    /// Programming a CPU's own event device.
    pub program: Ps,
    /// Interrupts.
    pub irq: IrqCosts,
    /// How fast a core with so many busy threads is, in units of one thread that runs alone;
    /// `rates[0]` is for one busy thread.
    pub smt_rates: Vec<f64>,
    /// What an idle CPU can do, shallow to deep. May be empty: then it polls.
    pub idle_states: Vec<IdleState>,
    /// What the little kernel's own steps cost.
    pub os: OsCosts,
}

/// Accesses to cache lines.
#[derive(Clone, Copy, Debug)]
pub struct LineCosts {
    /// A line that the core has.
    pub hit: Ps,
    /// A store, until the next instruction.
    pub store: Ps,
    /// What an atomic operation costs on top.
    pub atomic: Ps,
    /// From a cache in the same socket.
    pub node: Ps,
    /// From a socket one hop away.
    pub near: Ps,
    /// From a socket behind a node controller.
    pub far: Ps,
    /// What it costs on top to take a line from a core that has written it.
    pub dirty: Ps,
    /// From memory.
    pub memory: Ps,
    /// How long a socket's cache is busy with one reader.
    pub port: Ps,
    /// How long a line's directory is busy with one reader.
    pub directory: Ps,
    /// How long a core keeps a line that it has just got.
    pub hold: Ps,
}

impl LineCosts {
    /// One transfer over this distance.
    #[inline]
    pub fn hop(&self, distance: Distance) -> Ps {
        match distance {
            Distance::Core => self.hit,
            Distance::Socket => self.node,
            Distance::Near => self.near,
            Distance::Far => self.far,
        }
    }

    /// No access by another core has an effect sooner than this.
    pub fn nearest(&self) -> Ps {
        self.node.min(self.near).min(self.far)
    }
}

/// A counter that is read over MMIO.
#[derive(Clone, Copy, Debug)]
pub struct CounterCosts {
    /// From the CPU to the device and back.
    pub latency: Ps,
    /// How long the device is busy with one read.
    pub service: Ps,
}

/// Interrupts.
#[derive(Clone, Copy, Debug)]
pub struct IrqCosts {
    /// From the event to the handler's first line.
    pub entry: Ps,
    /// From the handler's last line back to the program.
    pub exit: Ps,
    /// What sending one costs the sender.
    pub send: Ps,
    /// How long one is under way in a socket.
    pub near: Ps,
    /// And between sockets.
    pub far: Ps,
}

/// Something an idle CPU can do.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// How long it takes to come back.
    pub exit: Ps,
    /// It pays from this length of sleep on.
    pub residency: Ps,
    /// Watts of the CPU while in it.
    pub watts: f64,
}

/// What the little kernel's steps cost, beside what its accesses cost.
#[derive(Clone, Copy, Debug)]
pub struct OsCosts {
    /// Into the kernel and back.
    pub syscall: Ps,
    /// From one task to another.
    pub switch: Ps,
    /// To make a task runnable.
    pub wake: Ps,
    /// Going idle, and coming back, without what the tick costs.
    pub idle: Ps,
    /// What a tick does beside timers.
    pub tick: Ps,
    /// Watts of a CPU that runs.
    pub watts: f64,
}
