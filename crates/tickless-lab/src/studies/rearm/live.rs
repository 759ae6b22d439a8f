//! The study of lazy rearming on this machine.
//!
//! Two threads wake each other. Each arms a timer, its *guard*, before every wait and cancels it
//! after the wait. The main result is a count of writes to the event device. With lazy rearming the
//! guards never program the device: it stays armed for the first deadline, and every later deadline
//! is later than that. With eager rearming both threads program it when a guard is armed and again
//! when it is removed. The difference in time depends on the cost of a device write. For our driver
//! thread, a write is a system call that wakes the thread.

use super::devices;
use super::ping_pong::{Guard, Plan, Taken, row_with_range};
use crate::LabError;
use crate::measure::{self, Spread, interleave, mean};
use crate::progress::Progress;
use crate::studies::plot::{Axis, Bar, Line, Plot, Shape, Side};
use crate::studies::result::{self as columns, Column};
use crate::studies::{Band, Cell, Exhibit, Request, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::driver::Device;
use tickless::policy::Policy;

struct GuardVariant {
    name: &'static str,
    policy: Option<Policy>,
    /// The published times, in us per round trip: real, user and system time.
    published: Option<[f64; 3]>,
    writes: Band,
}

const LAZY: usize = 0;
const EAGER: usize = 1;
const RESTART_AWARE: usize = 2;
const UNGUARDED: usize = 3;

struct Pairing {
    prefix: &'static str,
    cpus: [usize; 2],
}

const VARIANTS: [GuardVariant; 4] = [
    GuardVariant {
        name: "lazy",
        policy: Some(Policy::Lazy),
        published: Some([5.32425, 0.11175, 2.28575]),
        // Not zero: on a busy machine the driver may check the first deadline only during the
        // measurement, which also writes to the device.
        writes: Band::at_most(0.001),
    },
    GuardVariant {
        name: "eager",
        policy: Some(Policy::Eager),
        published: Some([7.202, 0.075375, 3.20625]),
        writes: Band::at_least(2.0),
    },
    GuardVariant {
        name: "restart_aware",
        policy: Some(Policy::RestartAware),
        published: None,
        writes: Band::at_least(2.0),
    },
    GuardVariant { name: "unguarded", policy: None, published: None, writes: Band::at_most(0.0) },
];

/// How far ahead a guard is armed. It is the same for all guards, so each deadline is later than
/// the one before, and so long that no guard expires.
const GUARD: Duration = Duration::from_secs(600);

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request.reject_cpus(
        "study rearm --live plays with two threads; leave --cpus out, or use taskset to say where \
         they may run",
    )?;
    let mut study = StudyResult::live("rearm", request);
    let places = places();
    let turns = request.effort.turns(2, 8, 8);
    let trips = request.effort.pick(500, 20_000, 1_000_000);
    let variants = VARIANTS.len() * places.len();
    let mut taken = interleave("ping-pong", variants, turns, progress, |way| {
        let guard = VARIANTS[way % VARIANTS.len()].policy.map(|policy| Guard {
            policy,
            after: GUARD,
            device: Device::Futex,
        });
        Plan { guard, trips, cpus: places[way / VARIANTS.len()].cpus }.play()
    })?;
    for place in &places {
        let taken: Vec<Vec<Taken>> = taken.drain(..VARIANTS.len()).collect();
        for (way, taken) in VARIANTS.iter().zip(&taken) {
            if place.prefix.is_empty() && way.policy.is_some() {
                study.exhibits.push(table_of_runs(way, taken, trips));
            }
            cells(&mut study, place, way, taken);
        }
        gaps(&mut study, place, &taken);
        if place.prefix.is_empty() {
            writes_plot(&mut study, &taken);
        } else {
            study.exhibits.push(short_table(&taken));
        }
    }
    study.notes.push(how(&places, trips));
    devices::compare(&mut study, request, progress, places[0].cpus, GUARD)?;
    density(&mut study, request, progress, places[0].cpus)?;
    Ok(study)
}

/// Returns the CPUs to measure on. First, both threads share one CPU, where a round trip is only
/// two context switches. If there are two CPUs, then also each thread on its own CPU, where a round
/// trip waits for idle CPUs to wake.
fn places() -> Vec<Pairing> {
    let cpus = measure::cpus();
    let last = cpus[cpus.len() - 1];
    let one = Pairing { prefix: "", cpus: [last; 2] };
    let two = Pairing { prefix: "two_cpus.", cpus: [cpus[0], last] };
    if cpus[0] == last { vec![one] } else { vec![one, two] }
}

