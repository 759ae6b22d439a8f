//! The study of deferred expiry on this machine. Expired timers are fired by an expiry thread,
//! which is woken on every tick (before) or only when a timer has expired (after).
//!
//! The main result is a count: with a tick of 1 ms and few expiring timeouts, a thread that is
//! woken only for expired timers is woken far less often than on every tick. The published report
//! measured something else: how late a probe (a measuring thread) wakes. An unpinned probe wakes
//! earlier on average, with an unchanged maximum; for pinned probes, one on each CPU, nothing
//! changes.

use super::plot_wakes;
use super::scene::{ExpiryWakes, Scene, Taken};
use crate::LabError;
use crate::latency::Tally;
use crate::measure::{self, Spread, interleave};
use crate::progress::Progress;
use crate::studies::plot::{Plot, Side};
use crate::studies::result::{self as columns, Column};
use crate::studies::{Band, Cell, Request, StudyResult};
use crate::text::figure;
use std::ops::Range;
use std::time::Duration;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request
        .reject_cpus("study deferred --live uses every CPU; leave --cpus out, or use taskset")?;
    let mut study = StudyResult::live("deferred", request);
    let compared = circumstances(request, progress)?;
    let phases = phases(request, progress)?;
    write(&mut study, &compared, &phases);
    Ok(study)
}

/// Measures in each of `CIRCUMSTANCES`. Returns results by circumstance, way of waking, and turn.
fn circumstances(
    request: &Request,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Vec<Taken>>>, LabError> {
    let turns = request.effort.turns(1, 3, 10);
    let duration = Duration::from_millis(request.effort.pick(150, 1_000, 10_000));
    let scenes: Vec<Scene> = CIRCUMSTANCES
        .iter()
        .flat_map(|&Circumstances { hz, is_busy, is_pinned, ways, .. }| {
            let idle = |&way: &ExpiryWakes| Scene::idle(way, request.seed);
            ways.iter().map(move |way| Scene { hz, is_busy, is_pinned, duration, ..idle(way) })
        })
        .collect();
    let mut taken =
        interleave("ticking", scenes.len(), turns, progress, |at| scenes[at].play())?.into_iter();
    let of_ways = |here: &Circumstances| taken.by_ref().take(here.ways.len()).collect();
    Ok(CIRCUMSTANCES.iter().map(of_ways).collect())
}

/// Measures with each phase, which is the time from a tick to the probe's wakeup. Returns for each
/// phase the results of all turns, first without and then with the mechanism.
fn phases(request: &Request, progress: &dyn Progress) -> Result<Vec<Vec<Vec<Taken>>>, LabError> {
    let turns = request.effort.turns(1, 2, 5);
    let duration = Duration::from_millis(request.effort.pick(100, 700, 5_000));
    let scene = |phase_us, way| {
        let phase = Some(Duration::from_micros(phase_us));
        Scene { phase, duration, ..Scene::idle(way, request.seed) }
    };
    let scenes: Vec<Scene> =
        PHASES_US.iter().flat_map(|&us| BOTH.iter().map(move |&way| scene(us, way))).collect();
    let taken = interleave("phases", scenes.len(), turns, progress, |at| scenes[at].play())?;
    Ok(taken.chunks(BOTH.len()).map(<[Vec<Taken>]>::to_vec).collect())
}

#[derive(Clone, Copy)]
struct Circumstances {
    id: &'static str,
    hz: u32,
    is_busy: bool,
    is_pinned: bool,
    ways: &'static [ExpiryWakes],
}

const BOTH: &[ExpiryWakes] = &[ExpiryWakes::Before, ExpiryWakes::After];

const IDLE: Circumstances = Circumstances {
    id: "1000hz.idle",
    hz: 1_000,
    is_busy: false,
    is_pinned: false,
    ways: &[ExpiryWakes::Before, ExpiryWakes::After, ExpiryWakes::Tickless],
};

const CIRCUMSTANCES: [Circumstances; 5] = [
    IDLE,
    Circumstances { id: "1000hz.busy", is_busy: true, ways: BOTH, ..IDLE },
    Circumstances { id: "1000hz.pinned", is_pinned: true, ways: BOTH, ..IDLE },
    Circumstances { id: "250hz.idle", hz: 250, ways: BOTH, ..IDLE },
    Circumstances { id: "250hz.busy", hz: 250, is_busy: true, ways: BOTH, ..IDLE },
];

/// How long after a tick the probe (the measuring thread) wakes, where this phase is fixed.
const PHASES_US: [u64; 4] = [0, 250, 500, 750];

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

/// Adds plots, figures, comparisons and answers. Results are by circumstance or phase, way, turn.
pub fn write(study: &mut StudyResult, compared: &[Vec<Vec<Taken>>], phases: &[Vec<Vec<Taken>>]) {
    for (here, taken) in CIRCUMSTANCES.iter().zip(compared) {
        for (way, taken) in here.ways.iter().zip(taken) {
            let id = format!("{}.{}", here.id, way.name());
            study.cells.extend(columns::cells(&id, &FIGURES, taken));
        }
    }
    for (&phase_us, taken) in PHASES_US.iter().zip(phases) {
        for (way, taken) in BOTH.iter().zip(taken) {
            let id = format!("phase_{phase_us}us.{}", way.name());
            study.cells.extend(columns::cells(&id, &FIGURES[OF_PROBE], taken));
        }
    }
    plots(study, compared);
    comparisons(study, compared);
    notes(study, compared);
    answers(study, compared);
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

/// Sums how late the probe (the measuring thread) woke, over all turns.
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
        let values =
            |taken: &[Taken], of: fn(&Taken) -> f64| -> Vec<f64> { taken.iter().map(of).collect() };
        let mut push = |what: &str, spread, band: Option<Band>| {
            let cell = Cell::live(format!("{}.{what}", here.id), "x", spread);
            study.cells.push(cell.within(band));
        };
        let fewer = |of| Spread::of_ratios(&values(before, of), &values(after, of));
        let is_mostly_idle = here.id == "1000hz.idle";
        let tenfold = is_mostly_idle.then_some(Band::at_least(10.0));
        push("fewer_wakes", fewer(|taken| taken.wakes_per_s), tenfold);
        push("fewer_switches", fewer(|taken| taken.switches_per_s), None);
        push("less_cpu", fewer(|taken| taken.cpu_percent), None);
        let later = |of| Spread::of_ratios(&values(after, of), &values(before, of));
        push("probe_avg_after_over_before", later(|taken| taken.probe.average_ns()), None);
        // A maximum is a single wakeup among thousands, so on a shared machine it depends mostly on
        // other load. The wide band only detects a maximum that grows in every turn.
        let max = later(|taken| us(&taken.probe, 1.0));
        push("probe_max_after_over_before", max, Some(Band::at_most(1.5)));
    }
}

