//! Cache lines: who has them, and how long it takes to get one.
//!
//! Two levels. Inside a socket readers queue at the socket's own cache, a few nanoseconds each;
//! between sockets requests queue at the line's directory, and a fill that is under way to a
//! socket serves everybody there who asks meanwhile. One flat queue would be 10 to 30 times
//! wrong for 480 readers of one line: it forgets that 30 of them share a fill.
//!
//! | access | starts | takes |
//! |---|---|---|
//! | the core has it | at once | a hit |
//! | read, own socket has it or gets it | the socket's cache is free, filled | a transfer there |
//! | read, from elsewhere | directory free, owner lets go | a hop |
//! | store or atomic | as above | the farthest copy's hop; others wait until it is over |
//!
//! A hop is that of an atomic operation on a line that another core has written; what loads and
//! stores take, of written and of clean lines, are shares of it. Written lines are taken from their
//! owner one request at a time, so more than two that want one stand in line at its home. (David,
//! Guerraoui, Trigonakis, "Everything you always wanted to know about synchronization", SOSP 2013.)
//!
//! What was granted to a core stays with it until the next request in line has reached it, half
//! a transfer after that was served, however early it was entered here: the core's *lease*.
//! Without it two threads that add to one counter come out ten times too slow. Machines may keep
//! a line longer than that (`hold`), and an atomic operation keeps it locked until it is over.

use crate::cost::LineCosts;
use crate::ps::Ps;
use crate::topology::Topology;
use tickless_core::time::CpuId;

/// A line's number.
pub(crate) type LineId = u32;

const NOBODY: u16 = u16::MAX;

/// What is done to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A load.
    Read,
    /// A plain store: it retires into the store buffer and is visible later.
    Store,
    /// An atomic read-modify-write; one that fails pays too.
    Atomic,
}

/// What an access comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    /// When the CPU goes on.
    pub resume: Ps,
    /// When everybody sees it.
    pub visible: Ps,
}

/// A CPU that waits for a line to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watcher {
    pub cpu: u16,
    /// Which of its waits this is; it may have ended otherwise.
    pub wait: u32,
}

/// Where a core finds a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// In its own cache: no other core's access can come between.
    Here,
    /// Elsewhere.
    Away,
}

/// What a socket with a copy of a line knows of it.
#[derive(Clone, Copy, Debug)]
struct Port {
    socket: u16,
    /// Which of the socket's cores have a copy.
    cores: u64,
    /// Until when the socket's cache is busy with it.
    busy: Ps,
    /// When the fill comes that is under way, or came.
    filled: Ps,
}

#[derive(Debug)]
struct Line {
    /// The core that may write it.
    owner: u16,
    /// The socket whose memory it is in: that of the core that touched it first.
    home: u16,
    /// How many words are on it.
    words: u32,
    /// Goes up with each write.
    version: u32,
    /// The directory is busy until then.
    directory: Ps,
    /// Nobody gets a copy before then.
    written: Ps,
    /// The owner keeps it until then.
    hold: Ps,
    /// Sockets with a valid copy. Beside the line itself: a machine has many more sockets than a
    /// line has copies, and most lines are one core's own.
    ports: Vec<Port>,
    watchers: Vec<Watcher>,
}

/// Where a CPU is. Worked out once: divisions take longer than the rest of a hit.
#[derive(Clone, Copy, Debug)]
struct Place {
    core: u16,
    socket: u16,
    /// The core's bit among those of its socket.
    bit: u64,
}

/// What a core may still use although somebody else was granted it later.
#[derive(Clone, Copy, Debug)]
struct Lease {
    line: LineId,
    until: Ps,
}

