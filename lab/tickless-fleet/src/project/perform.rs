//! Runs the operations of a recorded trace on a simulated machine.

use super::figures::{Counts, Projection};
use super::layout::{Layout, Step};
use super::request::{Clock, ProjectError, Request};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::clock::combined::ReadPolicy;
use tickless_core::link::{QueueLink, WheelLink};
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::Platform;
use tickless_core::queues::wheel::PushOut;
use tickless_core::rearm::{DeviceCounts, Limits};
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::cpu;
use tickless_machine::engine::{Ended, Machine};
use tickless_machine::irq::{self, Vector};
use tickless_machine::platform::{self, Sim};
use tickless_machine::ps::Ps;
use tickless_machine::shared_clock::{self, SharedClock};
use tickless_machine::size::{CPUS_MAX, sized};
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;
use tickless_trace::replay::streams::{Family, Start, Streams, What};

/// Runs a trace once, on a simulated machine in which operations cost as much time as on `like`,
/// and which has the requested number of CPUs. Takes some microseconds for each operation, on one
/// thread. Equal requests have equal results.
pub fn project(
    streams: &Streams,
    like: &Spec,
    request: &Request,
) -> Result<Projection, ProjectError> {
    if !ReplayPolicy::DEFAULT.contains(&request.policy) {
        return Err(ProjectError::Policy(request.policy));
    }
    if !(1..=CPUS_MAX).contains(&request.cpus) {
        return Err(ProjectError::Cpus(request.cpus));
    }
    if let Some(seconds) = request.seconds.filter(|it| !(it.is_finite() && *it > 0.0)) {
        return Err(ProjectError::Seconds(seconds));
    }
    // The simulated machine has whole sockets, so it can have more CPUs than requested. The
    // additional CPUs stay off.
    let costs = sized(like, request.cpus).costs();
    let cpus = request.cpus;
    let window = window(streams, cpus, request.seconds).ok_or(ProjectError::NoOperations)?;
    let layout = Layout::new(streams, cpus, window, request.seed);
    let mut simulated = Machine::new(costs.clone());
    let run = Rc::new(Run::new(streams, layout, costs.topology.cpus(), request));
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
    let counts = Counts { digest: simulated.digest(), ..run.counts.take() };
    Ok(Projection::new(counts, &costs, cpus, window, streams, request))
}

/// Returns the simulated interval's length: as requested, or for about `OPERATIONS` operations.
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

/// The state that the CPUs of a run share. No `RefCell` in it is borrowed during a step that takes
/// simulated time, because the code of another CPU can run during such a step.
struct Run {
    bases: Arc<Bases<Sim>>,
    layout: Layout,
    /// `None`: the CPUs' own counters.
    clock: Option<SharedClock>,
    /// The timers that have been used so far. Indexed by the timer's home CPU, then by its slot.
    timers: Vec<Vec<OnceCell<Instance>>>,
    counts: RefCell<Counts>,
    /// For each CPU: the counts of its timer device when the measured interval began.
    before: RefCell<Vec<DeviceCounts>>,
    measured: Cell<bool>,
}

struct Instance {
    timer: Timer,
    /// The index of the recorded expiry that is repeated next.
    expiry: Cell<u32>,
    /// The index after the last recorded expiry of this timer.
    expiries_end: u32,
    /// Set while the timer is armed for a time that was inferred because the trace does not record
    /// it. The timer's lateness is not counted then.
    is_guessed: Cell<bool>,
}

enum Timer {
    Coarse(OwnedTimer<Sim, WheelLink<<Sim as Platform>::Word>>),
    Precise(OwnedTimer<Sim, QueueLink>),
}

