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
    /// Lines of what a lock guards that a critical section goes through one after the other: the
    /// queue's root, the device's state, the timer's neighbours.
    pub section_lines: u16,
    /// Programming a CPU's own event device.
    pub program: Ps,
    /// Interrupts.
    pub irq: IrqCosts,
    /// How fast a core with so many busy threads is, in units of one thread that runs alone;
    /// `rates[0]` is for one busy thread.
    pub smt_rates: Vec<f64>,
    /// What an idle CPU can do, shallow to deep. May be empty: then it polls.
    pub idle_states: Vec<IdleState>,
    /// What a core draws.
    pub power: PowerCosts,
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
    /// From a core of the same socket that has written it, by an atomic operation.
    pub node: Ps,
    /// From a socket one hop away.
    pub near: Ps,
    /// From a socket behind a node controller.
    pub far: Ps,
    /// What other operations take, as shares of that.
    pub shares: Shares,
    /// From memory.
    pub memory: Ps,
    /// How long a socket's cache is busy with one reader.
    pub port: Ps,
    /// How long a line's directory is busy with one reader.
    pub directory: Ps,
    /// How long a core keeps a line that it has just got.
    pub hold: Ps,
}

/// What operations on lines of other cores take, as shares of an atomic operation on a line that
/// another core has written. One that fails takes as much as one that succeeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shares {
    /// A load of a line that another core has written.
    pub load: f64,
    /// A load of a line that nobody has written since it was last shared, in the own socket.
    pub clean_node: f64,
    /// The same from another socket.
    pub clean_far: f64,
    /// A store, whether the line is shared or written.
    pub store: f64,
}

/// What a core draws, in watts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerCosts {
    /// Whatever it does.
    pub fixed: f64,
    /// On top with all its threads busy; with fewer, in proportion to what they get done.
    pub busy: f64,
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
        let Shares { load, clean_node, clean_far, store } = self.shares;
        let least = load.min(clean_node).min(clean_far).min(store).min(1.0);
        self.node.min(self.near).min(self.far).scaled(least)
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
    /// What the tick of the CPU that keeps the time does on top.
    pub timekeeping: Ps,
}
