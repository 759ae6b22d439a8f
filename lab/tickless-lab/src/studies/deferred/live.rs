//! The study of deferred expiry on this machine. Expired timers are fired by an expiry thread,
//! which is woken on every tick (before) or only when a timer has expired (after).
//!
//! The main result is a count: with a tick of 1 ms and few expiring timeouts, a thread that is
//! woken only for expired timers is woken far less often than on every tick. The published report
//! measured something else: how late a probe (a measuring thread) wakes. An unpinned probe wakes
//! earlier on average, with an unchanged maximum; for pinned probes, one on each CPU, nothing
//! changes.

use super::scene::{ExpiryWakes, Scene, Taken};
use super::{STUDY, plot_wakes, softirqs};
use crate::error::LabError;
use crate::latency::Tally;
use crate::measure::{Spread, interleave};
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::{Plot, Side};
use crate::studies::request::Request;
use crate::studies::result::{self as columns, Column, StudyResult};
use std::ops::Range;
use std::time::Duration;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request
        .reject_cpus("study deferred --live uses every CPU; leave --cpus out, or use taskset")?;
    let mut study = StudyResult::live("deferred", request);
    let effort = request.effort;
    // Counted before the study's own threads raise softirqs.
    let (kernel, softirqs) =
        softirqs::count(Duration::from_millis(effort.pick(150, 1_000, 10_000)));
    let (turns, ms) = (effort.turns(1, 3, 10), effort.pick(150, 1_000, 10_000));
    let compared = play("ticking", &CIRCUMSTANCES, turns, ms, request, progress)?;
    let (turns, ms) = (effort.turns(1, 2, 5), effort.pick(100, 700, 5_000));
    let phases = play("phases", &PHASES, turns, ms, request, progress)?;
    cells(&mut study, &CIRCUMSTANCES, &compared, &FIGURES);
    cells(&mut study, &PHASES, &phases, &FIGURES[OF_PROBE]);
    plots(&mut study, &compared);
    comparisons(&mut study, &compared);
    study.cells.extend(kernel);
    study.explained(request, STUDY.text, &words(&compared, softirqs))
}

/// The indexes of the result are circumstance, way of waking, and turn.
fn play(
    step: &'static str,
    all: &[Circumstances],
    turns: usize,
    ms: u64,
    request: &Request,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Vec<Taken>>>, LabError> {
    let (duration, seed) = (Duration::from_millis(ms), request.seed);
    let scene = |here: &Circumstances, way| Scene { way, duration, seed, ..here.scene };
    let scenes: Vec<Scene> =
        all.iter().flat_map(|here| here.ways.iter().map(|&way| scene(here, way))).collect();
    let taken = interleave(step, scenes.len(), turns, progress, |at| scenes[at].play())?;
    let mut taken = taken.into_iter();
    Ok(all.iter().map(|here| taken.by_ref().take(here.ways.len()).collect()).collect())
}

fn cells(
    study: &mut StudyResult,
    all: &[Circumstances],
    taken: &[Vec<Vec<Taken>>],
    figures: &[Column<Taken>],
) {
    for (here, taken) in all.iter().zip(taken) {
        for (way, taken) in here.ways.iter().zip(taken) {
            let id = format!("{}.{}", here.id, way.name());
            study.cells.extend(columns::cells(&id, figures, taken));
        }
    }
}

struct Circumstances {
    id: &'static str,
    scene: Scene,
    ways: &'static [ExpiryWakes],
}

const BOTH: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After];
const ALL: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After, ExpiryWakes::Tickless];

const SLOW: Scene = Scene { hz: 250, ..Scene::IDLE };

const CIRCUMSTANCES: [Circumstances; 5] = [
    Circumstances { id: "1000hz.idle", scene: Scene::IDLE, ways: ALL },
    Circumstances { id: "1000hz.busy", scene: Scene { is_busy: true, ..Scene::IDLE }, ways: BOTH },
    Circumstances {
        id: "1000hz.pinned",
        scene: Scene { is_pinned: true, ..Scene::IDLE },
        ways: BOTH,
    },
    Circumstances { id: "250hz.idle", scene: SLOW, ways: BOTH },
    Circumstances { id: "250hz.busy", scene: Scene { is_busy: true, ..SLOW }, ways: BOTH },
];

/// The circumstances in which the phase is fixed: how long after a tick the probe wakes.
const PHASES: [Circumstances; 4] = [
    phase("phase_0us", 0),
    phase("phase_250us", 250),
    phase("phase_500us", 500),
    phase("phase_750us", 750),
];

