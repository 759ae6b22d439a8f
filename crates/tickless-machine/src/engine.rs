//! The engine: fibers in virtual time, always the CPU with the smallest clock.
//!
//! Each simulated CPU runs one fiber at a time, and code on it runs for real: it loads words,
//! takes locks, calls the library. Whatever has a price goes through here: the CPU waits until
//! no other one is behind it, is told what the access costs, and its clock moves on.
//!
//! # Guarantees
//!
//! - Deterministic: smallest clock first, ties by CPU number; the same program and seed give
//!   the same run, and [`Machine::digest`] tells two runs apart.
//! - Sequentially consistent: accesses happen one after the other in the order in which they
//!   are served. It says nothing about memory orderings; those belong to the model checkers.
//!
//! # Ground rules
//!
//! - A hit runs ahead of the others by less than the fastest remote access: nothing that is
//!   still to come could have changed it.
//! - A waiting loop ([`Platform::relax`]) does not run at all: its CPU is parked on the lines
//!   that the loop has read until one of them is written. Loops that read more than
//!   [`WATCHED_MAX`] lines run.
//! - The world is lent to nobody across a suspension; interrupt handlers run on the stack of
//!   the program that they interrupt, as on a real CPU.
//!
//! [`Platform::relax`]: tickless_core::platform::Platform::relax

use crate::coherence::{Access, LineId, Lines, Watcher};
use crate::cost::Costs;
use crate::cpu::{Cpu, Mode};
use crate::device::Counter;
use crate::fault::Faults;
use crate::fiber::{self, Fiber, Resumed};
use crate::irq::Vector;
use crate::order::{Order, before};
use crate::ps::Ps;
use crate::trace::Trace;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use tickless_core::time::{CpuId, Ns};

/// How many lines a waiting loop may read and still be parked.
pub const WATCHED_MAX: usize = 4;

/// A simulated word takes twice the room of a real one; a line has room for eight.
const WORD_BYTES: usize = 16;
const LINE_BYTES: usize = 8 * WORD_BYTES;

/// A fiber's number in its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct FiberId(pub(crate) u32);

/// What an interrupt handler looks like.
pub(crate) type Handler = Rc<dyn Fn(Vector)>;
/// What runs when a CPU goes back from interrupts to its program.
pub(crate) type OnReturn = Rc<dyn Fn()>;

/// Everything that the machine knows, but for the fibers' stacks.
pub(crate) struct World {
    serial: u32,
    pub(crate) costs: Costs,
    pub(crate) order: Order,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) lines: Lines,
    pub(crate) counters: Vec<Counter>,
    /// Busy threads of each core.
    pub(crate) busy: Vec<u16>,
    /// The CPU whose fiber runs just now.
    pub(crate) running: Option<usize>,
    /// Until when, exclusively, that CPU comes before all others.
    pub(crate) horizon: Ps,
    pub(crate) handler: Option<Handler>,
    pub(crate) on_return: Option<OnReturn>,
    pub(crate) faults: Option<Box<dyn Faults>>,
    pub(crate) trace: Option<Trace>,
    nearest: Ps,
    /// The line of each word by its address.
    words: HashMap<usize, LineId>,
    stopping: bool,
    /// Programs that hold a lock or wait for one, and interrupt handlers under way.
    pub(crate) inside: u32,
    /// No program may begin anything any more: the machine comes to its end.
    draining: bool,
    ending: bool,
    events: u64,
    digest: u64,
    fibers: u32,
    spawned: Vec<Fiber>,
    waking: Vec<Watcher>,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The time is over.
    Until,
    /// A program called [`stop`].
    Stopped,
    /// Nothing will ever happen any more: every CPU is off, or waits for what nobody does.
    Quiet,
}

/// What a CPU has to do before it may act.
enum Go {
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

/// A simulated machine.
pub struct Machine {
    /// `None` only while it runs.
    world: Option<Box<World>>,
    fibers: Vec<Option<Fiber>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("fibers", &self.fibers.len()).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine whose CPUs are all off.
    pub fn new(costs: Costs) -> Machine {
        let serial = SERIAL.get() + 1;
        SERIAL.set(serial);
        let topology = costs.topology;
        let cpus = topology.cpus() as usize;
        let world = World {
            serial,
            order: Order::new(cpus),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            lines: Lines::new(costs.line, topology),
            counters: Vec::new(),
            busy: vec![0; topology.cores() as usize],
            running: None,
            horizon: Ps::ZERO,
            handler: None,
            on_return: None,
            faults: None,
            trace: None,
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
        };
        Machine { world: Some(Box::new(world)), fibers: Vec::new() }
    }