const FIGURES: [Column<Taken>; 6] = [
    ("real_us_per_round_trip", "real us", "us", |t| t.us(t.usage.real_s)),
    ("user_us_per_round_trip", "user us", "us", |t| t.us(t.usage.user_s)),
    ("system_us_per_round_trip", "system us", "us", |t| t.us(t.usage.system_s)),
    ("switches_per_round_trip", "switches", "switches", |t| t.count(t.usage.switches())),
    ("device_writes_per_round_trip", "device writes", "writes", |t| t.count(t.device.writes)),
    ("wake_calls_per_round_trip", "wake calls", "calls", |t| t.count(t.wake_calls)),
];
const REAL: usize = 0;
const SWITCHES: usize = 3;
const WRITES: usize = 4;

fn spread(taken: &[Taken], figure: usize) -> Spread {
    Spread::of(taken.iter().map(FIGURES[figure].3))
}

fn short_table(taken: &[Vec<Taken>]) -> Exhibit {
    const CPU: Column<Taken> = ("cpu_us_per_round_trip", "CPU us", "us", |t| t.us(t.usage.cpu_s()));
    let figures = [FIGURES[REAL], CPU, FIGURES[SWITCHES], FIGURES[WRITES]];
    let row = |(way, taken): (&GuardVariant, &Vec<Taken>)| {
        row_with_range(way.name.to_string(), &figures, taken)
    };
    let header = ["", "real us", "low - high", "CPU us", "switches", "device writes"];
    let rows = VARIANTS.iter().zip(taken).map(row).collect();
    Exhibit::new("Each thread on a CPU of its own, per round trip", header, rows)
}

fn cells(study: &mut StudyResult, place: &Pairing, way: &GuardVariant, taken: &[Taken]) {
    let in_exhibit = !place.prefix.is_empty();
    let measured = if way.policy.is_some() { &FIGURES[..] } else { &FIGURES[..WRITES] };
    let cells = columns::cells(&format!("{}{}", place.prefix, way.name), measured, taken);
    for (at, cell) in cells.into_iter().enumerate() {
        let times = way.published.filter(|_| !in_exhibit);
        let published = times.and_then(|times| times.get(at).copied());
        let cell = cell.within((at == WRITES).then_some(way.writes));
        study.cells.push(Cell { in_exhibit, published, ..cell });
    }
}

fn table_of_runs(way: &GuardVariant, taken: &[Taken], trips: u32) -> Exhibit {
    let runs = (1..=taken.len()).map(|run| run.to_string());
    let header = [String::new()].into_iter().chain(runs).chain(["AVG".into(), "MED".into()]);
    let row = |(_, heading, _, value): &Column<Taken>| {
        let times: Vec<f64> = taken.iter().map(value).collect();
        let ends = [mean(&times), Spread::of(times.iter().copied()).median];
        let times = times.iter().chain(&ends).map(|&time| figure(time));
        [heading.trim_end_matches(" us").to_string()].into_iter().chain(times).collect()
    };
    Exhibit::new(
        format!("{}, us per round trip, each run {trips} round trips", way.name),
        header,
        FIGURES[..SWITCHES].iter().map(row).collect(),
    )
}

fn gaps(study: &mut StudyResult, place: &Pairing, taken: &[Vec<Taken>]) {
    let real = |way: usize| -> Vec<f64> { taken[way].iter().map(|t| t.usage.real_s).collect() };
    let pairs = [
        ("gap.eager_over_lazy", EAGER, LAZY, Some(7.202 / 5.32425)),
        ("gap.restart_aware_over_lazy", RESTART_AWARE, LAZY, None),
        ("gap.lazy_over_unguarded", LAZY, UNGUARDED, None),
    ];
    for (id, above, below, published) in pairs {
        let id = format!("{}{id}", place.prefix);
        let cell = Cell::live(id, "x", Spread::of_ratios(&real(above), &real(below)));
        study.cells.push(Cell { published: published.filter(|_| place.prefix.is_empty()), ..cell });
    }
}

fn writes_plot(study: &mut StudyResult, taken: &[Vec<Taken>]) {
    let bar = |way: usize| Bar {
        name: VARIANTS[way].name.replace('_', "-"),
        side: [Side::After, Side::Before, Side::Beside][way],
        value: spread(&taken[way], WRITES).median,
    };
    let bars = [EAGER, RESTART_AWARE, LAZY].map(bar).to_vec();
    let shape = Shape::Bars { unit: "writes per round trip", bars };
    let plot = Plot::new("writes", "Device writes per round trip", shape);
    study.plots.push(plot.in_exhibit());
}

fn how(places: &[Pairing], trips: u32) -> String {
    let [one, other] = places[places.len() - 1].cpus;
    let place = match one == other {
        true => format!("both, and the drivers, on CPU {one}, the only one"),
        false => format!(
            "both, and the drivers, on CPU {other}; two_cpus: on CPUs {one} and {other}, where \
             waking an idle CPU takes so long that eager's writes add little"
        ),
    };
    format!(
        "two threads, {place}; {trips} round trips a run after a warm-up, the policies in turn, \
         forwards and backwards; a guard {} s ahead during every wait. CPU time and switches are \
         of the whole process, including drivers. An atomic add takes {} ns here",
        GUARD.as_secs(),
        figure(measure::atomic_add_ns()),
    )
}

