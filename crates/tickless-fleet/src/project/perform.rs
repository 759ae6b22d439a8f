//! The run of a trace on a simulated machine.

use super::figures::{Counts, Projection, Ran};
use super::layout::{Layout, Step};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tickless_clock::combined::ReadPolicy;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::Platform;
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{DeviceCounts, Limits};
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::engine::{self, Ended, Machine};
use tickless_machine::irq::{Masked, Vector};
use tickless_machine::platform::{self, Sim};
use tickless_machine::ps::Ps;
use tickless_machine::shared_clock::SharedClock;
use tickless_machine::spec::Spec;
use tickless_machine::{cpu, study::sized};
use tickless_trace::replay::ReplayPolicy;
use tickless_trace::replay::streams::{Arming, Family, Streams, What};

/// What a kernel on the machine reads the time from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Each CPU's own cycle counter.
    Tsc,
    /// One slow counter, read by everybody.
    Hpet,
    /// One slow counter, read by one CPU for all.
    Combined,
}

/// What is to be worked out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// How many CPUs the machine is to have; it has the next number that it can have.
    pub cpus: u16,
    /// What removals do to the event device.
    pub policy: ReplayPolicy,
    /// Where the time is read from.
    pub clock: Clock,
    /// Where randomness starts.
    pub seed: u64,
    /// How much of the trace is run; [`Request::OPERATIONS`] operations' worth if `None`.
    pub seconds: Option<f64>,
}

/// Why a trace cannot be laid onto a machine.
#[derive(Debug)]
pub enum ProjectError {
    /// Nothing happens in the trace.
    NoOperations,
    /// The policy needs a scheduler, which a trace of timers does not show.
    Policy(ReplayPolicy),
    /// Memory for the simulated CPUs' stacks.
    Memory(io::Error),
    /// The trace is longer than a simulated machine of this size reaches.
    TooLong,
}

impl Clock {
    /// All of them.
    pub const ALL: [Clock; 3] = [Clock::Tsc, Clock::Hpet, Clock::Combined];

    /// The name in files, in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Tsc => "tsc",
            Clock::Hpet => "hpet",
            Clock::Combined => "combined",
        }
    }
}

impl Request {
    /// How many operations are run unless told otherwise: some seconds on one CPU.
    pub const OPERATIONS: u64 = 1_000_000;
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProjectError::NoOperations => f.write_str(
                "the trace has no operations on timers to lay onto a machine; record timer:*",
            ),
            ProjectError::Policy(policy) => write!(
                f,
                "a projection knows eager, lazy and restart-aware, not {}: it has no scheduler",
                policy.name()
            ),
            ProjectError::TooLong => f.write_str(
                "the trace is longer than a simulated machine of so many CPUs can run: some hours; \
                 ask for fewer seconds",
            ),
            ProjectError::Memory(error) => {
                write!(f, "memory for the simulated CPUs' stacks: {error}; ask for fewer CPUs")
            }
        }
    }
}

impl std::error::Error for ProjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ProjectError::Memory(error) => Some(error),
            _ => None,
        }
    }
}

/// Lays a trace onto a machine like `like`, and runs it once. Takes some microseconds for each
/// operation, on one thread; the same request comes to the same result.
///
/// # Errors
///
/// See [`ProjectError`].
pub fn project(
    streams: &Streams,
    like: &Spec,
    request: &Request,
) -> Result<Projection, ProjectError> {
    if !ReplayPolicy::USUAL.contains(&request.policy) {
        return Err(ProjectError::Policy(request.policy));
    }
    let machine = sized(like, request.cpus);
    // A machine has whole sockets; the CPUs that were not asked for stay off.
    let cpus = request.cpus.clamp(1, machine.cpus);
    let window = window(streams, cpus, request.seconds).ok_or(ProjectError::NoOperations)?;
    let layout = Layout::new(streams, cpus, window, request.seed);
    let (operations, remote) = (layout.len() as u64, layout.remote() as u64);
    let costs = machine.spec.costs();
    let mut simulated = Machine::new(costs.clone());
    let run = Rc::new(Run::new(streams, layout, machine.cpus, request));
    let handler = Rc::clone(&run);
    simulated.on_interrupt(move |vector| handler.interrupt(vector));
    for cpu in 0..cpus {
        let run = Rc::clone(&run);
        let body = move || run.body(CpuId(cpu));
        simulated.start(CpuId(cpu), body).map_err(ProjectError::Memory)?;
    }
    if simulated.run(Ns::NEVER) == Ended::OutOfRange {
        return Err(ProjectError::TooLong);
    }
    let digest = simulated.digest();
    drop(simulated);
    let ran = Ran { counts: run.counts.take(), operations, remote, digest };
    Ok(Projection::new(ran, &costs, cpus, window, streams, request))
}