const fn phase(id: &'static str, phase_us: u64) -> Circumstances {
    let phase = Some(Duration::from_micros(phase_us));
    Circumstances { id, scene: Scene { phase, ..Scene::IDLE }, ways: BOTH }
}

const FIGURES: [Column<Taken>; 9] = [
    ("ticks_per_s", "1/s", |taken| taken.ticks_per_s),
    ("wakes_per_s", "1/s", |taken| taken.wakes_per_s),
    ("empty_wakes_per_s", "1/s", |taken| taken.empty_wakes_per_s),
    ("switches_per_s", "1/s", |taken| taken.switches_per_s),
    ("cpu_percent", "%", |taken| taken.cpu_percent),
    ("probe_avg_us", "us", |taken| taken.probe.average_ns() / 1e3),
    ("probe_p99_us", "us", |taken| us(&taken.probe, 0.99)),
    ("probe_max_us", "us", |taken| us(&taken.probe, 1.0)),
    ("timeouts_p99_us", "us", |taken| us(&taken.timeouts, 0.99)),
];

/// Indexes into `FIGURES` of the figures about the probe, which is the measuring thread.
const OF_PROBE: Range<usize> = 5..8;

fn us(tally: &Tally, quantile: f64) -> f64 {
    tally.lateness.value_at_quantile(quantile) as f64 / 1e3
}

fn plots(study: &mut StudyResult, compared: &[Vec<Vec<Taken>>]) {
    plot_wakes(study, "idle");
    for (id, what, at) in [("late_idle", "idle", 0), ("late_busy", "busy", 1)] {
        let (here, taken) = (&CIRCUMSTANCES[at], &compared[at]);
        let sums: Vec<Tally> = taken.iter().map(|taken| sum(taken)).collect();
        let ways: Vec<(&str, Side, &Tally)> =
            here.ways.iter().zip(&sums).map(|(way, sum)| (way.name(), side(*way), sum)).collect();
        let title = format!("1000 Hz {what}: how late the probe woke");
        study.plots.push(Plot::of_lateness(id, title, &ways));
    }
}

fn side(way: ExpiryWakes) -> Side {
    match way {
        ExpiryWakes::Before => Side::Before,
        ExpiryWakes::After => Side::After,
        ExpiryWakes::Tickless => Side::Beside,
    }
}

fn sum(taken: &[Taken]) -> Tally {
    let mut sum = Tally::default();
    taken.iter().for_each(|taken| sum.add(&taken.probe));
    sum
}

/// Adds ratios between figures without the mechanism and with it. Both figures of a ratio are from
/// the same turn, so that a slow change of the machine's load affects both.
fn comparisons(study: &mut StudyResult, compared: &[Vec<Vec<Taken>>]) {
    for (here, taken) in CIRCUMSTANCES.iter().zip(compared) {
        let [before, after] = [0, 1].map(|way| &taken[way]);
        let mut push = |what: &str, spread, band: Option<Band>| {
            let cell = Cell::live(format!("{}.{what}", here.id), "x", spread);
            study.cells.push(cell.within(band));
        };
        let fewer = |of: fn(&Taken) -> f64| Spread::of_ratios(before, after, of);
        let is_mostly_idle = here.id == "1000hz.idle";
        let tenfold = is_mostly_idle.then_some(Band::at_least(10.0));
        push("fewer_wakes", fewer(|taken| taken.wakes_per_s), tenfold);
        push("fewer_switches", fewer(|taken| taken.switches_per_s), None);
        push("less_cpu", fewer(|taken| taken.cpu_percent), None);
        let later = |of: fn(&Taken) -> f64| Spread::of_ratios(after, before, of);
        push("probe_avg_after_over_before", later(|taken| taken.probe.average_ns()), None);
        // A maximum is a single wakeup among thousands, so on a shared machine it depends mostly on
        // other load. The wide band only detects a maximum that grows in every turn.
        let max = later(|taken| us(&taken.probe, 1.0));
        push("probe_max_after_over_before", max, Some(Band::at_most(1.5)));
    }
}

fn words(compared: &[Vec<Vec<Taken>>], softirqs: String) -> [(&'static str, String); 4] {
    let probed: u64 = compared.iter().flatten().map(|taken| sum(taken).lateness.len()).sum();
    let all = || compared.iter().flatten().flatten();
    let merged: u64 = all().map(|taken| taken.merged).sum();
    let longest = all().map(|taken| taken.longest_batch).max().unwrap_or(0);
    [
        ("probed", probed.to_string()),
        ("merged", merged.to_string()),
        ("longest", longest.to_string()),
        ("softirqs", softirqs),
    ]
}
