//! Cache lines: which cores have copies, and how long it takes to get one.
//!
//! The model has two levels. Within a socket, readers queue at the socket's own cache, for a few
//! nanoseconds each. Between sockets, requests queue at the line's directory, which knows the
//! caches that have copies. A *fill* is the transfer of a line to a socket; it serves every core
//! there that requests the line before it arrives. With a single queue for all cores, the model
//! would make 480 readers of one line wait 10 to 30 times too long: on a real machine, the 30
//! readers of a socket share one fill.
//!
//! | access | starts | takes |
//! |---|---|---|
//! | the core has a copy | at once | a hit |
//! | read, a copy in the socket | the socket's cache is free and filled | a transfer within it |
//! | read, no copy in the socket | the directory is free, the owner's hold has ended | a hop |
//! | store or atomic | as in the row above | a hop from the farthest copy; later requests wait |
//!
//! A *hop* in this table is the duration of an atomic operation on a line that another core has
//! written. A load or a store takes a fraction of it, which depends on whether the line is clean or
//! another core has written it. A line that a core has written is passed on to one request at a
//! time; further requests queue at the line's directory. (David, Guerraoui, Trigonakis, "Everything
//! you always wanted to know about synchronization", SOSP 2013.) A request that has waited there
//! needs only the rest of a transfer ([`LineCosts::request_share`]). On some machines a read takes
//! a line away from the core that has written it, as a write does ([`LineCosts::migrates`]).
//!
//! When a line is passed to another core, its previous owner can still use it for half of the
//! transfer, until the request has reached that owner: the core's *lease*. In a model without
//! leases, two threads that add to one counter would be ten times too slow. The file of a machine
//! can make its cores keep lines for longer (`hold`). An atomic operation keeps its line until it
//! ends.

use crate::cost::LineCosts;
use crate::ps::Ps;
use crate::topology::Topology;
use tickless_core::time::CpuId;

pub(crate) type LineId = u32;

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    /// A plain store. The CPU puts it into its store buffer and continues; other CPUs see it later.
    Store,
    /// An atomic read-modify-write. A failed compare-exchange takes as long as a successful one.
    Atomic,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watcher {
    pub cpu: u16,
    /// The number of the wait during which `cpu` watches the line, counted over all its waits. If
    /// the CPU has begun another wait since, a write to the line does not wake it.
    pub wait: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Here,
    Away,
}

/// The copies of a line in the caches of one socket.
#[derive(Clone, Copy, Debug)]
struct Port {
    socket: u16,
    cores: u64,
    /// The time at which the socket's cache can serve the next reader.
    busy: Ps,
    filled: Ps,
}

#[derive(Debug, Default)]
struct CacheLine {
    /// The core that holds the line exclusively and can write it without a request; or [`NONE`].
    owner: u16,
    /// The socket whose memory holds the line: that of the first core that has accessed the line.
    home: u16,
    words: u32,
    version: u32,
    directory: Ps,
    /// The time at which the latest write ends. No other core gets a copy before that time.
    written: Ps,
    /// Whether the owner has written the line since it became the owner.
    is_dirty: bool,
    /// The time at which the owner's request has taken the copies of the other cores away.
    lost: Ps,
    hold: Ps,
    /// The sockets that have copies. A list, because most lines have copies in one socket.
    ports: Vec<Port>,
    watchers: Vec<Watcher>,
}

/// The core and the socket of a CPU. They are stored for each CPU, because the divisions that
/// compute them would take the simulator longer than all other work of a cache hit.
#[derive(Clone, Copy, Debug)]
struct Place {
    core: u16,
    socket: u16,
    bit: u64,
}

/// The right of a core to use a line until a certain time, although the line has already been
/// granted to another core: the new owner's request still has to reach the old one.
#[derive(Clone, Copy, Debug)]
struct Lease {
    line: LineId,
    until: Ps,
}

#[derive(Debug)]
pub(crate) struct Lines {
    costs: LineCosts,
    topology: Topology,
    places: Vec<Place>,
    lines: Vec<CacheLine>,
    free: Vec<LineId>,
    leases: Vec<Lease>,
    /// How often a line went from one core's cache to another's, or another core lost its copy.
    pub(crate) moved: u64,
}

impl Lines {
    pub(crate) fn new(costs: LineCosts, topology: Topology) -> Lines {
        let none = Lease { line: LineId::MAX, until: Ps::ZERO };
        Lines {
            costs,
            topology,
            places: (0..topology.cpus()).map(|cpu| place(topology, CpuId(cpu))).collect(),
            lines: Vec::new(),
            free: Vec::new(),
            leases: vec![none; topology.cores() as usize],
            moved: 0,
        }
    }