/// How much of the trace is run: whole ticks of it.
fn window(streams: &Streams, cpus: u16, seconds: Option<f64>) -> Option<Ns> {
    let span = streams.ends.since(streams.begins);
    let all: usize = streams.lives.iter().map(Vec::len).sum();
    if all == 0 || span == Ns::ZERO {
        return None;
    }
    const TICKS_MIN: u64 = 4;
    let tick = (streams.tick.length().as_nanos() as u64).max(1);
    let each = all as f64 / f64::from(streams.cpus.max(1));
    let wanted = match seconds {
        Some(seconds) => seconds * 1e9,
        None => span.0 as f64 * Request::OPERATIONS as f64 / (each * f64::from(cpus)).max(1.0),
    };
    if wanted >= span.0 as f64 {
        return Some(span);
    }
    let ticks = ((wanted / tick as f64).ceil() as u64).max(TICKS_MIN);
    Some(Ns(ticks * tick).min(span))
}

/// What the CPUs of a run share. Nothing of it is borrowed across a priced step.
struct Run {
    bases: Arc<Bases<Sim>>,
    layout: Layout,
    families: Vec<Family>,
    source: Clock,
    clock: RefCell<Option<Rc<SharedClock>>>,
    /// By the CPU that is a timer's home, and by its slot there.
    timers: RefCell<Vec<Vec<Instance>>>,
    counts: RefCell<Counts>,
    /// By CPU: what its device had been put through when the stretch began.
    before: RefCell<Vec<DeviceCounts>>,
    measured: Cell<bool>,
}

/// A timer of the trace on a CPU of the machine.
struct Instance {
    timer: Rc<Timer>,
    /// How often it has expired.
    fired: u32,
    /// What its callback did each time.
    again: Vec<Option<Arming>>,
    /// Armed for a moment that was guessed.
    is_guessed: bool,
}

enum Timer {
    Coarse(OwnedTimer<Sim, WheelLink<<Sim as Platform>::Word>>),
    Precise(OwnedTimer<Sim, QueueLink>),
}

impl Run {
    fn new(streams: &Streams, layout: Layout, bases: u16, request: &Request) -> Run {
        let settings = request.policy.set(Settings {
            tick: streams.tick,
            push_out: PushOut::Eager,
            limits: Limits { passes: u32::MAX, ..Limits::NONE },
            wheel: streams.wheel,
            ..Settings::default()
        });
        let cpus = layout.steps.len();
        let run = Run {
            bases: Arc::new(Bases::new(Sim, bases, settings)),
            families: streams.families.clone(),
            source: request.clock,
            clock: RefCell::new(None),
            timers: RefCell::default(),
            counts: RefCell::new(Counts::default()),
            before: RefCell::new(vec![DeviceCounts::default(); cpus]),
            measured: Cell::new(false),
            layout,
        };
        run.make_timers();
        run
    }

