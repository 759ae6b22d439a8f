//! The simulated workload: synchronous cancels, which wait for a running callback and for that
//! check one timer base or all of them.
//!
//! Every CPU but CPU 0 has a few periodic timers, whose callbacks keep changing the word that names
//! the base's running timer. So the cache line of that word is dirty in that CPU's cache. (On an
//! idle machine every line would be shared after the first call, which cannot give the published
//! 29,000 cycles.) CPU 0 arms a timer, waits about a tick, cancels the timer, and counts the cycles
//! of the cancel.
//!
//! Which figures are calibrated, implied and predicted: `docs/book/src/machine.md`.

use crate::measure::Spread;
use crate::studies::cell::{Band, Cell, Claim};
use crate::studies::fit::fitted;
use crate::studies::study::Sides;
use std::cell::Cell as Shared;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Bases, Options, Scan, Settings};
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::periodic;
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::cpu;
use tickless_machine::engine::{self, Machine};
use tickless_machine::irq::Vector;
use tickless_machine::platform::Sim;
use tickless_machine::ps::Ps;
use tickless_machine::random::Random;
use tickless_machine::size::sized;
use tickless_machine::spec::Spec;

/// Seeds of a simulation's random numbers. Most figures are the median of a run with each seed.
const SEEDS: [u64; 3] = [1, 2, 3];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caches {
    Warm,
    Cold,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Sync,
    SingleShot,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    pub scan: Scan,
    pub caches: Caches,
    pub form: Form,
    pub calls: u32,
}

impl Case {
    /// Returns the published case: 1000 calls of `cancel_sync` with warm caches.
    pub const fn new(scan: Scan) -> Case {
        Case { scan, caches: Caches::Warm, form: Form::Sync, calls: 1_000 }
    }

    #[must_use]
    pub const fn cold(self) -> Case {
        Case { caches: Caches::Cold, ..self }
    }
}

/// The two compared settings: a cancel checks all timer bases for the running callback, or only the
/// base that is recorded in the timer.
pub const SIDES: Sides<Scan> = Sides { before: Scan::AllBases, after: Scan::RunningBase };

/// Simulates the published figures on the two machines of the published report: `big` has 32 CPUs,
/// `small` has 4. `cold` is the state of the caches for the figures with cold caches. Two tests
/// remove a difference: one passes warm caches as `cold`, one passes equal `sides`. Each figure
/// that is judged right must lose that verdict in one of the tests.
pub fn cells(big: &Spec, small: &Spec, sides: Sides<Scan>, cold: Caches) -> io::Result<Vec<Cell>> {
    let (before, after) = (Case::new(sides.before), Case::new(sides.after));
    let single = Case { form: Form::SingleShot, ..after };
    let cold = |case: Case| Case { caches: cold, ..case };
    let figures = |spec| -> io::Result<[[Spread; 2]; 2]> {
        let warm_and_cold = |case| -> io::Result<[Spread; 2]> {
            Ok([figure(spec, case)?, figure(spec, cold(case))?])
        };
        Ok([warm_and_cold(before)?, warm_and_cold(after)?])
    };
    let [[many_before, many_cold], [many_after, many_after_cold]] = figures(big)?;
    let [[few_before, few_cold], [few_after, few_after_cold]] = figures(small)?;
    let plain =
        |id: &str, figure, published: f64| Cell::predicted(id, UNIT, figure).published(published);
    // Makes the cell for a figure with cold caches. Its verdict depends on how many times longer a
    // call takes than with warm caches.
    let slower = |id: &str, figure: Spread, warm: Spread, published: [f64; 2]| {
        plain(id, figure, published[1]).claims(times(figure, warm, [published[1], published[0]]))
    };
    // The formula to compare the simulation with: each further base costs a cache-line transfer.
    let others = f64::from(small.costs().topology.cpus()) - 1.0;
    let looks = others * small.value("line.node_ns") * small.value("cpu.ghz");
    Ok(vec![
        Cell::calibrated("32p.before.warm", UNIT, 29_000.0, many_before),
        slower("32p.before.cold", many_cold, many_before, [29_000.0, 37_800.0]),
        plain("32p.after.warm", many_after, 95.0)
            .claims(times(many_before, many_after, [29_000.0, 95.0]))
            .beside_formula(few_after.median),
        slower("32p.after.cold", many_after_cold, many_after, [95.0, 1_800.0]),
        plain("4p.before.warm", few_before, 505.0)
            .claims(times(few_before, few_after, [505.0, 88.0]))
            .beside_formula(few_after.median + looks),
        slower("4p.before.cold", few_cold, few_before, [505.0, 1_220.0]),
        Cell::calibrated("4p.after.warm", UNIT, 88.0, few_after),
        slower("4p.after.cold", few_after_cold, few_after, [88.0, 140.0]),
        plain("4p.single_shot.warm", figure(small, single)?, 90.0),
    ])
}

