//! A little kernel: what the studies need around the timer core, and no timer logic of its own.
//!
//! | file | holds |
//! |---|---|
//! | `task` | tasks, run queues, wakeups, preemption |
//! | `idle` | the idle loop, which stops and restarts the tick |
//! | `pipe` | pipes |
//! | `off` | CPUs that are switched off; who looks after another's base |
//! | here | interrupts, the tick, sleeping, the expiry thread |
//!
//! The tick is a precise timer of the library, armed and cancelled like any other; so are the
//! timers that sleeping tasks wait for. Bases, cancelling, rearming, collecting and firing are
//! the core's.
//!
//! # Ground rules
//!
//! - What several CPUs use has a price: each run queue is behind a simulated lock. A task's own
//!   record is the host's memory and free; what it costs is part of the named charges.
//! - Nothing is borrowed across a priced step: any of them may run another CPU.
//! - A task changes its CPU only when it is woken, and not before it has left the last one.

mod idle;
mod off;
mod pipe;
mod task;

pub use pipe::Pipe;
pub use task::{Class, TaskId};

use crate::cost::OsCosts;
use crate::engine::{self, FiberId, Machine};
use crate::irq::{Masked, Vector};
use crate::platform::{self, Sim, SimLock};
use crate::ps::Ps;
use crate::random::Random;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use task::{RunQueue, Task};
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Deferral, Options, Settings};
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::periodic;
use tickless_core::platform::Lock;
use tickless_core::rearm::HandlerEnd;
use tickless_core::time::{CpuId, Ns, Window};

/// How a kernel is set up.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The timer core's settings: the switches of the studies.
    pub timers: Settings,
    /// From tick to tick.
    pub tick: Ns,
    /// How far apart the CPUs' ticks are.
    pub skew: Skew,
    /// Does an idle CPU stop its tick?
    pub idle: IdleTick,
    /// Each tick looks after another CPU's base, whose event may be late by this much without
    /// being called lost; [`Ns::NEVER`]: nobody does.
    pub grace: Ns,
    /// From when on a task's time on a CPU is counted.
    pub clocked: Clocked,
    /// How long a fair task runs while others wait, if a timer of the scheduler's ends its turn;
    /// otherwise the tick does.
    pub slice: Option<Ns>,
}

/// From when on a task's time on a CPU is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocked {
    /// From when its CPU switches to it.
    FromSwitch,
    /// From when it is put in the queue of a CPU that idles. Linux 3.10 does not read the queue's
    /// clock again before it switches to the task, so that the way out of idle counts as its.
    FromQueue,
}

/// How far apart the ticks of a machine's CPUs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skew {
    /// All at once, to the picosecond: no real machine does that.
    None,
    /// Spread evenly over half a period, as a kernel does that is told to skew its ticks.
    HalfPeriod,
    /// Each CPU's by something up to `most`, drawn once: what the CPUs' own event devices make of
    /// the same time.
    Drawn {
        /// The greatest.
        most: Ns,
        /// What is drawn.
        seed: u64,
    },
}

impl Skew {
    /// How far a CPU's ticks are behind the multiples of the period.
    fn of(self, cpu: CpuId, cpus: usize, period: Ns) -> Ns {
        match self {
            Skew::None => Ns::ZERO,
            Skew::HalfPeriod => Ns(period.0 / 2 * u64::from(cpu.0) / cpus.max(1) as u64),
            Skew::Drawn { most, seed } => {
                Ns(Random::new(seed << 16 | u64::from(cpu.0)).below(most.0.saturating_add(1)))
            }
        }
    }
}

/// What an idle CPU does with its tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTick {
    /// It goes on.
    Keeps,
    /// It is cancelled, and armed again when the CPU leaves idle.
    Stops,
    /// It is moved this far ahead, to where the CPU's next coarse timer is due, which Linux's
    /// wheel rides on it for; leaving idle cancels it and arms it anew.
    Moves(Ns),
}

