//! The world: everything that the machine knows, and how a program on a simulated CPU gets at it.
//!
//! A program that wants something with a price waits for its CPU's turn, is served, and goes on
//! with its clock moved forward ([`act`]). The world is lent to nobody across a suspension.

use crate::coherence::{Access, Found, LineId, Lines, Watcher};
use crate::cost::Costs;
use crate::fault::Faults;
use crate::fiber::{Fiber, FiberId, Resumed};
use crate::order::{Order, before};
use crate::ps::Ps;
use crate::state::counter::Counter;
use crate::state::cpu::{Cpu, Mode};
use crate::state::inbox::Vector;
use crate::state::timeline::{self, Trace};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless_core::time::{CpuId, Ns};

/// A simulated word takes twice the room of a real one; a line has room for eight.
const WORD_BYTES: usize = 16;
const LINE_BYTES: usize = 8 * WORD_BYTES;

/// What an interrupt handler looks like.
pub(crate) type Handler = Rc<dyn Fn(Vector)>;
/// What runs when a CPU goes back from interrupts to its program.
pub(crate) type OnReturn = Rc<dyn Fn()>;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The time is over.
    Until,
    /// A program called [`stop`](crate::engine::stop).
    Stopped,
    /// Nothing will ever happen any more: every CPU is off, or waits for what nobody does.
    Quiet,
    /// What comes next is farther ahead than the engine reaches: 10 hours of simulated time with
    /// 512 CPUs, twice that with half as many.
    OutOfRange,
}

/// Everything that the machine knows, but for the fibers' stacks.
pub(crate) struct World {
    pub(crate) serial: u32,
    pub(crate) costs: Costs,
    pub(crate) order: Order,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) lines: Lines,
    pub(crate) counters: Vec<Counter>,
    /// Busy threads of each core.
    pub(crate) busy: Vec<u16>,
    /// What each core has used until when, beside what its CPUs do while they are idle.
    pub(crate) used: Vec<Used>,
    /// The CPU whose fiber runs just now.
    pub(crate) running: Option<usize>,
    /// Until when, exclusively, that CPU comes before all others.
    pub(crate) horizon: Ps,
    pub(crate) handler: Option<Handler>,
    pub(crate) on_return: Option<OnReturn>,
    pub(crate) faults: Option<Box<dyn Faults>>,
    /// The first rule about locks that a program broke.
    pub(crate) broken_rule: Option<&'static str>,
    pub(crate) trace: Option<Trace>,
    pub(crate) nearest: Ps,
    /// The line of each word by its address.
    pub(crate) words: HashMap<usize, LineId>,
    pub(crate) stopping: bool,
    /// Programs that hold a lock or wait for one, and interrupt handlers under way.
    pub(crate) inside: u32,
    /// No program may begin anything any more: the machine comes to its end.
    pub(crate) draining: bool,
    pub(crate) ending: bool,
    pub(crate) events: u64,
    pub(crate) digest: u64,
    pub(crate) fibers: u32,
    pub(crate) spawned: Vec<Fiber>,
    pub(crate) waking: Vec<Watcher>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(trace) = self.trace.take() {
            timeline::end_machine(trace);
        }
    }
}

/// What a core has used.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Used {
    pub until: Ps,
    pub joules: f64,
}

/// What a CPU has to do before it may act.
pub(crate) enum Go {
    Now,
    /// Others are behind.
    Wait,
    /// An interrupt is due.
    Interrupt,
}

thread_local! {
    /// The machine that runs on this thread.
    static WORLD: RefCell<Option<Box<World>>> = const { RefCell::new(None) };
    static SERIAL: Cell<u32> = const { Cell::new(0) };
}

impl World {
    pub(crate) fn new(costs: Costs) -> World {
        let serial = SERIAL.get() + 1;
        SERIAL.set(serial);
        let topology = costs.topology;
        let cpus = topology.cpus() as usize;
        World {
            serial,
            order: Order::new(cpus),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            lines: Lines::new(costs.line, topology),
            counters: Vec::new(),
            busy: vec![0; topology.cores() as usize],
            used: vec![Used::default(); topology.cores() as usize],
            running: None,
            horizon: Ps::ZERO,
            handler: None,
            on_return: None,
            faults: None,
            broken_rule: None,
            trace: timeline::begin_machine(),
            nearest: costs.line.nearest(),
            words: HashMap::new(),
            stopping: false,
            inside: 0,
            draining: false,
            ending: false,
            events: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            fibers: 0,
            spawned: Vec::new(),
            waking: Vec::new(),
            costs,
        }
    }