    /// What interrupts call, on whichever CPU they reach, with interrupts off there.
    pub fn on_interrupt(&mut self, handler: impl Fn(Vector) + 'static) {
        if let Some(world) = &mut self.world {
            world.handler = Some(Rc::new(handler));
        }
    }

    /// What a CPU does when it is through with interrupts and goes back to its program, with
    /// interrupts enabled: a kernel looks there whether another task should run.
    pub fn on_return(&mut self, hook: impl Fn() + 'static) {
        if let Some(world) = &mut self.world {
            world.on_return = Some(Rc::new(hook));
        }
    }

    /// Makes interrupts late, lost or slow.
    pub fn inject(&mut self, faults: impl Faults + 'static) {
        if let Some(world) = &mut self.world {
            world.faults = Some(Box::new(faults));
        }
    }

    /// Keeps a record of what happens from now on.
    pub fn record(&mut self) {
        if let Some(world) = &mut self.world {
            world.trace = Some(Trace::default());
        }
    }

    /// What was recorded, if [`record`](Self::record) was called.
    pub fn trace(&self) -> Option<&Trace> {
        self.world.as_ref()?.trace.as_ref()
    }

    /// Switches a CPU on, to run `body`; when that returns, the CPU is off.
    ///
    /// Fails when there is no memory for a stack. A CPU that does not exist stays away.
    pub fn start(&mut self, cpu: CpuId, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        let id = self.add(body)?;
        if let Some(world) = &mut self.world {
            world.switch_on(cpu, id);
        }
        Ok(id)
    }

    /// A fiber that will run `body` when a CPU switches to it. Fails when there is no memory for
    /// a stack.
    pub fn add(&mut self, body: impl FnOnce() + 'static) -> io::Result<FiberId> {
        self.fibers.push(Some(Fiber::new(body)?));
        let id = FiberId(self.fibers.len() as u32 - 1);
        if let Some(world) = &mut self.world {
            world.fibers = self.fibers.len() as u32;
        }
        Ok(id)
    }

    /// Runs until no CPU has anything to do before `until`, or a program stops the machine.
    ///
    /// A panic on a fiber ends all fibers and comes out here. Programs that are still under way
    /// stay where they are and go on in the next run; they may hold locks, so look at what they
    /// share before the run or after [`finish`](Self::finish).
    pub fn run(&mut self, until: Ns) -> Ended {
        match self.try_run(until) {
            Ok(ended) => ended,
            Err(panic) => {
                self.finish();
                resume_unwind(panic)
            }
        }
    }

    fn try_run(&mut self, until: Ns) -> std::thread::Result<Ended> {
        let Some(mut world) = self.world.take() else { return Ok(Ended::Quiet) };
        world.stopping = false;
        WORLD.with(|place| *place.borrow_mut() = Some(world));
        let ended = catch_unwind(AssertUnwindSafe(|| self.turn(Ps::from_ns(until))));
        fiber::forget_way_out();
        self.world = WORLD.with(|place| place.borrow_mut().take());
        if ended.is_err()
            && let Some(world) = &mut self.world
            && let Some(cpu) = world.running.take()
        {
            world.switch_off(cpu);
            world.order.set(cpu, Ps::NEVER);
        }
        ended
    }

    fn turn(&mut self, until: Ps) -> Ended {
        loop {
            let next = with(|world| {
                if !world.spawned.is_empty() {
                    self.fibers.extend(world.spawned.drain(..).map(Some));
                }
                world.next(until)
            });
            let fiber = match next {
                Some(Ok(fiber)) => fiber,
                Some(Err(ended)) => return ended,
                None => return Ended::Quiet,
            };
            let resumed = match self.fibers.get_mut(fiber.0 as usize) {
                Some(Some(fiber)) => fiber.resume(),
                _ => Resumed::Ended,
            };
            fiber::forget_way_out();
            with(|world| world.back(fiber, resumed));
            if resumed == Resumed::Ended
                && let Some(place) = self.fibers.get_mut(fiber.0 as usize)
            {
                *place = None;
            }
        }
    }

    /// Ends all programs that are still under way. Interrupt handlers come to their end, and so
    /// does who holds a lock or waits for one; then all stacks are unwound. A program that
    /// should come to an end of its own does so when [`is_ending`] says so, in a run before.
    pub fn finish(&mut self) {
        if let Some(world) = &mut self.world {
            world.drain();
        }
        while self.inside() > 0 {
            // A second panic says no more than the first.
            if let Ok(Ended::Quiet) = self.try_run(Ns::NEVER) {
                break;
            }
        }
        if self.inside() > 0 {
            // They wait for each other. Unwinding one would have to take the other's lock.
            self.fibers.drain(..).for_each(std::mem::forget);
        }
        self.fibers.clear();
        if let Some(world) = &mut self.world {
            world.spawned.clear();
        }
    }