/// Returns the claim that `more` / `less` is the ratio of `published`, within a factor of 1.5.
fn times(more: Spread, less: Spread, published: [f64; 2]) -> Claim {
    let times = published[0] / published[1];
    Claim::times_less(more.median, less.median, Band::times(times, 1.5)).published(times, times)
}

/// Simulates what K. Chen measured in 2005 on two other machines, of the same kinds as `big` and
/// `small`, in nanoseconds. No parameter is fitted to these figures.
pub fn second_source(big: &Spec, small: &Spec) -> io::Result<Vec<Cell>> {
    let machines = [
        ("32w", big, "line.far_ns", [19_313.0, 81.0, 74.0]),
        ("4w", small, "line.node_ns", [648.0, 55.0, 41.0]),
    ];
    let mut cells = Vec::new();
    for (name, spec, distance, published) in machines {
        let ns = |case| -> io::Result<Spread> {
            let Spread { median, low, high, count } = figure(spec, case)?;
            let [median, low, high] = [median, low, high].map(|one| one / spec.value("cpu.ghz"));
            Ok(Spread { median, low, high, count })
        };
        let after = Case::new(SIDES.after);
        let before = ns(Case::new(SIDES.before))?;
        let single = ns(Case { form: Form::SingleShot, ..after })?;
        let after = ns(after)?;
        let claim = times(before, after, [published[0], published[1]]);
        let others = f64::from(spec.costs().topology.cpus()) - 1.0;
        let looks = after.median + others * spec.value(distance);
        let cell = |what: &str, figure, published| {
            Cell::predicted(format!("later.{name}.{what}"), "ns/call", figure).published(published)
        };
        cells.push(cell("before.warm", before, published[0]).claims(claim).beside_formula(looks));
        cells.push(cell("after.warm", after, published[1]));
        cells.push(cell("single_shot.warm", single, published[2]));
    }
    Ok(cells)
}

/// Fits the calibrated parameters (those that are fitted to published figures) again, after other
/// parameters of the machine were changed: first the work inside a critical section, on `small`,
/// which has the same processors; then the distance between nodes, unless the machine is `small`,
/// which has only one node.
pub fn refit(spec: &Spec, small: &Spec) -> io::Result<Spec> {
    const SHARED: [&str; 6] = [
        "cpu.ghz",
        "cpu.section_ns",
        "line.hit_ns",
        "line.store_ns",
        "line.atomic_ns",
        "workload.timers_per_tick",
    ];
    let is_small = spec.name == small.name;
    let small = SHARED.iter().fold(small.clone(), |small, key| small.with(key, spec.value(key)));
    let small = if is_small { spec.clone() } else { small };
    let small = fitted(&small, "cpu.section_ns", 88.0, |spec| {
        cycles(spec, Case::new(SIDES.after), SEEDS[0])
    })?;
    let spec = spec.with("cpu.section_ns", small.value("cpu.section_ns"));
    if is_small {
        return Ok(spec);
    }
    let both = |spec: &Spec| spec.with("line.far_ns", spec.value("line.near_ns"));
    let spec = fitted(&spec, "line.near_ns", 29_000.0, |spec| {
        // Few calls, because each looks at all CPUs. The first, with cold lines, is a small part.
        cycles(&both(spec), Case { calls: 100, ..Case::new(SIDES.before) }, SEEDS[0])
    })?;
    Ok(both(&spec))
}

/// Simulates the figures of any machine. They are not compared with published figures, and no
/// parameter is fitted to them.
pub fn cells_of(spec: &Spec) -> io::Result<Vec<Cell>> {
    let cpus = spec.costs().topology.cpus();
    let (before, after) = (Case::new(Scan::AllBases), Case::new(Scan::RunningBase));
    let single = Case { form: Form::SingleShot, ..after };
    let cases = [
        ("before.warm", before),
        ("before.cold", before.cold()),
        ("after.warm", after),
        ("after.cold", after.cold()),
        ("single_shot.warm", single),
    ];
    let cell = |(name, case)| {
        let figure = figure(spec, case)?;
        Ok(Cell::predicted(format!("{cpus}p.{name}"), UNIT, figure))
    };
    cases.into_iter().map(cell).collect()
}

const UNIT: &str = "cycles/call";

