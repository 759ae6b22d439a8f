//! A little operating system kernel for the simulated machine: the tasks, pipes and interrupts that
//! the studies need around the timer library. It has no timer logic of its own.
//!
//! The tick and the timers of sleeping tasks are precise timers of the timer library. The library's
//! own code keeps them, arms and cancels them, finds the expired ones, and calls their callbacks.
//!
//! # Ground rules
//!
//! - Access to data that several CPUs share takes simulated time: each run queue is behind a
//!   simulated lock. Access to a task's own record takes no time; the fixed prices of a wakeup and
//!   of a switch include it.
//! - No `RefCell` is borrowed during a step that takes simulated time, because another CPU's code
//!   can run then.
//! - A task changes its CPU only when it is woken, and not before it has left the last one.

mod idle;
mod off;
mod pipe;
mod queue;
mod slice;
mod task;

pub use pipe::Pipe;
pub use queue::{Class, TaskId};

use crate::cost::OsCosts;
use crate::cpu;
use crate::engine::Machine;
use crate::irq::{self, Vector};
use crate::platform::{self, Sim, SimLock};
use crate::ps::Ps;
use crate::random::Random;
use crate::topology::Topology;
use queue::RunQueue;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use task::Task;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Deferral, Options, Settings};
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::periodic;
use tickless_core::platform::Lock;
use tickless_core::rearm::{HandlerEnd, LazyTimers};
use tickless_core::time::{CpuId, Ns, Window};

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub timers: Settings,
    pub tick: Ns,
    pub skew: Skew,
    pub idle: IdleTick,
    /// How late another CPU's timer interrupt can be before a tick concludes that it was lost. With
    /// [`Ns::NEVER`], ticks do not check other CPUs.
    pub grace: Ns,
    pub clocked: Clocked,
    /// Whether a timer ends the slice of a fair task while others wait. Each tick does, if it is
    /// used up.
    pub has_slice_timer: bool,
}

impl Config {
    /// Whether the scheduler is that of Linux 7.1 and later, which lazy timers came with.
    fn is_since_7_1(&self) -> bool {
        self.timers.lazy_timers == LazyTimers::Honoured
    }
}

/// The event from which a task's CPU time is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocked {
    FromSwitch,
    /// The task's entry into the queue of an idle CPU. This is what Linux 3.10 does: it does not
    /// read the queue's clock again before it switches to the task, so the time for leaving idle
    /// counts as the task's. A waker on the same socket puts the task into the queue itself. A
    /// waker on another socket sends an interrupt, whose handler does so.
    FromQueue,
}

/// By how much the ticks (periodic timer interrupts) of the CPUs are shifted against each other:
/// each CPU has a fixed random offset, as on real machines, whose timer devices differ a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skew {
    pub most: Ns,
    pub seed: u64,
}

impl Skew {
    /// All CPUs tick at exactly the same time, unlike on any real machine.
    pub const NONE: Skew = Skew { most: Ns::ZERO, seed: 0 };