impl Run {
    /// Prepares a run. Timers are made when they are first used.
    fn new(streams: &Streams, layout: Layout, bases: u16, request: &Request) -> Run {
        let settings = request.policy.set(Settings {
            tick: streams.tick,
            push_out: PushOut::Eager,
            limits: Limits { passes: u32::MAX, ..Limits::NONE },
            wheel: streams.wheel,
            ..Settings::default()
        });
        let cpus = layout.cpus();
        let none = |cpu: usize| -> Vec<OnceCell<Instance>> {
            (0..layout.timers(CpuId(cpu as u16))).map(|_| OnceCell::new()).collect()
        };
        Run {
            bases: Arc::new(Bases::new(Sim, bases, settings)),
            clock: match request.clock {
                Clock::Tsc => None,
                Clock::Hpet => Some(shared_clock::new(ReadPolicy::Direct)),
                Clock::Combined => Some(shared_clock::new(ReadPolicy::Combined)),
            },
            timers: (0..cpus).map(none).collect(),
            counts: RefCell::new(Counts::default()),
            before: RefCell::new(vec![DeviceCounts::default(); cpus]),
            measured: Cell::new(false),
            layout,
        }
    }

    fn make(&self, home: CpuId, slot: u32) -> Instance {
        let task = u64::from(home.0) << 32 | u64::from(slot);
        let timer = match self.layout.timer(home, slot).family {
            Family::Wheel => Timer::Coarse(OwnedTimer::new(&self.bases, task)),
            Family::Queue => Timer::Precise(OwnedTimer::new(&self.bases, task)),
        };
        let expiries = self.layout.expiries(home, slot);
        Instance {
            timer,
            expiry: Cell::new(expiries.start),
            expiries_end: expiries.end,
            is_guessed: Cell::new(false),
        }
    }

    /// Runs a CPU: arms the pending timers, then performs the CPU's operations at their times.
    fn body(&self, cpu: CpuId) {
        const BEFORE: Ns = Ns::from_ms(5);
        cpu::wait_until(Ps::from_ns(Ns(self.layout.begins.0.saturating_sub(BEFORE.0))));
        for &(slot, arming) in self.layout.pending(cpu) {
            let masked = irq::mask();
            self.arm(cpu, slot, arming);
            drop(masked);
        }
        cpu::wait_until(Ps::from_ns(self.layout.begins));
        self.begin(cpu);
        for step in self.layout.steps(cpu) {
            cpu::wait_until(Ps::from_ns(step.at));
            let masked = irq::mask();
            let behind = cpu::clock().since(Ps::from_ns(step.at));
            let spent = Spent::begin();
            self.step(cpu, &step);
            let mut counts = self.counts.borrow_mut();
            counts.operations += 1;
            counts.remote_operations += u64::from(step.home != cpu);
            counts.behind = counts.behind.max(behind);
            spent.end(&mut counts);
            drop(counts);
            drop(masked);
        }
        cpu::wait_until(Ps::from_ns(self.layout.ends));
        self.end(cpu);
    }

    /// Begins to count, on one CPU.
    fn begin(&self, cpu: CpuId) {
        self.measured.set(true);
        let device = self.bases.device_counts(cpu);
        self.before.borrow_mut()[cpu.index()] = device;
    }

    /// Ends the counting on one CPU.
    fn end(&self, cpu: CpuId) {
        let device = self.bases.device_counts(cpu).since(self.before.borrow()[cpu.index()]);
        let mut counts = self.counts.borrow_mut();
        counts.device = counts.device.plus(device);
        counts.time += cpu::clock() - Ps::from_ns(self.layout.begins);
    }

    /// Performs an operation. An expiry is only performed if the simulated timer has not fired yet.
    fn step(&self, cpu: CpuId, step: &Step) {
        match step.what {
            What::Arm(arming) => self.arm(step.home, step.slot, arming),
            What::Cancel => self.cancel(step.home, step.slot),
            What::Unseen(arming) => {
                let before = self.bases.device_counts(cpu).writes;
                match arming {
                    Some(arming) => self.arm(step.home, step.slot, arming),
                    None => self.cancel(step.home, step.slot),
                }
                let unseen = self.bases.device_counts(cpu).writes - before;
                self.counts.borrow_mut().unseen_writes += unseen;
                self.instance(step.home, step.slot).is_guessed.set(true);
            }
            What::Expire(again) => {
                let next = &self.instance(step.home, step.slot).expiry;
                let is_late = next.get() <= step.expiry;
                next.set(next.get().max(step.expiry + 1));
                match (is_late, again) {
                    (true, Some(again)) => self.arm(step.home, step.slot, again),
                    (true, None) => self.cancel(step.home, step.slot),
                    (false, _) => {}
                }
            }
        }
    }