    fn inside(&self) -> u32 {
        self.world.as_ref().map_or(0, |world| world.inside)
    }

    /// How many priced events there were.
    pub fn events(&self) -> u64 {
        self.world.as_ref().map_or(0, |world| world.events)
    }

    /// A hash over every event's CPU and time. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.world.as_ref().map_or(0, |world| world.digest)
    }

    /// What a CPU did so far.
    pub fn usage(&self, cpu: CpuId) -> Option<crate::cpu::Usage> {
        Some(self.world.as_ref()?.cpus.get(cpu.index())?.usage())
    }

    /// The prices it was made with.
    pub fn costs(&self) -> Option<&Costs> {
        self.world.as_ref().map(|world| &world.costs)
    }
}

impl World {
    /// Chooses who runs next.
    #[inline]
    fn next(&mut self, until: Ps) -> Result<FiberId, Ended> {
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
        self.running = Some(cpu);
        self.horizon = self.order.horizon(cpu);
        let cpu = &mut self.cpus[cpu];
        cpu.clock = cpu.clock.max(key);
        Ok(cpu.fiber)
    }

    /// A fiber handed back.
    #[inline]
    fn back(&mut self, fiber: FiberId, resumed: Resumed) {
        let Some(cpu) = self.running.take() else { return };
        if resumed == Resumed::Ended && self.cpus[cpu].fiber == fiber {
            self.switch_off(cpu);
        }
        let key = self.cpus[cpu].key();
        self.order.set(cpu, key);
    }

    fn switch_on(&mut self, cpu: CpuId, fiber: FiberId) {
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            state.fiber = fiber;
            state.mode = Mode::Running;
            self.order.set(cpu.index(), state.key());
            self.busy[self.costs.topology.core(cpu) as usize] += 1;
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        for cpu in 0..self.cpus.len() {
            self.cpus[cpu].masked += 1;
            self.order.set(cpu, self.cpus[cpu].key());
        }
    }

