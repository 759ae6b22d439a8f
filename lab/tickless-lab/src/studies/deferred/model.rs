//! The simulated workload: a measuring task, and an expiry thread (which fires expired timers) that
//! is woken on every tick or only when a timer has expired.
//!
//! The machine has two cores and a real-time kernel. A task of high priority sleeps for a
//! millisecond at a time, like cyclictest: one task that may run on either CPU (*unbound*), or one
//! task on each CPU (*bound*). Each CPU has ticks, a coarse timer that expires occasionally, and an
//! expiry thread that fires it. Before (without the mechanism), every tick wakes that thread; after
//! (with it), only an expired timer does.
//!
//! Only the directions of the changes were published: for an unbound task, the average latency
//! falls; for bound tasks it stays; the maxima stay. The published "22 to 70 us" is a range of
//! histogram bins, so the figure here is the share of samples in that range.
//!
//! The result depends on the skew between the CPUs' ticks. If both CPUs tick at the same instant,
//! both are about to run their expiry thread, and an unbound task does not move to the other CPU;
//! if the ticks are a few microseconds apart, the other CPU is free. The skew of the published
//! machine is unknown. So each seed draws a skew, and what is judged is in how many of the 20 seeds
//! the change has the published direction. One CPU maintains the time, so its tick is longer.
//! Callbacks run in a thread, and tasks of higher priority preempt them.
//!
//! Which figures are calibrated, implied and predicted: `docs/book/src/machine.md`.

use crate::measure::Spread;
use crate::studies::cell::{Band, Cell, Claim};
use crate::studies::study::Sides;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Deferral, Options, Settings, WheelEvents};
use tickless_core::link::WheelLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::cpu;
use tickless_machine::engine::{self, Machine};
use tickless_machine::os::{Class, Clocked, Config, IdleTick, Kernel, Skew};
use tickless_machine::platform::{self, Sim, SimWord};
use tickless_machine::ps::Ps;
use tickless_machine::random::Random;
use tickless_machine::spec::Spec;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    Unbound,
    /// One task on each CPU (`cyclictest -S`).
    PerCpu,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    pub deferral: Deferral,
    pub binding: Binding,
    pub tick: Ns,
    /// How often each task sleeps at each phase (the time from a tick to the end of the sleep).
    pub samples: u32,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The mean time from the end of a sleep to the task's first step, in microseconds.
    pub average_us: f64,
    pub max_us: f64,
    pub tail_percent: f64,
    pub wakes_per_s: f64,
    pub digest: u64,
}

/// The measuring tasks' period: cyclictest's default of 1 ms.
const PERIOD: Ns = Ns::from_ms(1);
/// The number of seeds. Each seed draws the skew of the ticks, and the expiries of timers.
const SEEDS: u64 = 20;
/// The number of phases that are tried, evenly over the period. A period of a millisecond stays
/// locked to a tick of a millisecond, so the phase does not change by itself. A tick affects only
/// sleeps that end within about 10 us of it.
const PHASES: u64 = 100;
/// If at least this many of the 20 seeds show a change in the published direction, the change is
/// not chance: 20 tosses of a coin give as many heads only once in fifty times.
const SIGNIFICANT: f64 = 15.0;

pub const SIDES: Sides<Deferral> = Sides { before: Deferral::EveryTick, after: Deferral::OnExpiry };

/// Simulates the study's figures for ticks of 1000 Hz and 250 Hz, with the settings in `sides`. Of
/// these figures only the direction of the change was published.
pub fn cells(spec: &Spec, sides: Sides<Deferral>) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for hz in [1_000, 250] {
        let tick = Ns(1_000_000_000 / hz);
        let mut changes = Vec::new();
        for (name, binding) in [("unbound", Binding::Unbound), ("bound", Binding::PerCpu)] {
            let sweep = |deferral| -> io::Result<Vec<Outcome>> {
                let case = Case { deferral, binding, tick, samples: 20 };
                (0..SEEDS).map(|seed| run(spec, case, seed ^ spec.seed << 8)).collect()
            };
            let (before, after) = (sweep(sides.before)?, sweep(sides.after)?);
            let over = |of: fn(&Outcome) -> f64, outcomes: &[Outcome]| {
                Spread::of_runs(outcomes.iter().map(of).collect())
            };
            let change = |of: fn(&Outcome) -> f64| -> Vec<f64> {
                let both = before.iter().zip(&after);
                both.map(|(before, after)| 100.0 * (of(after) / of(before) - 1.0)).collect()
            };
            let cell = |what: &str, unit, figure| {
                Cell::predicted(format!("{hz}hz.{name}.{what}"), unit, figure)
            };
            for (side, outcomes) in [("before", &before), ("after", &after)] {
                let of = |what: &str, unit, of| {
                    cell(&format!("{side}.{what}"), unit, over(of, outcomes))
                };
                cells.push(of("average", US, |one| one.average_us));
                cells.push(of("max", US, |one| one.max_us));
                cells.push(of("share_22_to_70us", "% of samples", |one| one.tail_percent));
                cells.push(of("wakes_per_s", "wakes/s per CPU", |one| one.wakes_per_s));
            }
            let average = change(|one| one.average_us);
            cells.push(cell("average.change", PERCENT, Spread::of_runs(average.clone())));
            cells.push(cell("max.change", PERCENT, Spread::of_runs(change(|one| one.max_us))));
            changes.push(average);
        }
        cells.extend(contrast(hz, &changes[0], &changes[1]));
    }
    Ok(cells)
}