    /// Chooses who runs next.
    #[inline]
    pub(crate) fn next(&mut self, until: Ps) -> Result<FiberId, Ended> {
        if self.stopping || self.draining && self.inside == 0 {
            return Err(Ended::Stopped);
        }
        let (cpu, key) = self.order.first();
        if key == Ps::NEVER {
            return Err(Ended::Quiet);
        }
        if key > until {
            return Err(Ended::Until);
        }
        if key >= self.order.range() {
            return Err(Ended::OutOfRange);
        }
        self.running = Some(cpu);
        self.horizon = self.order.horizon(cpu);
        let cpu = &mut self.cpus[cpu];
        cpu.clock = cpu.clock.max(key);
        Ok(cpu.fiber)
    }

    /// A fiber handed back.
    #[inline]
    pub(crate) fn back(&mut self, fiber: FiberId, resumed: Resumed) {
        let Some(cpu) = self.running.take() else { return };
        if resumed == Resumed::Ended && self.cpus[cpu].fiber == fiber {
            self.switch_off(cpu);
        }
        let key = self.cpus[cpu].key();
        self.order.set(cpu, key);
    }

    pub(crate) fn switch_on(&mut self, cpu: CpuId, fiber: FiberId) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.fiber = fiber;
            state.mode = Mode::Running;
            self.order.set(cpu.index(), state.key());
            self.meter(cpu.index());
            self.busy[self.costs.topology.core(cpu) as usize] += 1;
        }
    }

    pub(crate) fn drain(&mut self) {
        self.draining = true;
        for cpu in 0..self.cpus.len() {
            self.cpus[cpu].masked += 1;
            self.order.set(cpu, self.cpus[cpu].key());
        }
    }

    pub(crate) fn switch_off(&mut self, cpu: usize) {
        self.cpus[cpu].mode = Mode::Off;
        self.leave_core(cpu);
    }

    /// Sets when another CPU acts next, from the CPU that runs.
    pub(crate) fn reschedule(&mut self, cpu: usize) {
        let key = self.cpus[cpu].key();
        self.order.set(cpu, key);
        if let Some(running) = self.running {
            self.horizon = self.horizon.min(before(key, running, cpu));
        }
    }

    /// The CPU that runs.
    #[inline]
    pub(crate) fn cpu(&mut self) -> Option<&mut Cpu> {
        self.cpus.get_mut(self.running?)
    }

    /// What the cycle counter of the CPU that runs shows.
    pub(crate) fn shows(&mut self) -> Ns {
        let now = self.cpu().map_or(Ns::ZERO, |cpu| cpu.clock.to_ns());
        self.faults.as_mut().map_or(now, |faults| faults.clock(now))
    }

    /// Counts an event of the CPU that runs.
    #[inline]
    pub(crate) fn count(&mut self, cpu: usize) {
        self.events += 1;
        let what = self.cpus[cpu].clock.0 ^ (cpu as u64) << 48;
        self.digest = (self.digest ^ what).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    #[inline]
    pub(crate) fn may_act(&self, cpu: usize, ahead: Ps) -> Go {
        let state = &self.cpus[cpu];
        if state.is_interrupted() {
            Go::Interrupt
        } else if state.clock < self.horizon + ahead {
            Go::Now
        } else {
            Go::Wait
        }
    }

    /// The line that a word is on; a word that this machine has not seen gets one.
    #[inline]
    pub(crate) fn line(&mut self, place: &WordSlot, room: Room) -> LineId {
        let seen = place.0.load(Ordering::Relaxed);
        if seen >> 32 == u64::from(self.serial) {
            return seen as LineId;
        }
        self.new_line(place, room)
    }

    /// Words that stand directly one behind the other are on one line, eight to a line, as the
    /// fields of a structure would be. Words that only happen to be near each other are not:
    /// where an allocator puts them differs from run to run.
    #[cold]
    fn new_line(&mut self, place: &WordSlot, room: Room) -> LineId {
        let at = place.address();
        if room == Room::Own {
            let line = self.lines.allocate();
            self.lines.join(line);
            place.0.store(u64::from(self.serial) << 32 | u64::from(line), Ordering::Relaxed);
            return line;
        }
        let near = [at.wrapping_sub(WORD_BYTES), at + WORD_BYTES];
        let mates = near.into_iter().filter(|mate| mate / LINE_BYTES == at / LINE_BYTES);
        let line = mates.filter_map(|mate| self.words.get(&mate)).next().copied();
        let line = line.unwrap_or_else(|| self.lines.allocate());
        self.lines.join(line);
        self.words.insert(at, line);
        place.0.store(u64::from(self.serial) << 32 | u64::from(line), Ordering::Relaxed);
        line
    }

    #[inline]
    pub(crate) fn access(&mut self, cpu: usize, line: LineId, access: Access, mut found: Found) {
        self.count(cpu);
        let state = &mut self.cpus[cpu];
        if access == Access::Atomic && state.drained > state.clock {
            // It waits for the stores before it; what was leased to its core may be gone by then.
            state.clock = state.drained;
            found = self.lines.find(line, CpuId(cpu as u16), access, state.clock);
        }
        let served = self.lines.serve(line, CpuId(cpu as u16), access, found, state.clock);
        state.clock = served.resume;
        if access == Access::Read {
            state.watch(line, self.lines.version(line));
            return;
        }
        let visible = served.visible.max(state.drained);
        state.drained = visible;
        self.lines.take_watchers(line, &mut self.waking);
        while let Some(watcher) = self.waking.pop() {
            let waiting = &mut self.cpus[watcher.cpu as usize];
            if waiting.mode == Mode::Spinning && waiting.wait == watcher.wait {
                waiting.wake_from_spinning(visible);
                self.reschedule(watcher.cpu as usize);
            }
        }
    }

    /// Parks the CPU that runs on the lines that its loop has read. False: it must go on.
    pub(crate) fn park(&mut self) -> bool {
        let Some(cpu) = self.running else { return false };
        let state = &mut self.cpus[cpu];
        state.clock += self.costs.pause;
        let watched = state.take_watched();
        let unchanged = |&(line, version): &(LineId, u32)| self.lines.version(line) == version;
        if watched.is_empty() || !watched.iter().all(unchanged) {
            return false;
        }
        state.wait = state.wait.wrapping_add(1);
        state.mode = Mode::Spinning;
        let watcher = Watcher { cpu: cpu as u16, wait: state.wait };
        for &(line, _) in watched.iter() {
            self.lines.watch(line, watcher);
        }
        true
    }
}

/// What else may be on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// The words that stand beside it.
    Shared,
    /// Nothing.
    Own,
}

/// Where a word is, in the machine that touched it last.
#[derive(Debug, Default)]
pub(crate) struct WordSlot(AtomicU64);

impl Drop for WordSlot {
    fn drop(&mut self) {
        let seen = *self.0.get_mut();
        let at = self.address();
        with(|world| {
            if seen >> 32 == u64::from(world.serial) {
                world.words.remove(&at);
                world.lines.leave(seen as LineId);
            }
        });
    }
}

impl WordSlot {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Makes a machine the one that runs on this thread.
pub(crate) fn install(world: Box<World>) {
    WORLD.with(|place| *place.borrow_mut() = Some(world));
}

/// Takes it away again.
pub(crate) fn uninstall() -> Option<Box<World>> {
    WORLD.with(|place| place.borrow_mut().take())
}

/// Does something to the machine that runs on this thread. `None` if there is none, or if it is
/// being used already.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut World) -> R) -> Option<R> {
    let lent = WORLD.try_with(|place| {
        let mut world = place.try_borrow_mut().ok()?;
        world.as_mut().map(|world| f(world))
    });
    lent.ok().flatten()
}