/// Measures round trips with nearer guards, to find the distance below which lazy rearming costs
/// more than it saves: the device then fires for guards that were cancelled.
fn density(
    study: &mut StudyResult,
    request: &Request,
    progress: &dyn Progress,
    cpus: [usize; 2],
) -> Result<(), LabError> {
    const POLICIES: [Policy; 2] = [Policy::Lazy, Policy::Eager];
    let turns = request.effort.turns(1, 5, 9);
    let trips = request.effort.pick(500, 5_000, 50_000);
    let guards_us: &[u64] = request.effort.pick(
        &[100, 1_000, 10_000],
        &[50, 100, 300, 1_000, 10_000],
        &[30, 50, 100, 200, 300, 1_000, 3_000, 10_000, 100_000],
    );
    let variants = guards_us.len() * POLICIES.len();
    let taken = interleave("nearer guards", variants, turns, progress, |way| {
        let after = Duration::from_micros(guards_us[way / 2]);
        let guard = Some(Guard { policy: POLICIES[way % 2], after, device: Device::Futex });
        Plan { guard, trips, cpus }.play()
    })?;
    let mut rows = Vec::new();
    let mut dearer = Vec::new();
    let mut spurious_most = 0.0_f64;
    let mut points = [Vec::new(), Vec::new()];
    for (pair, &guard_us) in taken.chunks(POLICIES.len()).zip(guards_us) {
        let real = |policy: usize| -> Vec<f64> {
            pair[policy].iter().map(|taken| taken.us(taken.usage.real_s)).collect()
        };
        let medians = |figure: usize| [0, 1].map(|policy| spread(&pair[policy], figure).median);
        let spurious = Spread::of(pair[0].iter().map(|taken| taken.count(taken.device.spurious)));
        spurious_most = spurious_most.max(spurious.median);
        let ratio = Spread::of_ratios(&real(1), &real(0));
        if ratio.median < 1.0 {
            dearer.push(format!("{guard_us} us"));
        }
        let id = |what: &str| format!("guard_{guard_us}us.{what}");
        study.cells.push(Cell::live(id("eager_over_lazy"), "x", ratio).in_exhibit());
        let cell = Cell::live(id("lazy_events_for_nothing"), "events", spurious);
        study.cells.push(cell.in_exhibit());
        let (times, writes) = (medians(REAL), medians(WRITES));
        for (points, us) in points.iter_mut().zip(times) {
            points.push([guard_us as f64, us]);
        }
        let row = [guard_us as f64, times[0], times[1], writes[0], writes[1], spurious.median];
        rows.push(row.map(figure).to_vec());
    }
    let header = ["guard, us", "lazy, us", "eager, us", "lazy writes", "eager writes", "spurious"];
    study.exhibits.push(Exhibit::new(
        "Nearer guards, per round trip: the cost of lazy rearming when events occur",
        header,
        rows,
    ));
    let [lazy, eager] = points;
    let shape = Shape::Curve {
        x: Axis::log("distance of the guard, us"),
        y: Axis::linear("us per round trip"),
        lines: vec![Line::new("eager", Side::Before, eager), Line::new("lazy", Side::After, lazy)],
    };
    let title = "A round trip by the distance of the guard";
    study.plots.push(Plot::new("guards", title, shape).in_exhibit());
    answers(study, &dearer, spurious_most);
    Ok(())
}

fn answers(study: &mut StudyResult, dearer: &[String], spurious_most: f64) {
    let value = |id: &str| study.figure(id);
    let why = format!(
        "Because of the device writes: {} per round trip with eager rearming and {} with lazy. A \
         round trip takes {} us and {} us here. On two CPUs most of the difference overlaps with \
         the wakeup of an idle CPU: eager takes {} times as long as lazy.",
        value("eager.device_writes_per_round_trip"),
        value("lazy.device_writes_per_round_trip"),
        value("eager.real_us_per_round_trip"),
        value("lazy.real_us_per_round_trip"),
        value("two_cpus.gap.eager_over_lazy"),
    );
    study.answer("Why does programming on removal cost so much?", why);
    study.answer(
        "Will the chance to program the device be lost if a removal does not program it?",
        "No. The device stays armed at or before the first remaining deadline. Its event comes \
         early, finds no timer due, and programs the next one (contract R1, R2: checked by tests, \
         not by this run). The cost is that event.",
    );
    let when = match dearer {
        [] => "at none of the measured guards did they cost more than eager's writes".to_string(),
        some => format!("at guards of {} they cost more than eager's writes", some.join(", ")),
    };
    study.answer(
        "How many extra wakeups does laziness cost, and when does eager win?",
        format!(
            "At most one in each guard distance, at any rate of arming; up to {} per round trip \
             here; {when}.",
            figure(spurious_most)
        ),
    );
}