    /// Arms a timer. A precise one first reads the clock, as the kernel does.
    fn arm(&self, home: CpuId, slot: u32, arming: Start) {
        let window = self.window(home, arming);
        let pinned = Some(self.layout.partner(home, arming.base));
        let options = Options { pinned, wakes: arming.wakes, ..Options::default() };
        let instance = self.instance(home, slot);
        instance.is_guessed.set(false);
        // Arming fails only after the timer was shut down, or if the CPU has no base.
        match &instance.timer {
            Timer::Coarse(timer) => _ = timer.start(window, platform::cycle_counter(), options),
            Timer::Precise(timer) => {
                self.read_clock();
                _ = timer.start(window, platform::cycle_counter(), options);
            }
        }
        self.counts.borrow_mut().armed += u64::from(self.measured.get());
    }

    /// Cancels a timer, and counts the time for which this CPU waited for other CPUs.
    fn cancel(&self, home: CpuId, slot: u32) {
        let before = cpu::waited();
        match &self.instance(home, slot).timer {
            Timer::Coarse(timer) => timer.cancel_sync(),
            Timer::Precise(timer) => timer.cancel_sync(),
        };
        let waited = cpu::waited().others - before.others;
        self.counts.borrow_mut().cancel_wait += waited;
    }

    fn window(&self, home: CpuId, Start { window, .. }: Start) -> Window {
        Window::new(self.layout.moved(home, window.soft), self.layout.moved(home, window.hard))
    }

    fn read_clock(&self) {
        let began = cpu::clock();
        match &self.clock {
            Some(clock) => _ = clock.read(),
            None => _ = platform::now(),
        }
        if self.measured.get() {
            self.counts.borrow_mut().clock_read += cpu::clock() - began;
        }
    }

    /// Handles a timer interrupt, or the request of another CPU to look at the earliest timer.
    fn interrupt(&self, vector: Vector) {
        let spent = Spent::begin();
        self.read_clock();
        self.bases.expire(cpu::here(), |firing| self.fire(firing));
        if self.measured.get() {
            let mut counts = self.counts.borrow_mut();
            counts.interrupts += 1;
            counts.kicks += u64::from(vector == Vector::Look);
            spent.end(&mut counts);
        }
    }

    /// The callback of every timer. Restarts the timer if the recorded callback did.
    fn fire(&self, firing: &Firing<Sim>) -> CallbackResult {
        let (home, slot) = (CpuId((firing.task >> 32) as u16), firing.task as u32);
        let instance = self.instance(home, slot);
        let is_guessed = instance.is_guessed.take();
        let mut again = None;
        let expiry = instance.expiry.get();
        if expiry < instance.expiries_end {
            again = self.layout.timer(home, slot).expiries[expiry as usize].1;
            instance.expiry.set(expiry + 1);
        }
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

    fn instance(&self, home: CpuId, slot: u32) -> &Instance {
        let place = &self.timers[home.index()][slot as usize];
        place.get_or_init(|| self.make(home, slot))
    }
}

struct Spent {
    began: Ps,
    locks: Ps,
}

impl Spent {
    fn begin() -> Spent {
        Spent { began: cpu::clock(), locks: cpu::waited().locks }
    }

    fn end(self, counts: &mut Counts) {
        counts.timer_code += cpu::clock() - self.began;
        counts.lock_wait += cpu::waited().locks - self.locks;
    }
}