/// All lines of a machine.
#[derive(Debug)]
pub(crate) struct Lines {
    costs: LineCosts,
    topology: Topology,
    places: Vec<Place>,
    lines: Vec<Line>,
    free: Vec<LineId>,
    leases: Vec<Lease>,
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
        }
    }

    /// A line that nobody has touched: it is in memory.
    pub(crate) fn allocate(&mut self) -> LineId {
        if let Some(line) = self.free.pop() {
            return line;
        }
        self.lines.push(Line {
            owner: NOBODY,
            home: NOBODY,
            words: 0,
            version: 0,
            directory: Ps::ZERO,
            written: Ps::ZERO,
            hold: Ps::ZERO,
            ports: Vec::new(),
            watchers: Vec::new(),
        });
        (self.lines.len() - 1) as LineId
    }

    /// One more word is on this line.
    pub(crate) fn join(&mut self, line: LineId) {
        self.lines[line as usize].words += 1;
    }

    /// One word less. A line without any is given back; the next one that is allocated starts
    /// in memory like this one.
    pub(crate) fn leave(&mut self, line: LineId) {
        self.lines[line as usize].words -= 1;
        if self.lines[line as usize].words == 0 {
            self.flush(line);
            self.lines[line as usize].home = NOBODY;
            self.free.push(line);
        }
    }

    /// Drops every copy: the line is in memory.
    pub(crate) fn flush(&mut self, id: LineId) {
        if let Some(line) = self.lines.get_mut(id as usize) {
            line.owner = NOBODY;
            line.ports.clear();
        }
    }

    /// Drops every copy of every line.
    pub(crate) fn flush_all(&mut self) {
        for line in 0..self.lines.len() {
            self.flush(line as LineId);
        }
    }

    /// How often a line was written.
    #[inline]
    pub(crate) fn version(&self, line: LineId) -> u32 {
        self.lines[line as usize].version
    }

    /// Puts a CPU on the list of those to be woken when a line is written.
    pub(crate) fn watch(&mut self, line: LineId, watcher: Watcher) {
        self.lines[line as usize].watchers.push(watcher);
    }

    /// Takes all of them off.
    #[inline]
    pub(crate) fn take_watchers(&mut self, line: LineId, into: &mut Vec<Watcher>) {
        into.append(&mut self.lines[line as usize].watchers);
    }

    /// Where a CPU finds a line that it accesses at `now`.
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

    /// Serves an access by `cpu` at `now`, which [`find`](Self::find)s the line there.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        id: LineId,
        cpu: CpuId,
        access: Access,
        found: Found,
        now: Ps,
    ) -> Served {
        let place = self.places[cpu.index()];
        if access != Access::Read {
            let line = &mut self.lines[id as usize];
            line.version = line.version.wrapping_add(1);
        }
        if found == Found::Here {
            return self.serve_hit(access, now);
        }
        match access {
            Access::Read => {
                let done = self.fetch(id, place, now);
                Served { resume: done, visible: done }
            }
            Access::Store => {
                let done = self.own(id, place, now, self.costs.shares.store);
                Served { resume: now + self.costs.store, visible: done }
            }
            Access::Atomic => {
                let done = self.own(id, place, now, 1.0) + self.costs.atomic;
                // It is locked until the operation is over, whoever asks for it.
                self.lines[id as usize].hold = done + self.costs.hold;
                Served { resume: done, visible: done }
            }
        }
    }

    #[inline]
    fn serve_hit(&self, access: Access, now: Ps) -> Served {
        let done = match access {
            Access::Read => now + self.costs.hit,
            Access::Store => now + self.costs.store,
            Access::Atomic => now + self.costs.hit + self.costs.atomic,
        };
        Served { resume: done, visible: done }
    }

    #[inline]
    fn is_leased(&self, id: LineId, core: u16, now: Ps) -> bool {
        let lease = self.leases[core as usize];
        lease.line == id && now < lease.until
    }

    /// A read that the core's cache cannot serve. Returns when the data is there.
    fn fetch(&mut self, id: LineId, Place { socket, bit, .. }: Place, now: Ps) -> Ps {
        let costs = &self.costs;
        let line = &mut self.lines[id as usize];
        let owner = line.owner;
        let mut start = now;
        if owner != NOBODY {
            start = start.max(line.hold);
        }
        let done = if let Some(port) = line.ports.iter_mut().find(|port| port.socket == socket) {
            let start = start.max(port.busy).max(port.filled);
            let is_clean = owner == NOBODY;
            let share = if is_clean { costs.shares.clean_node } else { costs.shares.load };
            let way = costs.node.scaled(share);
            // Whoever asks while it is being taken from its owner waits for that.
            port.busy = start + if is_clean { costs.port } else { way };
            port.cores |= bit;
            lease(&mut self.leases, owner, id, start, way);
            start + way
        } else {
            start = start.max(line.directory);
            let from = line.ports.iter().map(|other| {
                let distance = self.topology.between_sockets(socket, other.socket);
                costs.hop(distance)
            });
            let hop = match (from.min(), owner) {
                (None, _) => from_memory(costs, &self.topology, line, socket),
                (Some(hop), NOBODY) => hop.scaled(costs.shares.clean_far),
                (Some(hop), _) => hop.scaled(costs.shares.load),
            };
            let done = start + hop;
            // A line is taken from its owner for one at a time.
            line.directory = if owner == NOBODY { start + costs.directory } else { done };
            line.ports.push(Port { socket, cores: bit, busy: done, filled: done });
            lease(&mut self.leases, owner, id, start, hop);
            done
        };
        line.owner = NOBODY;
        done
    }

    /// Makes a core the only one with a copy, for this share of what an atomic operation takes.
    /// Returns when it is.
    fn own(&mut self, id: LineId, place: Place, now: Ps, share: f64) -> Ps {
        let Place { core, socket, bit } = place;
        let costs = &self.costs;
        let line = &mut self.lines[id as usize];
        let mut start = now.max(line.directory).max(line.written);
        if let Some(port) = line.ports.iter().find(|port| port.socket == socket) {
            start = start.max(port.busy);
        }
        if line.owner != NOBODY {
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
        let done = start + hop;
        lease(&mut self.leases, line.owner, id, start, hop);
        line.owner = core;
        line.directory = done;
        line.written = done;
        line.hold = done + costs.hold;
        line.ports.clear();
        line.ports.push(Port { socket, cores: bit, busy: done, filled: done });
        done
    }
}

fn place(topology: Topology, cpu: CpuId) -> Place {
    let core = topology.core(cpu);
    let bit = 1 << (core % topology.cores_per_socket).min(63);
    Place { core, socket: topology.socket_of_core(core), bit }
}

/// From the home's memory: on top of a transfer within the home's socket, the way there.
fn from_memory(costs: &LineCosts, topology: &Topology, line: &mut Line, socket: u16) -> Ps {
    if line.home == NOBODY {
        line.home = socket;
    }
    let way = costs.hop(topology.between_sockets(socket, line.home));
    costs.memory + way.since(costs.node)
}

/// The old owner keeps a line until the request that was served at `start` has reached it.
#[inline]
fn lease(leases: &mut [Lease], owner: u16, line: LineId, start: Ps, hop: Ps) {
    if owner != NOBODY {
        leases[owner as usize] = Lease { line, until: start + Ps(hop.0 / 2) };
    }
}