/// Simulates the points of a plot over the number of CPUs: the time of a call before and after,
/// with warm caches and 200 calls, on machines of the same kind as `big`, which have to be possible
/// ([`exactly`](tickless_machine::size::exactly)).
pub fn curve(big: &Spec, cpus: &[u16]) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for count in cpus {
        let spec = sized(big, *count);
        for (name, scan) in [("before", SIDES.before), ("after", SIDES.after)] {
            let case = Case { calls: 200, ..Case::new(scan) };
            let figure = cycles(&spec, case, SEEDS[0])?;
            cells.push(Cell::predicted(format!("{count}p.{name}.warm"), UNIT, figure));
        }
    }
    Ok(cells)
}

fn figure(spec: &Spec, case: Case) -> io::Result<Spread> {
    let seeds = SEEDS.iter().map(|seed| seed ^ spec.seed << 8);
    let runs: io::Result<Vec<f64>> = seeds.map(|seed| cycles(spec, case, seed)).collect();
    Ok(Spread::of_runs(runs?))
}

type Timers = Vec<OwnedTimer<Sim, QueueLink>>;

/// Returns the mean CPU cycles of a cancel while the other simulated CPUs run timers.
pub fn cycles(spec: &Spec, case: Case, seed: u64) -> io::Result<f64> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let settings = Settings { scan: case.scan, ..Settings::default() };
    let bases = Arc::new(Bases::new(Sim, cpus, settings));
    let period = Ns((1e9 / spec.value("workload.hz").max(1.0)) as u64);
    expire_in_interrupts(&mut machine, &bases, spec, period);

    let each = spec.value("workload.timers_per_tick") as u16;
    let mut random = Random::new(seed);
    let timers: Rc<Vec<Timers>> = Rc::new(
        (0..cpus).map(|_| (0..each).map(|_| OwnedTimer::new(&bases, 0)).collect()).collect(),
    );
    for cpu in 1..cpus {
        let timers = Rc::clone(&timers);
        let offsets: Vec<u64> = (0..each).map(|_| random.below(period.0)).collect();
        machine.start(CpuId(cpu), move || keep_timers_busy(&timers[cpu as usize], &offsets))?;
    }
    let total = Rc::new(Shared::new(Ps::ZERO));
    let (bases, spent) = (Arc::clone(&bases), Rc::clone(&total));
    machine.start(CpuId(0), move || {
        spent.set(call(&bases, case, period, &mut random));
        engine::end();
    })?;
    machine.run(Ns::NEVER);
    Ok(total.get().as_ns_f64() * spec.value("cpu.ghz") / f64::from(case.calls.max(1)))
}

fn expire_in_interrupts(machine: &mut Machine, bases: &Arc<Bases<Sim>>, spec: &Spec, period: Ns) {
    let bases = Arc::clone(bases);
    let callback = spec.time("workload.timer_work_ns");
    machine.on_interrupt(move |_: Vector| {
        bases.expire(cpu::here(), |firing| {
            cpu::charge(callback);
            if engine::is_ending() {
                return CallbackResult::Done;
            }
            CallbackResult::Restart(periodic::forward(firing.window, firing.now, period).0)
        });
    });
}

fn keep_timers_busy(timers: &Timers, offsets: &[u64]) {
    for (timer, offset) in timers.iter().zip(offsets) {
        // These timers are never shut down, so arming does not fail.
        let _ = timer.start(Window::at(Ns(1 + offset)), Ns::ZERO, Options::default());
    }
    while !engine::is_ending() {
        cpu::work(Ps::from_ns(Ns::from_ms(10)));
    }
}

/// Arms a timer and cancels it, `case.calls` times. Returns the time spent in the cancels.
fn call(bases: &Arc<Bases<Sim>>, case: Case, period: Ns, random: &mut Random) -> Ps {
    let timer = OwnedTimer::<Sim, QueueLink>::new(bases, 0);
    let mut spent = Ps::ZERO;
    // Wait for two ticks. Within them every CPU's timers have fired at least once.
    cpu::work(Ps::from_ns(Ns(2 * period.0)));
    for _ in 0..case.calls {
        let now = tickless_machine::platform::now();
        let due = now.after(Ns::from_secs(3_600));
        let _ = timer.start(Window::at(due), now, Options::default());
        cpu::work(Ps::from_ns(Ns(period.0 / 2 + random.below(period.0))));
        if case.caches == Caches::Cold {
            engine::flush_caches();
        }
        let began = cpu::clock();
        match case.form {
            Form::Sync => {
                timer.cancel_sync();
            }
            Form::SingleShot => {
                let _ = timer.cancel_single_shot();
            }
        }
        spent += cpu::clock() - began;
    }
    spent
}