    /// Returns a line that no cache has.
    pub(crate) fn allocate(&mut self) -> LineId {
        if let Some(line) = self.free.pop() {
            return line;
        }
        self.lines.push(CacheLine { owner: NONE, home: NONE, ..CacheLine::default() });
        (self.lines.len() - 1) as LineId
    }

    pub(crate) fn join(&mut self, line: LineId) {
        self.lines[line as usize].words += 1;
    }

    /// A word of the line is freed. With the last word, the line is freed.
    pub(crate) fn leave(&mut self, line: LineId) {
        self.lines[line as usize].words -= 1;
        if self.lines[line as usize].words == 0 {
            self.flush(line);
            self.lines[line as usize].home = NONE;
            self.free.push(line);
        }
    }

    pub(crate) fn flush(&mut self, id: LineId) {
        if let Some(line) = self.lines.get_mut(id as usize) {
            line.owner = NONE;
            line.ports.clear();
        }
    }

    pub(crate) fn flush_all(&mut self) {
        for line in 0..self.lines.len() {
            self.flush(line as LineId);
        }
    }

    #[inline]
    pub(crate) fn version(&self, line: LineId) -> u32 {
        self.lines[line as usize].version
    }

    /// Returns when the owner's request has taken the other cores' copies of the line away.
    #[inline]
    pub(crate) fn lost(&self, line: LineId) -> Ps {
        self.lines[line as usize].lost
    }

    pub(crate) fn watch(&mut self, line: LineId, watcher: Watcher) {
        self.lines[line as usize].watchers.push(watcher);
    }

    #[inline]
    pub(crate) fn take_watchers(&mut self, line: LineId, into: &mut Vec<Watcher>) {
        into.append(&mut self.lines[line as usize].watchers);
    }

    /// Returns whether a core can access a line without a transfer.
    #[inline]
    pub(crate) fn find(&self, id: LineId, cpu: CpuId, access: Access, now: Ps) -> Found {
        let place = self.places[cpu.index()];
        let line = &self.lines[id as usize];
        let is_copied = || {
            let port = line.ports.iter().find(|port| port.socket == place.socket);
            port.is_some_and(|port| port.cores & place.bit != 0)
        };
        if line.owner == place.core
            || self.is_leased(id, place.core, now)
            || access == Access::Read && is_copied()
        {
            Found::Here
        } else {
            Found::Away
        }
    }

