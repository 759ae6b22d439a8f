//! The prices of a simulated machine: how long each of its operations takes, in picoseconds. They
//! are read from the TOML file that describes the machine.

use crate::prices::Numbers;
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

/// Declares structs of prices. Behind each price are the method that reads it and its key in the
/// machine's file.
macro_rules! prices {
    ($($(#[$doc:meta])* $name:ident { $(
        $(#[$price_doc:meta])*
        $price:ident: $type:ty = $read:ident $key:literal,
    )* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name { $($(#[$price_doc])* pub $price: $type,)* }

        impl $name {
            pub(crate) fn read(file: &mut Numbers<'_>) -> $name {
                $name { $($price: file.$read($key),)* }
            }
        }
    )*};
}

prices! {
    LineCosts {
        hit: Ps = duration "line.hit_ns",
        /// The delay of the instruction after a store. The store itself can take longer: it waits
        /// in the store buffer.
        store: Ps = duration "line.store_ns",
        atomic: Ps = time "line.atomic_ns",
        /// The duration of an atomic operation on a line that another core of the socket has
        /// written. The shares below are fractions of this duration, and of `near` and `far`. A
        /// failed operation takes as long as a successful one.
        node: Ps = duration "line.node_ns",
        /// The duration of an atomic operation on a line that a socket one hop away wrote.
        near: Ps = duration "line.near_ns",
        /// The duration of an atomic operation on a line that a socket further away wrote.
        far: Ps = duration "line.far_ns",
        /// The time of a load of a line that another core wrote, as a share of an atomic operation.
        load_share: f64 = positive "line.load_share",
        /// The duration of a load of a clean line (no core has written it since its last transfer)
        /// from a cache of the same socket, as a share of an atomic operation's duration.
        clean_node_share: f64 = positive "line.clean_node_share",
        /// The duration of a load of a clean line from another socket, as a share of an atomic
        /// operation's duration.
        clean_far_share: f64 = positive "line.clean_far_share",
        /// The duration of a store to a line that other cores share or another core has written, as
        /// a share of an atomic operation's duration.
        store_share: f64 = positive "line.store_share",
        /// The fraction of a transfer's duration in which the request reaches the line's directory,
        /// where requests queue. A request that has waited there does not take this time again.
        request_share: f64 = amount "line.request_share",
        /// If true, a load takes a line away from the core that has written it, and a store after
        /// the load needs no further transfer. If false, both cores share the line after the load.
        /// (Cox and Fowler, "Adaptive cache coherency for detecting migratory shared data", ISCA
        /// 1993.)
        migrates: bool = flag "line.migrates",
        /// The delay between a core's requests for two lines, if the second address does not depend
        /// on the first line's content. Zero if a core waits for each line before it requests the
        /// next.
        overlap: Ps = time "line.overlap_ns",
        /// How much of the later instructions a core executes while an earlier one waits for a
        /// cache line, as the duration of their computation.
        window: Ps = time "cpu.window_ns",
        memory: Ps = duration "line.memory_ns",
        /// The time for which one reader occupies a socket's cache, so that the next reader waits.
        port: Ps = time "line.port_ns",
        /// The time for which one reader occupies a line's directory, so the next reader waits.
        directory: Ps = time "line.directory_ns",
        /// After a core has received a line to write it, the line stays with that core for at least
        /// this time, while requests of other cores wait.
        hold: Ps = time "line.hold_ns",
    }

    PowerCosts {
        /// The power that does not depend on the core's load.
        fixed: f64 = amount "power.fixed_watts",
        /// The additional power of a core while all its threads are busy. With fewer busy threads,
        /// the addition is in proportion to their combined speed.
        busy: f64 = amount "power.busy_watts",
    }

    CounterCosts {
        /// The time in which a read travels from the CPU to the counter's device and back.
        latency: Ps = time "counter.latency_ns",
        /// The time for which one read occupies the counter's device, so that the next read waits.
        service: Ps = time "counter.service_ns",
    }

    IrqCosts {
        entry: Ps = time "irq.entry_ns",
        exit: Ps = time "irq.exit_ns",
        send: Ps = time "irq.send_ns",
        /// The time for which an interrupt travels between CPUs of one socket.
        near: Ps = time "irq.near_ns",
        /// The time for which an interrupt travels between CPUs of different sockets.
        far: Ps = time "irq.far_ns",
    }

    /// The durations of the little simulated kernel's operations, without their accesses to shared
    /// cache lines: each access is simulated, and takes its own time.
    OsCosts {
        syscall: Ps = time "os.syscall_ns",
        switch: Ps = time "os.switch_ns",
        wake: Ps = time "os.wake_ns",
        idle: Ps = time "os.idle_ns",
        /// The duration of the handling of a tick, without the timers that expire in it.
        tick: Ps = time "os.tick_ns",
        /// How much longer a tick takes on the one CPU that updates the kernel's time for all CPUs.
        timekeeping: Ps = time "os.timekeeping_ns",
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