/// A precise timer of the machine's bases.
pub type Timer = OwnedTimer<Sim, QueueLink>;

/// A callback that somebody outside has given.
type Callback = Rc<dyn Fn(&Firing<Sim>) -> CallbackResult>;

/// What a timer's task number stands for.
#[derive(Clone)]
enum Action {
    Tick,
    Slice,
    Wake(TaskId),
    Run(Callback),
}

/// What one CPU has.
struct PerCpu {
    queue: SimLock<RunQueue>,
    current: Cell<TaskId>,
    idle: Cell<TaskId>,
    must_choose: Cell<bool>,
    tick: RefCell<Option<Timer>>,
    /// The scheduler's slice: lazy.
    slice: RefCell<Option<Timer>>,
    /// Has a handler put the device off?
    must_settle: Cell<bool>,
    ticks: Cell<u64>,
    /// The thread that fires what was collected, on bases that defer.
    expirer: Cell<Option<TaskId>>,
    /// Programs on it that must not stand still just now.
    steady: Cell<u32>,
    /// Until when it is to be switched off.
    off_until: Cell<Ps>,
    is_off: Cell<bool>,
}

/// A sleep of an idle CPU, for who checks that it did not sleep through anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slept {
    /// Which.
    pub cpu: CpuId,
    /// When it went to sleep.
    pub from: Ns,
    /// When its base's first timer was due then.
    pub earliest: Ns,
    /// When it woke.
    pub to: Ns,
}

/// Who checks sleeps.
type SleepCheck = Rc<dyn Fn(Slept)>;

/// The kernel of one machine.
pub struct Kernel {
    bases: Arc<Bases<Sim>>,
    config: Config,
    costs: OsCosts,
    cpus: Vec<PerCpu>,
    tasks: RefCell<Vec<Task>>,
    actions: RefCell<Vec<Action>>,
    sleep_check: RefCell<Option<SleepCheck>>,
    /// Is somebody in the middle of taking a base offline or online?
    is_plugging: Cell<bool>,
    deaths: Cell<(u64, u64)>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("cpus", &self.cpus.len()).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Boots a machine: every CPU idles, with its tick as the configuration says. Tasks are
    /// added before the machine runs, or by tasks. Fails when there is no memory for stacks.
    pub fn boot(machine: &mut Machine, config: Config) -> io::Result<Rc<Kernel>> {
        let Some(costs) = machine.costs().cloned() else {
            return Err(io::Error::other("the machine is running"));
        };
        let cpus = costs.topology.cpus();
        let kernel = Rc::new(Kernel {
            bases: Arc::new(Bases::new(Sim, cpus, config.timers)),
            config,
            costs: costs.os,
            cpus: (0..cpus).map(|_| PerCpu::new()).collect(),
            tasks: RefCell::new(Vec::new()),
            actions: RefCell::new(vec![Action::Tick, Action::Slice]),
            sleep_check: RefCell::new(None),
            is_plugging: Cell::new(false),
            deaths: Cell::new((0, 0)),
        });
        let handler = Rc::clone(&kernel);
        machine.on_interrupt(move |vector| handler.interrupt(vector));
        let hook = Rc::clone(&kernel);
        machine.on_return(move || hook.preempt());
        for cpu in 0..cpus {
            let idle = Rc::clone(&kernel);
            let fiber = machine.start(CpuId(cpu), move || idle.idle_loop(CpuId(cpu)))?;
            let task = kernel.add(Task::idle(CpuId(cpu), fiber));
            kernel.cpus[cpu as usize].idle.set(task);
            kernel.cpus[cpu as usize].current.set(task);
        }
        Ok(kernel)
    }

    /// The timer core's bases.
    pub fn bases(&self) -> &Arc<Bases<Sim>> {
        &self.bases
    }

    /// Ticks that a CPU has taken.
    pub fn ticks(&self, cpu: CpuId) -> u64 {
        self.cpus.get(cpu.index()).map_or(0, |cpu| cpu.ticks.get())
    }

