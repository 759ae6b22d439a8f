//! Seed 3: waking the expiry thread on every tick, or only when something has expired.
//!
//! Two cores with a real-time kernel. A task of high priority sleeps a millisecond at a time, like
//! cyclictest: one that may run on either CPU, or one on each, bound to it. On each CPU ticks
//! come, a coarse timer expires now and then, and an expiry thread fires it. Before, every tick
//! wakes that thread; after, only what has expired does.
//!
//! Nobody published cells, only three signs: unbound, the average goes down; its maximum stays;
//! bound, nothing changes. All three are predicted, for ticks of 1000 and 250 Hz, as means over
//! the phase between the tick and the task's own period: a period of one millisecond is locked to
//! a tick of the same, and stays wherever it began.
//!
//! # What comes out
//!
//! On this idle machine only sleeps that end within some 10 us of a tick notice anything: there
//! queueing the expiry thread comes before waking the task, so the average falls, over all phases
//! by a fraction of a percent. Two of the three signs come out; the unbound maximum does not stay.
//! Ticks come to both CPUs at once. Before, both are then about to run their expiry thread, so
//! the task stays where it is; after, only one CPU is now and then, and the task is sent to the
//! other one, which takes longer than waiting. The published run's average lay between 22 and 70
//! us, so it had work beside it that is not described and is not made up here.

use super::{Band, Cell, Figure};
use crate::engine::{self, Machine};
use crate::os::{Class, Config, IdleTick, Kernel};
use crate::platform::{self, Sim};
use crate::ps::Ps;
use crate::random::Random;
use crate::spec::Spec;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::{Deferral, Options, Settings, WheelEvents};
use tickless_core::link::WheelLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{CpuId, Ns, Window};

/// Where the measuring tasks may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// One task, on any CPU.
    Unbound,
    /// One on each CPU (`cyclictest -S`).
    PerCpu,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// When the expiry thread is woken: the switch of seed 3.
    pub deferral: Deferral,
    /// Where the tasks run.
    pub binding: Binding,
    /// From tick to tick.
    pub tick: Ns,
    /// How far the second CPU's ticks are behind the first one's.
    pub skew: Ns,
    /// How far behind a tick the tasks' periods begin.
    pub phase: Ns,
    /// Coarse timers expire on each CPU this far apart, on average.
    pub expiries: Ns,
    /// How often each task sleeps.
    pub samples: u32,
}

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// The mean time from the end of a sleep to the task's first step, in microseconds.
    pub average_us: f64,
    /// The longest.
    pub max_us: f64,
    /// How often expiry threads were woken, per second and CPU.
    pub wakes_per_s: f64,
    /// How many timers they fired, per second and CPU.
    pub fired_per_s: f64,
    /// What the engine did.
    pub digest: u64,
}

/// The measuring tasks' period: cyclictest's default of 1 ms.
const PERIOD: Ns = Ns::from_ms(1);
/// The steps in which the phase is swept over the period.
const PHASES: u64 = 100;

/// The three signs, for both ticks.
pub fn cells(spec: &Spec) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for hz in [1_000, 250] {
        for (name, binding) in [("unbound", Binding::Unbound), ("bound", Binding::PerCpu)] {
            let tick = Ns(1_000_000_000 / hz);
            let sweep = |deferral| sweep(spec, deferral, binding, tick);
            let (before, after) = (sweep(Deferral::EveryTick)?, sweep(Deferral::OnExpiry)?);
            let id = |what: &str| format!("{hz}hz.{name}.{what}");
            let cell =
                |what: &str, unit, value| Cell::predicted(id(what), unit, Figure::of(vec![value]));
            cells.push(cell("before.average", US, before.average_us));
            cells.push(cell("after.average", US, after.average_us));
            cells.push(cell("before.max", US, before.max_us));
            cells.push(cell("after.max", US, after.max_us));
            let average = 100.0 * (after.average_us / before.average_us - 1.0);
            let max = 100.0 * (after.max_us / before.max_us - 1.0);
            let falls = Band { low: None, high: Some(0.0) };
            let stays = Band::between(-1.0, 1.0);
            let sign = if binding == Binding::Unbound { falls } else { stays };
            cells.push(cell("average.change", PERCENT, average).within(sign));
            cells.push(cell("max.change", PERCENT, max).within(Band::between(-5.0, 5.0)));
            cells.push(cell("before.wakes_per_s", "wakes/s per CPU", before.wakes_per_s));
            cells.push(cell("after.wakes_per_s", "wakes/s per CPU", after.wakes_per_s));
        }
    }
    Ok(cells)
}

/// A short stretch with an expiry thread that every tick wakes, for a timeline.
pub fn stretch(spec: &Spec) -> io::Result<()> {
    let case = Case {
        deferral: Deferral::EveryTick,
        binding: Binding::Unbound,
        tick: Ns::from_ms(1),
        skew: Ns::ZERO,
        phase: Ns::ZERO,
        expiries: Ns::from_ms(20),
        samples: 200,
    };
    run(spec, case, 1 + spec.seed).map(drop)
}