fn notes(study: &mut StudyResult, compared: &[Vec<Vec<Taken>>]) {
    let probed: u64 = compared.iter().flatten().map(|taken| sum(taken).lateness.len()).sum();
    study.notes.push(format!(
        "on each CPU a driver that ticks and an expiry thread, both pinned, and two timeouts that \
         expire every 40 to 60 ms; in addition the probe, which sleeps in clock_nanosleep for 1 ms \
         at a time ({probed} wakeups in all); busy: a thread on each CPU that never waits. before \
         and after tick alike, and differ only in when the expiry thread is woken; tickless \
         drivers sleep until a timer is due. An atomic add takes {} ns here",
        figure(measure::atomic_add_ns()),
    ));
    study.notes.push(
        "probe_max compares single wakeups, the latest of each turn: its band is wide, because on \
         a shared machine other programs cause most of them"
            .to_string(),
    );
}

fn answers(study: &mut StudyResult, compared: &[Vec<Vec<Taken>>]) {
    let all = || compared.iter().flatten().flatten();
    let merged: u64 = all().map(|taken| taken.merged).sum();
    let longest = all().map(|taken| taken.longest_batch).max().unwrap_or(0);
    signs(study);
    study.answer(
        "Can lists of expired timers be merged in constant time without more memory per CPU?",
        format!(
            "Yes, without any lists: collecting sets one number, the tick up to which the wheel \
             must be emptied, and merging takes the larger of two numbers. Here more timers came \
             due {merged} times before the thread had finished, and one wake fired at most \
             {longest}."
        ),
    );
    study.answer(
        "Can the tick count change while expired timers are collected?",
        "Yes, it may: the handler reads the time once and passes it down, and a timer that is \
         armed for the past after that fires in the next round (contract D5, D6: checked by tests, \
         not by this run).",
    );
    let tickless = compared.first().and_then(|taken| taken.get(2));
    let wakes = tickless
        .map_or(f64::NAN, |taken| Spread::of(taken.iter().map(|taken| taken.wakes_per_s)).median);
    study.answer(
        "Does it go with an idle CPU that has stopped its tick?",
        format!(
            "Yes: without ticks the driver sleeps until a timer is due and then wakes the thread, \
             {} times a second for each CPU here.",
            figure(wakes)
        ),
    );
    study.answer(
        "May a CPU go away while callbacks are collected or running?",
        "Yes: collected timers are still on their base and move to another one; a callback that \
         runs finishes where it is (contract D8: checked by tests, not by this run).",
    );
}

/// Answers whether latencies fall, which takes only the signs of the changes.
fn signs(study: &mut StudyResult) {
    let change = |id: &str| {
        let change = 100.0 * (study.value(id) - 1.0);
        format!("{change:+.1} %")
    };
    let of = |here: &str| {
        let of = |what: &str| change(&format!("{here}.probe_{what}_after_over_before"));
        format!("average {}, maximum {}", of("avg"), of("max"))
    };
    let answer = format!(
        "After compared with before, at 1000 Hz: an unpinned thread on idle CPUs: {}; with a busy \
         thread on each CPU: {}; a pinned thread on each CPU (-S): {}. Only the count is certain: \
         {} times fewer wakes.",
        of("1000hz.idle"),
        of("1000hz.busy"),
        of("1000hz.pinned"),
        study.figure("1000hz.idle.fewer_wakes"),
    );
    study.answer(
        "Does the average latency fall, and does the maximum stay, with and without -S?",
        answer,
    );
    let phases = PHASES_US.map(|us| {
        let value = |way: &str| study.figure(&format!("phase_{us}us.{way}.probe_avg_us"));
        format!("{us} us: {} to {}", value("before"), value("after"))
    });
    study.answer(
        "What else should be tested?",
        format!(
            "The phase at which the measuring thread wakes, because an interval of 1 ms is locked \
             to a tick of 1 ms. The average in us, before to after, by the time of the wakeup \
             after the tick: {}.",
            phases.join("; ")
        ),
    );
}