    /// A timer whose callback is `run`, called in the interrupt, or in the expiry thread if it
    /// was armed for that.
    pub fn timer(&self, run: impl Fn(&Firing<Sim>) -> CallbackResult + 'static) -> Timer {
        OwnedTimer::new(&self.bases, self.action(Action::Run(Rc::new(run))))
    }

    /// The number by which timers name `run`, for timers of other families.
    pub fn callback(&self, run: impl Fn(&Firing<Sim>) -> CallbackResult + 'static) -> u64 {
        self.action(Action::Run(Rc::new(run)))
    }

    /// A timer that wakes the task that calls this; for [`sleep_until`](Self::sleep_until).
    pub fn alarm(&self) -> Timer {
        OwnedTimer::new(&self.bases, self.action(Action::Wake(self.current())))
    }

    /// Sleeps until a time, with a timer from [`alarm`](Self::alarm). Returns when it is over
    /// and the task runs again.
    pub fn sleep_until(&self, alarm: &Timer, at: Ns) {
        engine::charge(self.costs.syscall);
        let now = platform::now();
        if now >= at {
            return;
        }
        // An alarm is never shut down, so it can be armed.
        let started = || alarm.start(Window::new(at, at), now, Options::default());
        let _ = self.steadily(started);
        while platform::now() < at {
            self.block();
        }
    }

    /// Has a thread fire what interrupts collect, on every CPU: for bases that defer.
    pub fn start_expirers(self: &Rc<Self>, machine: &mut Machine, class: Class) -> io::Result<()> {
        for cpu in 0..self.cpus.len() as u16 {
            let cpu = CpuId(cpu);
            let kernel = Rc::clone(self);
            let task = self.spawn(machine, class, Some(cpu), move || {
                loop {
                    kernel.fire(cpu);
                    kernel.block();
                }
            })?;
            self.cpus[cpu.index()].expirer.set(Some(task));
        }
        Ok(())
    }

    fn action(&self, action: Action) -> u64 {
        let mut actions = self.actions.borrow_mut();
        actions.push(action);
        actions.len() as u64 - 1
    }

    fn interrupt(&self, vector: Vector) {
        let cpu = engine::here();
        match vector {
            Vector::Reschedule => self.cpus[cpu.index()].must_choose.set(true),
            Vector::Stop => self.switch_off(cpu),
            Vector::Timer | Vector::Look => {
                let run = |firing: &Firing<Sim>| self.run_callback(firing);
                let defers = self.config.timers.handler_end == HandlerEnd::Defers;
                self.cpus[cpu.index()].must_settle.set(defers);
                if self.config.timers.deferral == Deferral::None {
                    self.bases.expire(cpu, run);
                } else {
                    let collected = self.bases.collect(cpu, run);
                    self.answer(collected.call);
                }
            }
        }
    }

    fn run_callback(&self, firing: &Firing<Sim>) -> CallbackResult {
        let action = self.actions.borrow().get(firing.task as usize).cloned();
        match action {
            None => CallbackResult::Done,
            Some(Action::Tick) => self.tick(firing),
            Some(Action::Slice) => {
                self.share_fairly();
                CallbackResult::Done
            }
            Some(Action::Wake(task)) => {
                self.wake(task);
                CallbackResult::Done
            }
            Some(Action::Run(run)) => run(firing),
        }
    }

    fn tick(&self, firing: &Firing<Sim>) -> CallbackResult {
        let cpu = engine::here();
        let mine = &self.cpus[cpu.index()];
        mine.ticks.set(mine.ticks.get() + 1);
        engine::charge(self.costs.tick);
        if cpu == TIMEKEEPER {
            engine::charge(self.costs.timekeeping);
        }
        let call = self.bases.tick(cpu);
        self.answer(call);
        self.look_after_another(cpu, mine.ticks.get());
        if self.config.slice.is_none() {
            self.share_fairly();
        }
        let ends = engine::is_ending();
        let is_idle = mine.current.get() == mine.idle.get();
        if ends || is_idle && self.config.idle != IdleTick::Keeps {
            return CallbackResult::Done;
        }
        CallbackResult::Restart(periodic::forward(firing.window, firing.now, self.config.tick).0)
    }