    fn switch_off(&mut self, cpu: usize) {
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

    /// Counts an event of the CPU that runs.
    #[inline]
    pub(crate) fn count(&mut self, cpu: usize) {
        self.events += 1;
        let what = self.cpus[cpu].clock.0 ^ (cpu as u64) << 48;
        self.digest = (self.digest ^ what).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    #[inline]
    fn may_act(&self, cpu: usize, ahead: Ps) -> Go {
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
    pub(crate) fn line(&mut self, place: &Place) -> LineId {
        let seen = place.0.load(Ordering::Relaxed);
        if seen >> 32 == u64::from(self.serial) {
            return seen as LineId;
        }
        self.new_line(place)
    }

    /// Words that stand directly one behind the other are on one line, eight to a line, as the
    /// fields of a structure would be. Words that only happen to be near each other are not:
    /// where an allocator puts them differs from run to run.
    #[cold]
    fn new_line(&mut self, place: &Place) -> LineId {
        let at = place.address();
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
    fn access(&mut self, cpu: usize, line: LineId, access: Access) {
        self.count(cpu);
        let state = &mut self.cpus[cpu];
        if access != Access::Read {
            // Stores drain in order, and an atomic operation waits for them.
            let drained = state.drained;
            if access == Access::Atomic {
                state.clock = state.clock.max(drained);
            }
        }
        let served = self.lines.serve(line, CpuId(cpu as u16), access, state.clock);
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
    fn park(&mut self) -> bool {
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

/// Where a word is, in the machine that touched it last.
#[derive(Debug, Default)]
pub(crate) struct Place(AtomicU64);

impl Drop for Place {
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

impl Place {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
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

/// Does something as the CPU that runs, once it is that CPU's turn and no interrupt is due.
/// `ahead` says by how much it may run ahead. `None` outside of any simulated CPU.
#[inline]
pub(crate) fn act<R>(
    ahead: impl Fn(&mut World, usize) -> Ps,
    f: impl FnOnce(&mut World, usize) -> R,
) -> Option<R> {
    let mut f = Some(f);
    loop {
        let go = with(|world| {
            let cpu = world.running?;
            let slack = ahead(world, cpu);
            Some(match world.may_act(cpu, slack) {
                Go::Now => Ok(f.take().map(|f| f(world, cpu))),
                wait => Err(wait),
            })
        });
        match go.flatten()? {
            Ok(result) => return result,
            Err(Go::Interrupt) => crate::irq::deliver(),
            Err(_) => fiber::suspend(),
        }
    }
}

/// Accesses a line as the CPU that runs.
#[inline]
pub(crate) fn access(place: &Place, access: Access) {
    act(
        |world, cpu| {
            let line = world.line(place);
            let now = world.cpus[cpu].clock;
            if world.lines.hits(line, CpuId(cpu as u16), access, now) {
                world.nearest
            } else {
                Ps::ZERO
            }
        },
        |world, cpu| {
            let line = world.line(place);
            world.access(cpu, line, access);
        },
    );
}

/// One turn of a waiting loop: parks until what the loop has read is written, or an interrupt
/// comes.
pub(crate) fn relax() {
    let parked = act(
        |_, _| Ps::ZERO,
        |world, cpu| {
            world.count(cpu);
            world.park()
        },
    );
    if parked == Some(true) {
        fiber::suspend();
        with(|world| {
            if let Some(cpu) = world.cpu() {
                cpu.mode = Mode::Running;
            }
        });
    }
}

/// A program is about to take a lock. On a machine that comes to its end it gets no further,
/// unless it is in an interrupt handler. False outside of any simulated CPU, where nobody waits
/// for anybody.
pub(crate) fn begin_locking() -> bool {
    let may = with(|world| {
        let cpu = world.running?;
        let may = !world.draining || world.cpus[cpu].handlers > 0;
        if may {
            world.inside += 1;
        } else {
            world.switch_off(cpu);
        }
        Some(may)
    });
    match may.flatten() {
        Some(true) => true,
        None => false,
        Some(false) => {
            fiber::suspend();
            false
        }
    }
}

/// It has given the lock back.
pub(crate) fn end_locking() {
    with(|world| {
        if world.running.is_some() {
            world.inside = world.inside.saturating_sub(1);
        }
    });
}

/// Asks all programs to come to an end; see [`is_ending`].
pub fn end() {
    with(|world| world.ending = true);
}

/// Has [`end`] been called? Programs that would go on for ever ask now and then. True outside
/// of a machine.
pub fn is_ending() -> bool {
    with(|world| world.ending).unwrap_or(true)
}

/// Takes a line out of all caches, as `clflush` does; free of charge.
pub(crate) fn flush(place: &Place) {
    with(|world| {
        let line = world.line(place);
        world.lines.flush(line);
    });
}

/// Empties all caches; free of charge.
pub fn flush_caches() {
    with(|world| world.lines.flush_all());
}

/// Private work that neither interrupts nor siblings disturb: `amount` passes.
pub fn charge(amount: Ps) {
    with(|world| {
        if let Some(cpu) = world.cpu() {
            cpu.clock += amount;
        }
    });
}

/// The present on the CPU that runs; zero outside.
pub fn clock() -> Ps {
    with(|world| world.cpu().map(|cpu| cpu.clock)).flatten().unwrap_or(Ps::ZERO)
}

/// The CPU that runs; CPU 0 outside.
pub fn here() -> CpuId {
    CpuId(with(|world| world.running).flatten().unwrap_or(0) as u16)
}

/// Ends the run once the CPU that runs is suspended next.
pub fn stop() {
    with(|world| world.stopping = true);
}

/// A fiber that will run `body` when a CPU switches to it. Fails when there is no memory for a
/// stack, and outside of a machine.
pub fn spawn(body: impl FnOnce() + 'static) -> io::Result<FiberId> {
    let fiber = Fiber::new(body)?;
    with(|world| {
        let id = FiberId(world.fibers);
        world.fibers += 1;
        world.spawned.push(fiber);
        id
    })
    .ok_or_else(|| io::Error::other("no machine runs on this thread"))
}

/// The fiber that the CPU that runs is on.
pub fn current() -> Option<FiberId> {
    with(|world| world.cpu().map(|cpu| cpu.fiber)).flatten()
}

/// Leaves this fiber and goes on with another one on the same CPU. Comes back when some CPU
/// switches to this one; what it had disabled stays disabled.
pub fn switch_to(fiber: FiberId) {
    let mine = with(|world| world.cpu().map(|cpu| cpu.hand_over(fiber))).flatten();
    fiber::suspend();
    with(|world| {
        if let (Some(cpu), Some(mine)) = (world.cpu(), mine) {
            cpu.take_over(mine);
        }
    });
}
