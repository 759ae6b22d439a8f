//! The state of a simulated machine, and how a program on a simulated CPU gets access to it.
//!
//! For a step that takes simulated time, a program waits for the turn of its CPU
//! ([`act`](crate::act)), performs the step, and advances its CPU's clock. The state is not
//! borrowed while a fiber is suspended, because other fibers use it then.

use crate::coherence::{Access, Found, LineId, Lines, Watcher};
use crate::cost::Costs;
use crate::cpu_state::{Cpu, Mode, Vector};
use crate::fault::Faults;
use crate::fiber::{FiberId, Resumed};
use crate::order::{Order, before};
use crate::ps::Ps;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless_core::clock::discipline::Moment;
use tickless_core::time::{CpuId, Ns};

/// The memory of a simulated word is twice as large as that of a real word, so the eight words of a
/// simulated cache line span 128 bytes of real addresses.
const WORD_BYTES: usize = 16;
const LINE_BYTES: usize = 8 * WORD_BYTES;

pub(crate) type Handler = Rc<dyn Fn(Vector)>;
pub(crate) type OnReturn = Rc<dyn Fn()>;

#[derive(Default, Debug)]
pub(crate) struct Counter {
    /// The time at which the counter will have served all reads so far.
    pub free: Ps,
    pub reads: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Until,
    Stopped,
    /// Nothing can happen any more: every CPU is off, or waits for an event that will not occur.
    Quiet,
    /// The next event is later than the engine can represent. The limit is 10 hours of simulated
    /// time with 512 CPUs, and twice that with half as many.
    OutOfRange,
}

pub(crate) struct MachineState {
    pub(crate) serial: u32,
    pub(crate) costs: Costs,
    pub(crate) order: Order,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) lines: Lines,
    pub(crate) counter: Counter,
    pub(crate) busy: Vec<u16>,
    /// The energy that each core has used. `Cpu::joules` has what its halted CPUs used.
    pub(crate) core_energy: Vec<CoreEnergy>,
    pub(crate) running: Option<usize>,
    /// While the running CPU's clock is less than this time, that CPU acts before all others.
    pub(crate) horizon: Ps,
    pub(crate) handler: Option<Handler>,
    pub(crate) on_return: Option<OnReturn>,
    pub(crate) faults: Option<Box<dyn Faults>>,
    pub(crate) broken_rule: Option<&'static str>,
    pub(crate) nearest: Ps,
    pub(crate) words: HashMap<usize, LineId>,
    pub(crate) stopping: bool,
    /// The number of programs that hold a lock or wait for one, plus the number of running
    /// interrupt handlers. [`Machine::finish`](crate::engine::Machine::finish) lets them all run on
    /// until the number is zero.
    pub(crate) inside: u32,
    /// The machine is being finished: programs must not take further locks.
    pub(crate) draining: bool,
    pub(crate) ending: bool,
    pub(crate) events: u64,
    pub(crate) digest: u64,
    pub(crate) waking: Vec<Watcher>,
}

/// The energy that a core has used from the start until the time `until`.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CoreEnergy {
    pub until: Ps,
    pub joules: f64,
}

/// What must happen before a CPU can perform its next action.
pub(crate) enum Delay {
    OtherCpus,
    /// The CPU must handle an interrupt that is due.
    Interrupt,
}

thread_local! {
    static RUNNING: RefCell<Option<Box<MachineState>>> = const { RefCell::new(None) };
    static SERIAL: Cell<u32> = const { Cell::new(0) };
}

impl MachineState {
    pub(crate) fn new(costs: Costs) -> MachineState {
        let serial = SERIAL.get() + 1;
        SERIAL.set(serial);
        let topology = costs.topology;
        let cpus = topology.cpus() as usize;
        MachineState {
            serial,
            order: Order::new(cpus),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            lines: Lines::new(costs.line, topology),
            counter: Counter::default(),
            busy: vec![0; topology.cores() as usize],
            core_energy: vec![CoreEnergy::default(); topology.cores() as usize],
            running: None,
            horizon: Ps::ZERO,
            handler: None,
            on_return: None,
            faults: None,
            broken_rule: None,
            nearest: costs.line.nearest(),
            words: HashMap::new(),
            stopping: false,
            inside: 0,
            draining: false,
            ending: false,
            events: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            waking: Vec::new(),
            costs,
        }
    }