    /// Performs an access at `now`. The core requested the line at `asked`, perhaps earlier.
    /// Returns when the access ends; a store ends when other CPUs see it.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        id: LineId,
        cpu: CpuId,
        access: Access,
        found: Found,
        now: Ps,
        asked: Ps,
    ) -> Ps {
        let place = self.places[cpu.index()];
        if access != Access::Read {
            let line = &mut self.lines[id as usize];
            line.version = line.version.wrapping_add(1);
            line.is_dirty = true;
        }
        match (access, found) {
            (Access::Read, Found::Here) => now + self.costs.hit,
            (Access::Store, Found::Here) => now + self.costs.store,
            (Access::Atomic, Found::Here) => now + self.costs.hit + self.costs.atomic,
            (Access::Read, Found::Away) => {
                let line = &mut self.lines[id as usize];
                let takes = self.costs.migrates && line.owner != NONE && line.is_dirty;
                if takes {
                    line.is_dirty = false;
                    self.own(id, place, now, asked, self.costs.load_share)
                } else {
                    self.fetch(id, place, now, asked)
                }
            }
            (Access::Store, Found::Away) => self.own(id, place, now, asked, self.costs.store_share),
            (Access::Atomic, Found::Away) => {
                let done = self.own(id, place, now, asked, 1.0) + self.costs.atomic;
                // Other cores cannot get the line before the atomic operation ends.
                self.lines[id as usize].hold = done + self.costs.hold;
                done
            }
        }
    }

    #[inline]
    fn is_leased(&self, id: LineId, core: u16, now: Ps) -> bool {
        let lease = self.leases[core as usize];
        lease.line == id && now < lease.until
    }

    /// Brings a copy for reading to a core, after the earlier requests. Returns when it arrives.
    fn fetch(&mut self, id: LineId, place: Place, now: Ps, asked: Ps) -> Ps {
        let Place { socket, bit, .. } = place;
        let costs = &self.costs;
        let line = &mut self.lines[id as usize];
        self.moved += u64::from(!line.ports.is_empty());
        let owner = line.owner;
        let mut start = now;
        if owner != NONE {
            start = start.max(line.hold);
        }
        let done = if let Some(port) = line.ports.iter_mut().find(|port| port.socket == socket) {
            let start = start.max(port.busy).max(port.filled);
            let is_clean = owner == NONE;
            let share = if is_clean { costs.clean_node_share } else { costs.load_share };
            let transfer = costs.rest_of_transfer(costs.node.scaled(share), start - asked);
            // If another core owned the line, later readers wait until the line has arrived. If the
            // line was clean, each reader occupies the socket's cache only briefly.
            port.busy = start + if is_clean { costs.port } else { transfer };
            port.cores |= bit;
            lease(&mut self.leases, owner, id, start, transfer);
            start + transfer
        } else {
            start = start.max(line.directory);
            let from = line.ports.iter().map(|other| {
                let distance = self.topology.between_sockets(socket, other.socket);
                costs.hop(distance)
            });
            let hop = match (from.min(), owner) {
                (None, _) => from_memory(costs, &self.topology, line, socket),
                (Some(hop), NONE) => hop.scaled(costs.clean_far_share),
                (Some(hop), _) => hop.scaled(costs.load_share),
            };
            let hop = costs.rest_of_transfer(hop, start - asked);
            let done = start + hop;
            // If a core owns the line, the directory serves no other request until the line has
            // arrived at the socket of the reader.
            line.directory = if owner == NONE { start + costs.directory } else { done };
            line.ports.push(Port { socket, cores: bit, busy: done, filled: done });
            lease(&mut self.leases, owner, id, start, hop);
            done
        };
        line.owner = NONE;
        done
    }

    /// Makes a core the line's owner and removes all other copies. That takes `share` times the
    /// duration of an atomic operation. Returns the time at which the core owns the line.
    fn own(&mut self, id: LineId, place: Place, now: Ps, asked: Ps, share: f64) -> Ps {
        let Place { core, socket, bit } = place;
        let costs = &self.costs;
        let line = &mut self.lines[id as usize];
        // A line that only this core has does not move.
        let is_own = |port: &Port| port.socket == socket && port.cores & !bit == 0;
        self.moved += u64::from(!line.ports.iter().all(is_own));
        let mut start = now.max(line.directory).max(line.written);
        if let Some(port) = line.ports.iter().find(|port| port.socket == socket) {
            start = start.max(port.busy);
        }
        if line.owner != NONE {
            start = start.max(line.hold);
        }
        let hops = line.ports.iter().map(|other| {
            let distance = self.topology.between_sockets(socket, other.socket);
            costs.hop(distance)
        });
        let hop = match hops.max() {
            Some(hop) => hop.scaled(share),
            None => from_memory(costs, &self.topology, line, socket),
        };
        let hop = costs.rest_of_transfer(hop, start - asked);
        let done = start + hop;
        lease(&mut self.leases, line.owner, id, start, hop);
        // The request takes half of the transfer's time. After that, the other copies are invalid.
        line.lost = start + Ps(hop.0 / 2);
        line.owner = core;
        line.directory = done;
        line.written = done;
        line.hold = done + costs.hold;
        line.ports.clear();
        line.ports.push(Port { socket, cores: bit, busy: done, filled: done });
        done
    }
}

/// Returns where a CPU's caches are. `bit` stands for its core in a set of the socket's cores.
fn place(topology: Topology, cpu: CpuId) -> Place {
    let core = topology.core(cpu);
    let bit = 1 << (core % topology.cores_per_socket).min(63);
    Place { core, socket: topology.socket_of_core(core), bit }
}

/// Returns the time to get a line that no cache has. Its first reader's socket becomes its home.
fn from_memory(costs: &LineCosts, topology: &Topology, line: &mut CacheLine, socket: u16) -> Ps {
    if line.home == NONE {
        line.home = socket;
    }
    let hop = costs.hop(topology.between_sockets(socket, line.home));
    costs.memory + hop.since(costs.node)
}

/// Lets the line's previous owner use the line for half of the transfer that began at `start`:
/// until then the request of the new owner has not reached the previous one.
#[inline]
fn lease(leases: &mut [Lease], owner: u16, line: LineId, start: Ps, hop: Ps) {
    if owner != NONE {
        leases[owner as usize] = Lease { line, until: start + Ps(hop.0 / 2) };
    }
}
