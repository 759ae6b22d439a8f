//! The prices of a machine: the numbers in its file, in the simulation's units.
//!
//! None has a default: a machine's file has each of them with its source ([`spec`](crate::spec)).

use crate::ps::Ps;
use crate::topology::{Distance, Topology};

/// The prices of one machine.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The machine's parts.
    pub topology: Topology,
    /// Cycles per nanosecond.
    pub ghz: f64,
    /// Cache lines.
    pub line: LineCosts,
    /// One round of a waiting loop.
    pub pause: Ps,
    /// Reading the CPU's own cycle counter.
    pub tsc: Ps,
    /// The shared counter that is read over MMIO.
    pub counter: CounterCosts,
    /// Private work in a critical section: the time that a base's lists and trees take.
    pub section: Ps,
    /// Lines of the guarded data that a critical section accesses one after the other: the queue's
    /// root, the device's state, the timer's neighbours.
    pub section_lines: u16,
    /// Programming a CPU's own event device.
    pub program: Ps,
    /// Interrupts.
    pub irq: IrqCosts,
    /// The speed of a core by the number of its busy threads, from one, relative to one thread
    /// that runs alone.
    pub smt_rates: Vec<f64>,
    /// The idle states from shallow to deep. Without any, idle CPUs poll.
    pub idle_states: Vec<IdleState>,
    /// The power of a core.
    pub power: PowerCosts,
    /// The steps of the little kernel.
    pub os: OsCosts,
}

/// Accesses to cache lines.
#[derive(Clone, Copy, Debug)]
pub struct LineCosts {
    /// An access to a line that the core has.
    pub hit: Ps,
    /// A store, as far as it delays the next instruction.
    pub store: Ps,
    /// What an atomic operation takes in addition.
    pub atomic: Ps,
    /// An atomic operation on a line that a core of the same socket has written.
    pub node: Ps,
    /// Such an operation from a socket one hop away.
    pub near: Ps,
    /// Such an operation from a socket behind a node controller.
    pub far: Ps,
    /// What other operations take, as shares of these.
    pub shares: Shares,
    /// A fetch from memory.
    pub memory: Ps,
    /// The time for which one reader occupies a socket's cache.
    pub port: Ps,
    /// The time for which one reader occupies a line's directory.
    pub directory: Ps,
    /// The time for which a core keeps a line that it has received.
    pub hold: Ps,
}

/// The times of operations on lines of other cores, as shares of an atomic operation on a line that
/// another core has written. A failed operation takes as long as a successful one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shares {
    /// A load of a line that another core has written.
    pub load: f64,
    /// A load of a line that no core has written since it was last shared, within the socket.
    pub clean_node: f64,
    /// A load of such a line from another socket.
    pub clean_far: f64,
    /// A store, whether the line is shared or written.
    pub store: f64,
}

/// The power of a core, in watts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerCosts {
    /// Independent of its load.
    pub fixed: f64,
    /// In addition, with all its threads busy; with fewer, in proportion to their combined speed.
    pub busy: f64,
}

impl LineCosts {
    /// The time of a transfer over this distance.
    #[inline]
    pub fn hop(&self, distance: Distance) -> Ps {
        match distance {
            Distance::Core => self.hit,
            Distance::Socket => self.node,
            Distance::Near => self.near,
            Distance::Far => self.far,
        }
    }

    /// The least time after which an access by another core can have an effect.
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
    /// The time for which one read occupies the device.
    pub service: Ps,
}

/// Interrupts.
#[derive(Clone, Copy, Debug)]
pub struct IrqCosts {
    /// From the event to the handler's first line.
    pub entry: Ps,
    /// From the handler's last line back to the program.
    pub exit: Ps,
    /// The sender's cost.
    pub send: Ps,
    /// From CPU to CPU within a socket.
    pub near: Ps,
    /// From socket to socket.
    pub far: Ps,
}

/// An idle state.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleState {
    /// The state's name.
    pub name: String,
    /// The exit latency.
    pub exit: Ps,
    /// The shortest sleep for which the state pays.
    pub residency: Ps,
    /// The CPU's power in this state.
    pub watts: f64,
}

/// The steps of the little kernel, without the accesses in them.
#[derive(Clone, Copy, Debug)]
pub struct OsCosts {
    /// Entering and leaving the kernel.
    pub syscall: Ps,
    /// Switching tasks.
    pub switch: Ps,
    /// Making a task runnable.
    pub wake: Ps,
    /// Entering idle, and leaving it, without the tick.
    pub idle: Ps,
    /// A tick, without timers.
    pub tick: Ps,
    /// What the tick of the timekeeping CPU takes in addition.
    pub timekeeping: Ps,
}