    fn answer(&self, call: Call) {
        if call == Call::Thread
            && let Some(task) = self.cpus[engine::here().index()].expirer.get()
        {
            self.wake(task);
        }
    }

    /// Arms this CPU's tick for the next multiple of its period, unless it is armed.
    fn start_tick(&self, cpu: CpuId) {
        let now = platform::now();
        let period = self.config.tick;
        let offset = self.config.skew.of(cpu, self.cpus.len(), period);
        let past = now.since(offset);
        let next = Ns(past.0 - past.0 % period.0).after(period).after(offset);
        self.with_tick(cpu, |tick| {
            if matches!(self.config.idle, IdleTick::Moves(_)) {
                tick.cancel();
            }
            if !tick.is_pending() {
                let _ = tick.start(Window::new(next, next), now, Options::default());
            }
        });
    }

    /// The CPU goes idle.
    fn quiet_tick(&self, cpu: CpuId) {
        match self.config.idle {
            IdleTick::Keeps => {}
            IdleTick::Stops => self.stop_tick(cpu),
            IdleTick::Moves(ahead) => {
                let now = platform::now();
                let next = now.after(ahead);
                self.with_tick(cpu, |tick| {
                    let _ = tick.start(Window::new(next, next), now, Options::default());
                });
            }
        }
    }

    fn stop_tick(&self, cpu: CpuId) {
        self.with_tick(cpu, |tick| {
            tick.cancel();
        });
    }

    /// Arms this CPU's slice, which ends the turn of the task that it goes on with.
    fn start_slice(&self, cpu: CpuId, slice: Ns) {
        let _masked = Masked::new();
        let place = &self.cpus[cpu.index()].slice;
        let timer = place.borrow_mut().take();
        let timer = timer.unwrap_or_else(|| OwnedTimer::lazy(&self.bases, SLICE));
        let now = platform::now();
        let end = now.after(slice);
        let _ = timer.start(Window::new(end, end), now, Options::default());
        *place.borrow_mut() = Some(timer);
    }

    /// Programs the device, if a handler has left that to whoever chooses the next task.
    fn settle(&self, cpu: CpuId) {
        if self.cpus[cpu.index()].must_settle.take() {
            self.bases.settle_device(cpu);
        }
    }

    /// Lends the tick out of its place.
    fn with_tick(&self, cpu: CpuId, f: impl FnOnce(&Timer)) {
        let _masked = Masked::new();
        let place = &self.cpus[cpu.index()].tick;
        let taken = place.borrow_mut().take();
        let tick = taken.unwrap_or_else(|| OwnedTimer::new(&self.bases, 0));
        f(&tick);
        *place.borrow_mut() = Some(tick);
    }
}

impl PerCpu {
    fn new() -> PerCpu {
        PerCpu {
            queue: SimLock::new(RunQueue::default()),
            current: Cell::new(TaskId::NONE),
            idle: Cell::new(TaskId::NONE),
            must_choose: Cell::new(false),
            tick: RefCell::new(None),
            slice: RefCell::new(None),
            must_settle: Cell::new(false),
            ticks: Cell::new(0),
            expirer: Cell::new(None),
            steady: Cell::new(0),
            off_until: Cell::new(Ps::ZERO),
            is_off: Cell::new(false),
        }
    }
}

/// What a task has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskUsage {
    /// How long it was on a CPU, the interrupts that it suffered included.
    pub ran: Ps,
    /// How often it was put on one.
    pub switches: u64,
}

/// What a slice's timer hands back.
const SLICE: u64 = 1;

/// The CPU whose tick keeps the time for all.
const TIMEKEEPER: CpuId = CpuId(0);

/// The fiber of a task that is only being made.
const UNBORN: FiberId = FiberId(u32::MAX);