    /// Chooses the CPU that is next in simulated time, and sets until when it can run alone.
    #[inline]
    pub(crate) fn choose_next(&mut self, until: Ps) -> Result<FiberId, Ended> {
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

    /// Called when the fiber of the running CPU has suspended itself or ended. Updates the time at
    /// which the CPU acts next.
    #[inline]
    pub(crate) fn suspended(&mut self, fiber: FiberId, resumed: Resumed) {
        let Some(cpu) = self.running.take() else { return };
        if resumed == Resumed::Return(()) && self.cpus[cpu].fiber == fiber {
            self.switch_off(cpu);
        }
        let key = self.cpus[cpu].key();
        self.order.set(cpu, key);
    }

    /// Lets a CPU run a fiber. Its core becomes busier, which costs energy.
    pub(crate) fn switch_on(&mut self, cpu: CpuId, fiber: FiberId) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.fiber = fiber;
            state.mode = Mode::Running;
            self.order.set(cpu.index(), state.key());
            self.meter(cpu.index());
            self.busy[self.costs.topology.core(cpu) as usize] += 1;
        }
    }

    /// Begins to finish the machine. From here on, only programs that hold or wait for a lock, and
    /// interrupt handlers, continue.
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

    /// Updates when a CPU acts next, after the running CPU has changed that CPU's state.
    pub(crate) fn reschedule(&mut self, cpu: usize) {
        let key = self.cpus[cpu].key();
        self.order.set(cpu, key);
        if let Some(running) = self.running {
            self.horizon = self.horizon.min(before(key, running, cpu));
        }
    }

    #[inline]
    pub(crate) fn cpu(&mut self) -> Option<&mut Cpu> {
        self.cpus.get_mut(self.running?)
    }

    /// Returns what the running CPU's cycle counter shows. A fault can make it show a wrong time.
    pub(crate) fn cycle_counter(&mut self) -> Ns {
        let now = self.cpu().map_or(Ns::ZERO, |cpu| cpu.clock.to_ns());
        self.faults.as_mut().map_or(now, |faults| faults.clock(now))
    }

    /// Returns the timers' time, from the running CPU's counter.
    pub(crate) fn now(&mut self) -> Ns {
        let system = self.cycle_counter();
        let counter = self.faults.as_mut().and_then(|faults| faults.counter(system));
        match (self.cpu(), counter) {
            (Some(cpu), Some(counter)) if system > Ns::ZERO => {
                cpu.counter_clock.read(Moment { counter, system, doubt: 0 })
            }
            _ => system,
        }
    }

    /// Counts an event, and adds its time and CPU to the digest by which runs are compared.
    #[inline]
    pub(crate) fn count(&mut self, cpu: usize) {
        self.events += 1;
        let what = self.cpus[cpu].clock.0 ^ (cpu as u64) << 48;
        self.digest = (self.digest ^ what).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    /// Checks that the running CPU can act now: no interrupt is due, and its clock is less than
    /// `ahead` past the horizon. (Until the horizon, this CPU acts before all others.)
    #[inline]
    pub(crate) fn may_act(&self, cpu: usize, ahead: Ps) -> Result<(), Delay> {
        let state = &self.cpus[cpu];
        if state.is_interrupted() {
            Err(Delay::Interrupt)
        } else if state.clock < self.horizon + ahead {
            Ok(())
        } else {
            Err(Delay::OtherCpus)
        }
    }

    /// Returns the cache line of a word. Assigns a line on the word's first access.
    #[inline]
    pub(crate) fn line(&mut self, place: &WordSlot, sharing: LineSharing) -> LineId {
        let seen = place.0.load(Ordering::Relaxed);
        if seen >> 32 == u64::from(self.serial) {
            return seen as LineId;
        }
        self.new_line(place, sharing)
    }

    /// Assigns a cache line to a word. Up to eight words at consecutive addresses share a line,
    /// like the fields of a structure. Words with a gap between them do not share one even if they
    /// are close, because the allocator places them differently from run to run, and runs must be
    /// repeatable.
    #[cold]
    fn new_line(&mut self, place: &WordSlot, sharing: LineSharing) -> LineId {
        let at = place.address();
        let mut shared = None;
        if sharing == LineSharing::Neighbours {
            let near = [at.wrapping_sub(WORD_BYTES), at + WORD_BYTES];
            let mut near = near.iter().filter(|other| *other / LINE_BYTES == at / LINE_BYTES);
            shared = near.find_map(|other| self.words.get(other)).copied();
        }
        let line = shared.unwrap_or_else(|| self.lines.allocate());
        self.lines.join(line);
        if sharing == LineSharing::Neighbours {
            self.words.insert(at, line);
        }
        place.0.store(u64::from(self.serial) << 32 | u64::from(line), Ordering::Relaxed);
        line
    }

    /// Performs an access to a cache line. A write wakes the CPUs that spin on the line.
    #[inline]
    pub(crate) fn access(&mut self, cpu: usize, line: LineId, access: Access, mut found: Found) {
        self.count(cpu);
        let state = &mut self.cpus[cpu];
        if access == Access::Atomic && state.drained > state.clock {
            // An atomic operation waits until the earlier stores of its CPU are visible. Perhaps
            // the core has lost the line by then, so look the line up again.
            state.clock = state.drained;
            found = self.lines.find(line, CpuId(cpu as u16), access, state.clock);
        }
        let moved = self.lines.moved;
        let lost_copy = state.lost_copy.take();
        let misses = found == Found::Away;
        let begun = if misses { state.request(access, &self.costs.line) } else { state.clock };
        let asked = lost_copy.map_or(begun, |lost| lost.min(begun));
        let served = self.lines.serve(line, CpuId(cpu as u16), access, found, begun, asked);
        state.clock = match access {
            Access::Store => state.clock + self.costs.line.store,
            _ => served.max(state.clock),
        };
        if misses && access != Access::Store {
            // If this read ends a waiting loop, its jump was mispredicted: nothing was requested
            // ahead.
            state.miss = lost_copy.is_none().then_some(state.clock);
        }
        state.lines_moved += self.lines.moved - moved;
        if access == Access::Read {
            state.watch(line, self.lines.version(line));
            return;
        }
        state.wrote(line, self.lines.version(line));
        let visible = served.max(state.drained);
        state.drained = visible;
        let lost_copy = self.lines.lost(line);
        self.lines.take_watchers(line, &mut self.waking);
        while let Some(watcher) = self.waking.pop() {
            let waiting = &mut self.cpus[watcher.cpu as usize];
            if waiting.mode == Mode::Spinning && waiting.wait == watcher.wait {
                waiting.wake_from_spinning(lost_copy, visible);
                self.reschedule(watcher.cpu as usize);
            }
        }
    }

    /// Parks the running CPU until another CPU writes one of the lines that its waiting loop has
    /// read. Returns false if a line was written after the loop had read it: the loop must check
    /// its condition again.
    pub(crate) fn park(&mut self, cpu: usize) -> bool {
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

/// Which other words are allowed to share the cache line of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineSharing {
    /// Those at consecutive addresses.
    Neighbours,
    Alone,
}

/// The cache line of a simulated word: its number, and the number of the machine that assigned it.
#[derive(Debug, Default)]
pub(crate) struct WordSlot(AtomicU64);

impl Drop for WordSlot {
    fn drop(&mut self) {
        let seen = *self.0.get_mut();
        let at = self.address();
        with(|machine| {
            if seen >> 32 == u64::from(machine.serial) {
                machine.words.remove(&at);
                machine.lines.leave(seen as LineId);
            }
        });
    }
}

impl WordSlot {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

pub(crate) fn install(machine: Box<MachineState>) {
    RUNNING.set(Some(machine));
}

pub(crate) fn uninstall() -> Option<Box<MachineState>> {
    RUNNING.take()
}

/// Calls `f` with the machine that runs on this thread. Returns `None` if no machine runs, or if
/// its state is already borrowed.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut MachineState) -> R) -> Option<R> {
    let result = RUNNING.try_with(|machine| {
        let mut machine = machine.try_borrow_mut().ok()?;
        machine.as_mut().map(|machine| f(machine))
    });
    result.ok().flatten()
}

/// Gives `f` access to the machine that runs on this thread, and the number of the running CPU.
/// `None` if no simulated CPU is running.
#[inline]
pub(crate) fn with_running<R>(f: impl FnOnce(&mut MachineState, usize) -> R) -> Option<R> {
    with(|machine| machine.running.map(|cpu| f(machine, cpu))).flatten()
}

#[inline]
pub(crate) fn with_cpu<R>(f: impl FnOnce(&mut Cpu) -> R) -> Option<R> {
    with(|machine| machine.cpu().map(f)).flatten()
}