const US: &str = "us";
const PERCENT: &str = "%";

/// The mean over all phases; of the longest the longest.
fn sweep(spec: &Spec, deferral: Deferral, binding: Binding, tick: Ns) -> io::Result<Outcome> {
    let mut all =
        Outcome { average_us: 0.0, max_us: 0.0, wakes_per_s: 0.0, fired_per_s: 0.0, digest: 0 };
    for step in 0..PHASES {
        let phase = Ns(PERIOD.0 * step / PHASES);
        let (skew, expiries) = (Ns::ZERO, Ns::from_ms(20));
        let case = Case { deferral, binding, tick, skew, phase, expiries, samples: 200 };
        let one = run(spec, case, (step + 1) ^ spec.seed << 8)?;
        all.average_us += one.average_us / PHASES as f64;
        all.max_us = all.max_us.max(one.max_us);
        all.wakes_per_s += one.wakes_per_s / PHASES as f64;
        all.fired_per_s += one.fired_per_s / PHASES as f64;
        all.digest ^= one.digest.rotate_left(step as u32);
    }
    Ok(all)
}

/// Runs one case.
pub fn run(spec: &Spec, case: Case, seed: u64) -> io::Result<Outcome> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let timers =
        Settings { deferral: case.deferral, wheel: WheelEvents::Tick, ..Settings::default() };
    let (tick, skew) = (case.tick, case.skew);
    let config = Config { timers, tick, skew, idle: IdleTick::Keeps, grace: Ns::NEVER };
    let kernel = Kernel::boot(&mut machine, config)?;
    kernel.start_expirers(&mut machine, Class::Fifo(1))?;
    expire_now_and_then(&kernel, &mut machine, spec, case, seed)?;
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let left = Rc::new(std::cell::Cell::new(match case.binding {
        Binding::Unbound => 1,
        Binding::PerCpu => cpus,
    }));
    for task in 0..left.get() {
        let bound = (case.binding == Binding::PerCpu).then_some(CpuId(task));
        let (kernel2, latencies, left) =
            (Rc::clone(&kernel), Rc::clone(&latencies), Rc::clone(&left));
        kernel.spawn(&mut machine, Class::Fifo(90), bound, move || {
            measure(&kernel2, case, &latencies);
            left.set(left.get() - 1);
            if left.get() == 0 {
                engine::stop();
            }
        })?;
    }
    machine.run(Ns::from_secs(3_600));
    let seconds = machine.usage(CpuId(0)).map_or(0.0, |usage| usage.clock.as_ns_f64() / 1e9);
    machine.finish();
    let counts = (0..cpus).filter_map(|cpu| kernel.bases().view(CpuId(cpu)));
    let (wakes, fired) = counts.fold((0, 0), |(wakes, fired), view| {
        (wakes + view.deferred.wakes, fired + view.deferred.fired)
    });
    let each = seconds.max(1e-9) * f64::from(cpus);
    let latencies = latencies.borrow();
    let total: f64 = latencies.iter().sum();
    Ok(Outcome {
        average_us: total / latencies.len().max(1) as f64,
        max_us: latencies.iter().copied().fold(0.0, f64::max),
        wakes_per_s: wakes as f64 / each,
        fired_per_s: fired as f64 / each,
        digest: machine.digest(),
    })
}

/// What cyclictest does.
fn measure(kernel: &Kernel, case: Case, latencies: &RefCell<Vec<f64>>) {
    let alarm = kernel.alarm();
    let mut next = Ns::from_ms(20).after(case.phase);
    for _ in 0..case.samples {
        kernel.sleep_until(&alarm, next);
        let late = engine::clock() - Ps::from_ns(next);
        latencies.borrow_mut().push(late.as_ns_f64() / 1e3);
        next = next.after(PERIOD);
    }
}

/// On each CPU a coarse timer that arms itself again, at times drawn by the seed.
fn expire_now_and_then(
    kernel: &Rc<Kernel>,
    machine: &mut Machine,
    spec: &Spec,
    case: Case,
    seed: u64,
) -> io::Result<()> {
    let work = spec.time("workload.timer_work_ns");
    let cpus = spec.costs().topology.cpus();
    for cpu in 0..cpus {
        let random = RefCell::new(Random::new(seed << 16 | u64::from(cpu)));
        let draw = move || Ns(1 + random.borrow_mut().below(2 * case.expiries.0));
        let callback = kernel.callback(move |firing| {
            engine::charge(work);
            let at = firing.now.after(draw());
            Verdict::Restart(Window::new(at, at))
        });
        let timer = OwnedTimer::<Sim, WheelLink>::new(kernel.bases(), callback);
        let kernel2 = Rc::clone(kernel);
        kernel.spawn(machine, Class::Fair, Some(CpuId(cpu)), move || {
            let now = platform::now();
            let first = now.after(Ns::from_ms(1));
            let _ = timer.start(Window::new(first, first), now, Options::default());
            // The timer lives as long as this task, which has nothing else to do.
            loop {
                kernel2.block();
            }
        })?;
    }
    Ok(())
}