    fn of(self, cpu: CpuId) -> Ns {
        let mut random = Random::new(self.seed << 16 | u64::from(cpu.0));
        Ns(random.below(self.most.0.saturating_add(1)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTick {
    Keeps,
    Stops,
    /// An idle CPU arms its tick this far in the future, which stands for the CPU's next coarse
    /// timer: in Linux the tick expires the timer wheel. When the CPU leaves idle, it cancels the
    /// tick and arms it at the usual time.
    Moves(Ns),
}

pub type Timer = OwnedTimer<Sim, QueueLink>;

type Callback = Rc<dyn Fn(&Firing<Sim>) -> CallbackResult>;

/// What a timer does when it fires. The task number that the timer library stores with a timer is
/// an index into [`Kernel`]'s list of actions.
#[derive(Clone)]
enum Action {
    Tick,
    Slice,
    Wake(TaskId),
    Run(Callback),
}

struct PerCpu {
    queue: SimLock<RunQueue>,
    current: Cell<TaskId>,
    idle: Cell<TaskId>,
    must_choose: Cell<bool>,
    /// Whether a task that is in the kernel must be preempted there, too: only since Linux 7.0.
    must_choose_now: Cell<bool>,
    /// The time at which another CPU's latest request to choose a task arrived.
    interrupted: Cell<Ps>,
    tick: Timer,
    slice: Option<Timer>,
    /// Whether an interrupt handler has left the timer device unprogrammed. Then the CPU programs
    /// it before it continues with a task or sleeps.
    must_settle: Cell<bool>,
    ticks: Cell<u64>,
    expirer: Cell<Option<TaskId>>,
    kept_on: Cell<u32>,
    off_until: Cell<Ps>,
    is_off: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleSleep {
    pub cpu: CpuId,
    pub from: Ns,
    pub earliest: Ns,
    pub to: Ns,
}

type SleepCheck = Rc<dyn Fn(IdleSleep)>;

pub struct Kernel {
    bases: Arc<Bases<Sim>>,
    config: Config,
    costs: OsCosts,
    /// The duration of a round of a waiting loop.
    pause: Ps,
    topology: Topology,
    cpus: Vec<PerCpu>,
    tasks: RefCell<Vec<Task>>,
    actions: RefCell<Vec<Action>>,
    sleep_check: RefCell<Option<SleepCheck>>,
    is_plugging: Cell<bool>,
    power_offs: Cell<(u64, u64)>,
}

impl Kernel {
    /// Boots the kernel on a machine: each CPU runs its idle task, and has a tick as configured.
    /// Tasks can be added before the machine runs, and later by other tasks. Fails when there is no
    /// memory for stacks.
    pub fn boot(machine: &mut Machine, config: Config) -> io::Result<Rc<Kernel>> {
        let Some(costs) = machine.costs().cloned() else {
            return Err(io::Error::other("the machine is running"));
        };
        let cpus = costs.topology.cpus();
        let bases = Arc::new(Bases::new(Sim, cpus, config.timers));
        let kernel = Rc::new(Kernel {
            cpus: (0..cpus).map(|_| PerCpu::new(&bases, cpus, &config)).collect(),
            bases,
            config,
            costs: costs.os,
            pause: costs.pause,
            topology: costs.topology,
            tasks: RefCell::new(Vec::new()),
            actions: RefCell::new(vec![Action::Tick, Action::Slice]),
            sleep_check: RefCell::new(None),
            is_plugging: Cell::new(false),
            power_offs: Cell::new((0, 0)),
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

    pub fn bases(&self) -> &Arc<Bases<Sim>> {
        &self.bases
    }

    pub fn ticks(&self, cpu: CpuId) -> u64 {
        self.cpus.get(cpu.index()).map_or(0, |cpu| cpu.ticks.get())
    }

    /// Returns a timer that runs this callback in the timer interrupt. If an arming of the timer
    /// asks for it, the CPU's expiry thread runs the callback instead.
    pub fn timer(&self, run: impl Fn(&Firing<Sim>) -> CallbackResult + 'static) -> Timer {
        OwnedTimer::new(&self.bases, self.action(Action::Run(Rc::new(run))))
    }

    /// Registers a callback, and returns its number. A timer that the caller makes itself, such as
    /// a coarse one, stores the number as its task.
    pub fn callback(&self, run: impl Fn(&Firing<Sim>) -> CallbackResult + 'static) -> u64 {
        self.action(Action::Run(Rc::new(run)))
    }

    pub fn alarm(&self) -> Timer {
        OwnedTimer::new(&self.bases, self.action(Action::Wake(self.current())))
    }

    pub fn sleep_until(&self, alarm: &Timer, at: Ns) {
        cpu::charge(self.costs.syscall);
        let now = platform::now();
        if now >= at {
            return;
        }
        // Arming fails only after the timer was shut down, which never happens to an alarm (the
        // timer that ends a task's sleep).
        let arm = |now| _ = self.keep_on(|| alarm.start(Window::at(at), now, Options::default()));
        arm(now);
        while platform::now() < at {
            self.block();
            // The alarm has perhaps fired by the clock of another CPU, which a test can make to
            // differ from this CPU's.
            if !alarm.is_active() {
                let now = platform::now();
                if now < at {
                    arm(now);
                }
            }
        }
    }

    /// Starts an expiry thread on every CPU. It runs the callbacks of expired timers, if the
    /// settings move callbacks out of the interrupt handler.
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

    /// Stores what a timer does when it fires. Returns the number by which it is found.
    fn action(&self, action: Action) -> u64 {
        let mut actions = self.actions.borrow_mut();
        actions.push(action);
        actions.len() as u64 - 1
    }

    fn interrupt(&self, vector: Vector) {
        let cpu = cpu::here();
        match vector {
            Vector::Reschedule => {
                self.cpus[cpu.index()].interrupted.set(cpu::clock());
                self.must_choose_now(cpu);
            }
            Vector::Slice => self.share_slice(cpu),
            Vector::Stop => self.switch_off(cpu),
            Vector::Timer | Vector::Look => {
                let run = |firing: &Firing<Sim>| self.run_callback(firing);
                let defers = self.config.timers.handler_end == HandlerEnd::Defers;
                self.cpus[cpu.index()].must_settle.set(defers);
                if self.config.timers.deferral == Deferral::None {
                    self.bases.expire(cpu, run);
                } else {
                    self.wake_expirer(self.bases.collect(cpu, run).call);
                }
            }
        }
    }

    fn must_choose_now(&self, cpu: CpuId) {
        let mine = &self.cpus[cpu.index()];
        mine.must_choose.set(true);
        mine.must_choose_now.set(self.config.is_since_7_1());
    }

    fn run_callback(&self, firing: &Firing<Sim>) -> CallbackResult {
        let action = self.actions.borrow().get(firing.task as usize).cloned();
        match action {
            None => CallbackResult::Done,
            Some(Action::Tick) => self.tick(firing),
            Some(Action::Slice) => {
                self.must_choose_now(cpu::here());
                CallbackResult::Done
            }
            Some(Action::Wake(task)) => {
                self.wake(task);
                CallbackResult::Done
            }
            Some(Action::Run(run)) => run(firing),
        }
    }

    /// The tick's callback. On an idle CPU, restarts the tick only if idle CPUs keep their ticks.
    fn tick(&self, firing: &Firing<Sim>) -> CallbackResult {
        let cpu = cpu::here();
        let mine = &self.cpus[cpu.index()];
        mine.ticks.set(mine.ticks.get() + 1);
        cpu::charge(self.costs.tick);
        if cpu == TIMEKEEPER {
            cpu::charge(self.costs.timekeeping);
        }
        self.wake_expirer(self.bases.tick(cpu));
        self.check_another_base(cpu, mine.ticks.get());
        // A task that was asked to make way in the kernel has had a tick's time to leave it.
        mine.must_choose_now.set(self.config.is_since_7_1() && mine.must_choose.get());
        self.share_fairly();
        let is_idle = mine.current.get() == mine.idle.get();
        if is_idle && self.config.idle != IdleTick::Keeps {
            return CallbackResult::Done;
        }
        CallbackResult::Restart(periodic::forward(firing.window, firing.now, self.config.tick).0)
    }

    fn wake_expirer(&self, call: Call) {
        if call == Call::Thread
            && let Some(task) = self.cpus[cpu::here().index()].expirer.get()
        {
            self.wake(task);
        }
    }

    /// Arms this CPU's tick for the next multiple of its period, shifted by the CPU's offset. An
    /// armed tick stays as it is, unless idle CPUs move their ticks.
    fn start_tick(&self, cpu: CpuId) {
        let now = platform::now();
        let period = self.config.tick;
        let offset = self.config.skew.of(cpu);
        let past = now.since(offset);
        let next = Ns(past.0 - past.0 % period.0).after(period).after(offset);
        let _masked = irq::mask();
        let tick = &self.cpus[cpu.index()].tick;
        if matches!(self.config.idle, IdleTick::Moves(_)) {
            tick.cancel();
        }
        if !tick.is_pending() {
            let _ = tick.start(Window::at(next), now, Options::default());
        }
    }

    fn tick_enter_idle(&self, cpu: CpuId) {
        match self.config.idle {
            IdleTick::Keeps => {}
            IdleTick::Stops => self.stop_tick(cpu),
            IdleTick::Moves(ahead) => {
                let now = platform::now();
                let _masked = irq::mask();
                let tick = &self.cpus[cpu.index()].tick;
                let _ = tick.start(Window::at(now.after(ahead)), now, Options::default());
            }
        }
    }

    fn stop_tick(&self, cpu: CpuId) {
        let _masked = irq::mask();
        self.cpus[cpu.index()].tick.cancel();
    }

    /// Programs the CPU's timer device, if an interrupt handler has not done so (`must_settle`).
    fn settle(&self, cpu: CpuId) {
        if self.cpus[cpu.index()].must_settle.take() {
            self.bases.settle_device(cpu);
        }
    }
}

impl PerCpu {
    fn new(bases: &Arc<Bases<Sim>>, cpus: u16, config: &Config) -> PerCpu {
        PerCpu {
            queue: SimLock::new(RunQueue::new(cpus, config)),
            current: Cell::new(TaskId::NONE),
            idle: Cell::new(TaskId::NONE),
            must_choose: Cell::new(false),
            must_choose_now: Cell::new(false),
            interrupted: Cell::new(Ps::ZERO),
            tick: OwnedTimer::new(bases, TICK),
            slice: config.has_slice_timer.then(|| OwnedTimer::lazy(bases, SLICE)),
            must_settle: Cell::new(false),
            ticks: Cell::new(0),
            expirer: Cell::new(None),
            kept_on: Cell::new(0),
            off_until: Cell::new(Ps::ZERO),
            is_off: Cell::new(false),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskUsage {
    pub ran: Ps,
    pub switches: u64,
}

/// The task numbers (indexes in the list of actions) of two kinds of timers: the ticks, and the
/// timers that end a fair task's turn.
const TICK: u64 = 0;
const SLICE: u64 = 1;

const TIMEKEEPER: CpuId = CpuId(0);
