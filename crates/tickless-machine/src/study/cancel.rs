//! Seed 2: what a synchronous cancel costs, looking at one base or at all of them.
//!
//! All CPUs do timer work: each has a few periodic timers whose callbacks start and end there, so
//! the line that says what a base runs is in that CPU's cache and dirty. (One caller on an idle
//! machine could not give the published 29,000 cycles: every line would be shared after its
//! first call.) CPU 0 arms a timer, waits about a tick, and cancels it, counting cycles.
//!
//! | cell | role |
//! |---|---|
//! | 32p before, warm: 29,000 | calibrates the distance between nodes |
//! | 4p after, warm: 88 | calibrates the private work of a critical section, on both machines |
//! | 32p after, warm: 95 | predicted, within 2x |
//! | 4p before, warm: 505 | predicted, within 2x |
//! | all cold ones | shown; they are not consistent with each other |

use super::{Band, Cell, Figure};
use crate::cpu;
use crate::engine::{self, Machine};
use crate::irq::Vector;
use crate::platform::Sim;
use crate::ps::Ps;
use crate::random::Random;
use crate::spec::Spec;
use std::cell::Cell as Shared;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::{Bases, Options, Scan, Settings};
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::periodic;
use tickless_core::time::{CpuId, Ns, Window};

/// The seeds that each cell is run with.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Are the caller's and everybody's caches as the last call left them, or empty?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caches {
    /// As they were left.
    Warm,
    /// Flushed before each call.
    Cold,
}

/// Which cancel is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `cancel_sync`.
    Sync,
    /// `cancel_single_shot`.
    SingleShot,
}

/// One way to cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Where it looks: the switch of seed 2.
    pub scan: Scan,
    /// What is in the caches.
    pub caches: Caches,
    /// Which form.
    pub form: Form,
    /// How many calls are averaged.
    pub calls: u32,
}

impl Case {
    /// 1000 warm calls of `cancel_sync`, as in the thread.
    pub const fn new(scan: Scan) -> Case {
        Case { scan, caches: Caches::Warm, form: Form::Sync, calls: 1_000 }
    }

    /// The same with empty caches.
    #[must_use]
    pub const fn cold(self) -> Case {
        Case { caches: Caches::Cold, ..self }
    }
}

/// The cells of the thread, on its two machines. `big` is the one of 32 CPUs, `small` the one
/// of 4.
pub fn cells(big: &Spec, small: &Spec) -> io::Result<Vec<Cell>> {
    let before = Case::new(Scan::AllBases);
    let after = Case::new(Scan::RunningBase);
    let single = Case { form: Form::SingleShot, ..after };
    Ok(vec![
        Cell::calibrated("32p.before.warm", UNIT, 29_000.0, figure(big, before)?),
        Cell::predicted("32p.before.cold", UNIT, figure(big, before.cold())?).published(37_800.0),
        Cell::predicted("32p.after.warm", UNIT, figure(big, after)?)
            .published(95.0)
            .within(Band::times(95.0, 2.0)),
        Cell::predicted("32p.after.cold", UNIT, figure(big, after.cold())?).published(1_800.0),
        Cell::predicted("4p.before.warm", UNIT, figure(small, before)?)
            .published(505.0)
            .within(Band::times(505.0, 2.0)),
        Cell::predicted("4p.before.cold", UNIT, figure(small, before.cold())?).published(1_220.0),
        Cell::calibrated("4p.after.warm", UNIT, 88.0, figure(small, after)?),
        Cell::predicted("4p.after.cold", UNIT, figure(small, after.cold())?).published(140.0),
        Cell::predicted("4p.single_shot.warm", UNIT, figure(small, single)?)
            .published(90.0)
            .within(Band::times(90.0, 2.0)),
    ])
}

/// The same on any other machine: nothing was published about it, and nothing was set.
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

/// A short stretch of it, for a timeline.
pub fn stretch(spec: &Spec) -> io::Result<()> {
    let case = Case { calls: 20, ..Case::new(Scan::AllBases) };
    cycles(spec, case, SEEDS[0] ^ spec.seed << 8).map(drop)
}

/// What the thread counted in.
const UNIT: &str = "cycles/call";

/// The shape: before and after on machines of the same kind with so many CPUs each, warm, 200
/// calls. A CPU count that does not fill whole nodes is rounded up to one that does.
pub fn curve(big: &Spec, cpus: &[u16]) -> io::Result<Vec<Cell>> {
    let per_node = big.value("topology.cores_per_socket").max(1.0);
    let mut cells = Vec::new();
    for &count in cpus {
        let nodes = (f64::from(count) / per_node).ceil().max(1.0);
        let spec = big.with("topology.sockets", nodes).with("topology.sockets_per_group", nodes);
        for (name, scan) in [("before", Scan::AllBases), ("after", Scan::RunningBase)] {
            let case = Case { calls: 200, ..Case::new(scan) };
            let figure = Figure::of(vec![cycles(&spec, case, SEEDS[0])?]);
            cells.push(Cell::predicted(format!("{count}p.{name}.warm"), UNIT, figure));
        }
    }
    Ok(cells)
}

fn figure(spec: &Spec, case: Case) -> io::Result<Figure> {
    let seeds = SEEDS.iter().map(|seed| seed ^ spec.seed << 8);
    let runs: io::Result<Vec<f64>> = seeds.map(|seed| cycles(spec, case, seed)).collect();
    Ok(Figure::of(runs?))
}

/// A CPU's periodic timers.
type Timers = Vec<OwnedTimer<Sim, QueueLink>>;

/// The mean cycles of a call.
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
        bases.expire(engine::here(), |firing| {
            engine::charge(callback);
            if engine::is_ending() {
                return Verdict::Done;
            }
            Verdict::Restart(periodic::forward(firing.window, firing.now, period).0)
        });
    });
}

/// Starts this CPU's periodic timers and computes until the end.
fn keep_timers_busy(timers: &Timers, offsets: &[u64]) {
    for (timer, offset) in timers.iter().zip(offsets) {
        let first = Ns(1 + offset);
        // Nobody shuts these timers down, so they can be armed.
        let _ = timer.start(Window::new(first, first), Ns::ZERO, Options::default());
    }
    while !engine::is_ending() {
        cpu::work(Ps::from_ns(Ns::from_ms(10)));
    }
}

/// Arms, waits about a tick, cancels; returns how long all cancels took.
fn call(bases: &Arc<Bases<Sim>>, case: Case, period: Ns, random: &mut Random) -> Ps {
    let timer = OwnedTimer::<Sim, QueueLink>::new(bases, 0);
    let mut spent = Ps::ZERO;
    // Two ticks for everybody's timers to have fired once.
    cpu::work(Ps::from_ns(Ns(2 * period.0)));
    for _ in 0..case.calls {
        let now = crate::platform::now();
        let due = now.after(Ns::from_secs(3_600));
        let _ = timer.start(Window::new(due, due), now, Options::default());
        cpu::work(Ps::from_ns(Ns(period.0 / 2 + random.below(period.0))));
        if case.caches == Caches::Cold {
            engine::flush_caches();
        }
        let began = engine::clock();
        match case.form {
            Form::Sync => {
                timer.cancel_sync();
            }
            Form::SingleShot => {
                let _ = timer.cancel_single_shot();
            }
        }
        spent += engine::clock() - began;
    }
    spent
}