    /// Makes the timers before the machine runs: that is free.
    fn make_timers(&self) {
        let mut timers = self.timers.borrow_mut();
        for (home, all) in self.layout.timers.iter().enumerate() {
            let new = |(slot, &timer): (usize, &u32)| Instance {
                timer: Rc::new(self.make(CpuId(home as u16), slot as u32, timer)),
                fired: 0,
                again: Vec::new(),
                is_guessed: false,
            };
            timers.push(all.iter().enumerate().map(new).collect());
        }
        for step in self.layout.steps.iter().flatten() {
            let instance: &mut Instance = &mut timers[step.home.index()][step.slot as usize];
            if let What::Expire(again) = step.what {
                let place = step.expiry as usize;
                instance.again.resize(instance.again.len().max(place + 1), None);
                instance.again[place] = again;
            }
        }
    }

    fn make(&self, home: CpuId, slot: u32, timer: u32) -> Timer {
        let task = u64::from(home.0) << 32 | u64::from(slot);
        match self.families[timer as usize] {
            Family::Coarse => Timer::Coarse(OwnedTimer::new(&self.bases, task)),
            Family::Precise => Timer::Precise(OwnedTimer::new(&self.bases, task)),
        }
    }

    /// What a CPU does.
    fn body(&self, cpu: CpuId) {
        const BEFORE: Ns = Ns::from_ms(5);
        if cpu == CpuId(0) {
            self.set_up_clock();
        }
        cpu::wait_until(Ps::from_ns(Ns(self.layout.begins.0.saturating_sub(BEFORE.0))));
        for &(slot, arming) in &self.layout.pending[cpu.index()] {
            let masked = Masked::new();
            self.arm(cpu, slot, arming);
            drop(masked);
        }
        cpu::wait_until(Ps::from_ns(self.layout.begins));
        self.begin(cpu);
        for step in &self.layout.steps[cpu.index()] {
            cpu::wait_until(Ps::from_ns(step.at));
            let masked = Masked::new();
            let behind = engine::clock().since(Ps::from_ns(step.at));
            let spent = Spent::begin();
            self.step(cpu, step);
            let mut counts = self.counts.borrow_mut();
            counts.behind = counts.behind.max(behind);
            spent.end(&mut counts);
            drop(counts);
            drop(masked);
        }
        cpu::wait_until(Ps::from_ns(self.layout.ends));
        self.end(cpu);
    }

    fn set_up_clock(&self) {
        let policy = match self.source {
            Clock::Tsc => return,
            Clock::Hpet => ReadPolicy::Direct,
            Clock::Combined => ReadPolicy::Combined,
        };
        *self.clock.borrow_mut() = SharedClock::new(policy).map(Rc::new);
    }

    /// The stretch begins on a CPU.
    fn begin(&self, cpu: CpuId) {
        self.measured.set(true);
        let device = self.device(cpu);
        self.before.borrow_mut()[cpu.index()] = device;
    }

    /// The stretch is over on a CPU.
    fn end(&self, cpu: CpuId) {
        let device = self.device(cpu).since(self.before.borrow()[cpu.index()]);
        let mut counts = self.counts.borrow_mut();
        counts.device = counts.device.plus(device);
        counts.time += engine::clock() - Ps::from_ns(self.layout.begins);
    }

    fn device(&self, cpu: CpuId) -> DeviceCounts {
        self.bases.view(cpu).map(|view| view.device).unwrap_or_default()
    }

    fn step(&self, cpu: CpuId, step: &Step) {
        match step.what {
            What::Arm(arming) => self.arm(step.home, step.slot, arming),
            What::Cancel => self.cancel(step.home, step.slot),
            What::Unseen(arming) => {
                let before = self.device(cpu).writes;
                match arming {
                    Some(arming) => self.arm(step.home, step.slot, arming),
                    None => self.cancel(step.home, step.slot),
                }
                let unseen = self.device(cpu).writes - before;
                self.counts.borrow_mut().unseen_writes += unseen;
                self.with(step.home, step.slot, |instance| instance.is_guessed = true);
            }
            What::Expire(again) => {
                let is_late = self.with(step.home, step.slot, |instance| {
                    let is_late = instance.fired <= step.expiry;
                    instance.fired = instance.fired.max(step.expiry + 1);
                    is_late
                });
                match (is_late, again) {
                    (Some(true), Some(again)) => self.arm(step.home, step.slot, again),
                    (Some(true), None) => self.cancel(step.home, step.slot),
                    _ => {}
                }
            }
        }
    }