/// Returns two figures. The first is by how much more the mechanism lowers the average latency of a
/// task on any CPU (unbound) than that of bound tasks. The second is for how many of the 20 seeds
/// this is so. The arguments have a change in percent for each seed.
fn contrast(hz: u64, unbound: &[f64], bound: &[f64]) -> [Cell; 2] {
    let apart: Vec<f64> = unbound.iter().zip(bound).map(|(free, bound)| free - bound).collect();
    let falls = apart.iter().filter(|points| **points < 0.0).count() as f64;
    let claim = Claim::value(falls, SEEDS as f64 / 2.0, Band::at_least(SIGNIFICANT));
    [
        Cell::predicted(format!("{hz}hz.contrast.points"), "% points", Spread::of_runs(apart)),
        Cell::predicted(format!("{hz}hz.contrast.seeds"), "of 20", falls).claims(claim),
    ]
}

const US: &str = "us";
const PERCENT: &str = "%";

/// Simulates one case, with its samples at each phase, one phase after the other. The seed draws
/// the skew of the ticks and the times at which timers expire.
pub fn run(spec: &Spec, case: Case, seed: u64) -> io::Result<Outcome> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let timers =
        Settings { deferral: case.deferral, wheel: WheelEvents::Tick, ..Settings::default() };
    let skew = Skew { most: spec.time("workload.tick_skew_ns").to_ns(), seed };
    let tick = case.tick;
    let (idle, grace, clocked) = (IdleTick::Keeps, Ns::NEVER, Clocked::FromSwitch);
    let config = Config { timers, tick, skew, idle, grace, clocked, has_slice_timer: false };
    let kernel = Kernel::boot(&mut machine, config)?;
    kernel.start_expirers(&mut machine, Class::Fifo(1))?;
    expire_now_and_then(&kernel, &mut machine, spec, seed)?;
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let left = Rc::new(std::cell::Cell::new(match case.binding {
        Binding::Unbound => 1,
        Binding::PerCpu => cpus,
    }));
    for task in 0..left.get() {
        let bound = (case.binding == Binding::PerCpu).then_some(CpuId(task));
        let (task_kernel, latencies, left) =
            (Rc::clone(&kernel), Rc::clone(&latencies), Rc::clone(&left));
        kernel.spawn(&mut machine, Class::Fifo(90), bound, move || {
            measure(&task_kernel, case, &latencies);
            left.set(left.get() - 1);
            if left.get() == 0 {
                engine::stop();
            }
        })?;
    }
    machine.run(Ns::from_secs(3_600));
    let seconds = machine.clock(CpuId(0)).map_or(0.0, |clock| clock.as_ns_f64() / 1e9);
    machine.finish();
    let counts = (0..cpus).filter_map(|cpu| kernel.bases().view(CpuId(cpu)));
    let wakes: u64 = counts.map(|view| view.deferred.wakes).sum();
    let each = seconds.max(1e-9) * f64::from(cpus);
    let latencies = latencies.borrow();
    let total: f64 = latencies.iter().sum();
    let tail = latencies.iter().filter(|us| (22.0..=70.0).contains(*us)).count();
    Ok(Outcome {
        tail_percent: 100.0 * tail as f64 / latencies.len().max(1) as f64,
        average_us: total / latencies.len().max(1) as f64,
        max_us: latencies.iter().copied().fold(0.0, f64::max),
        wakes_per_s: wakes as f64 / each,
        digest: machine.digest(),
    })
}

/// Sleeps until times at each phase (time since a tick). Records how late the task wakes, in us.
fn measure(kernel: &Kernel, case: Case, latencies: &RefCell<Vec<f64>>) {
    let alarm = kernel.alarm();
    for phase in 0..PHASES {
        // Begin each phase late enough for the last sample of the previous phase to end.
        let whole = PERIOD.0 * (20 + phase * u64::from(case.samples + 1));
        let mut next = Ns(whole + PERIOD.0 * phase / PHASES);
        for _ in 0..case.samples {
            kernel.sleep_until(&alarm, next);
            let late = cpu::clock() - Ps::from_ns(next);
            latencies.borrow_mut().push(late.as_ns_f64() / 1e3);
            next = next.after(PERIOD);
        }
    }
}

/// Starts a timer on each CPU that expires at random times, `workload.expiry_ns` apart on average.
fn expire_now_and_then(
    kernel: &Rc<Kernel>,
    machine: &mut Machine,
    spec: &Spec,
    seed: u64,
) -> io::Result<()> {
    let apart = spec.time("workload.expiry_ns").to_ns();
    let work = spec.time("workload.timer_work_ns");
    let cpus = spec.costs().topology.cpus();
    for cpu in 0..cpus {
        let random = RefCell::new(Random::new(seed << 16 | u64::from(cpu)));
        let draw = move || Ns(1 + random.borrow_mut().below(2 * apart.0));
        let callback = kernel.callback(move |firing| {
            // This runs in the expiry thread, so tasks of higher priority can preempt it.
            cpu::work(work);
            let at = firing.now.after(draw());
            CallbackResult::Restart(Window::at(at))
        });
        let timer = OwnedTimer::<Sim, WheelLink<SimWord>>::new(kernel.bases(), callback);
        let task_kernel = Rc::clone(kernel);
        kernel.spawn(machine, Class::Fair, Some(CpuId(cpu)), move || {
            let now = platform::now();
            let first = now.after(Ns::from_ms(1));
            let _ = timer.start(Window::at(first), now, Options::default());
            // The task only keeps the timer alive.
            loop {
                task_kernel.block();
            }
        })?;
    }
    Ok(())
}