    fn arm(&self, home: CpuId, slot: u32, arming: Arming) {
        let window = self.window(home, arming);
        let pinned = Some(self.layout.partner(home, arming.base));
        let options = Options { pinned, wakes: arming.wakes, ..Options::default() };
        let Some(instance) = self.with(home, slot, |instance| {
            instance.is_guessed = false;
            Rc::clone(&instance.timer)
        }) else {
            return;
        };
        // Nobody shuts these timers down, and every base exists.
        match &*instance {
            Timer::Coarse(timer) => _ = timer.start(window, platform::shows(), options),
            Timer::Precise(timer) => {
                self.read_clock();
                _ = timer.start(window, platform::shows(), options);
            }
        }
        self.counts.borrow_mut().armed += u64::from(self.measured.get());
    }

    fn cancel(&self, home: CpuId, slot: u32) {
        let Some(instance) = self.with(home, slot, |instance| Rc::clone(&instance.timer)) else {
            return;
        };
        let before = engine::waited();
        match &*instance {
            Timer::Coarse(timer) => timer.cancel_sync(),
            Timer::Precise(timer) => timer.cancel_sync(),
        };
        let waited = engine::waited().others - before.others;
        self.counts.borrow_mut().cancel_wait += waited;
    }

    fn window(&self, home: CpuId, Arming { window, .. }: Arming) -> Window {
        Window::new(self.layout.moved(home, window.soft), self.layout.moved(home, window.hard))
    }

    fn read_clock(&self) {
        let began = engine::clock();
        // Not borrowed across the read, which may suspend.
        let clock = self.clock.borrow().clone();
        match clock {
            Some(clock) => clock.read(),
            None => drop(platform::now()),
        }
        if self.measured.get() {
            self.counts.borrow_mut().clock_read += engine::clock() - began;
        }
    }

    fn interrupt(&self, vector: Vector) {
        let spent = Spent::begin();
        self.read_clock();
        self.bases.expire(engine::here(), |firing| self.fire(firing));
        if self.measured.get() {
            let mut counts = self.counts.borrow_mut();
            counts.interrupts += 1;
            counts.kicks += u64::from(vector == Vector::Look);
            spent.end(&mut counts);
        }
    }

    fn fire(&self, firing: &Firing<Sim>) -> CallbackResult {
        let home = CpuId((firing.task >> 32) as u16);
        let again = self.with(home, firing.task as u32, |instance| {
            let again = instance.again.get(instance.fired as usize).copied().flatten();
            instance.fired += 1;
            (again, std::mem::take(&mut instance.is_guessed))
        });
        let Some((again, is_guessed)) = again else { return CallbackResult::Done };
        if self.measured.get() {
            let mut counts = self.counts.borrow_mut();
            counts.expirations += 1;
            counts.early += u64::from(firing.now < firing.window.soft);
            if !is_guessed {
                counts.late.push(firing.now.since(firing.window.hard).0);
            }
        }
        again
            .map_or(CallbackResult::Done, |again| CallbackResult::Restart(self.window(home, again)))
    }

    fn with<R>(&self, home: CpuId, slot: u32, f: impl FnOnce(&mut Instance) -> R) -> Option<R> {
        self.timers.borrow_mut().get_mut(home.index())?.get_mut(slot as usize).map(f)
    }
}

/// What a stretch of timer code has taken.
struct Spent {
    began: Ps,
    locks: Ps,
}

impl Spent {
    fn begin() -> Spent {
        Spent { began: engine::clock(), locks: engine::waited().locks }
    }

    fn end(self, counts: &mut Counts) {
        counts.timer_code += engine::clock() - self.began;
        counts.lock_wait += engine::waited().locks - self.locks;
    }
}
