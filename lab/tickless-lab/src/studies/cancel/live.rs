//! The study of synchronous cancel on this machine. A synchronous cancel waits for the timer's
//! callback if it is running.
//!
//! "Before" (the replaced behaviour), such a cancel checks every timer base for the running
//! callback. "After", it checks only the base that is recorded in the timer. Both run the same code
//! with different settings of [`Scan`](tickless::policy::Scan). 2 to 512 bases, more than there are
//! CPUs, stand for a large machine. On a real large machine most bases would also be in other CPUs'
//! caches; the figures with cold caches are closest to that.

use super::STUDY;
use super::calls::{BATCH, Call, Finds, Subject, cancel_across};
use crate::error::LabError;
use crate::measure::{self, Evictor, Spread, Stopwatch, interleave};
use crate::progress::{Hidden, Progress};
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::{Axis, Side};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::text::figure;
use tickless::policy::Scan;

struct CancelVariant {
    name: &'static str,
    scan: Scan,
    call: Call,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;
const SINGLE_SHOT: usize = 2;
const PLAIN: usize = 3;

const VARIANTS: [CancelVariant; 4] = [
    CancelVariant { name: "before", scan: Scan::AllBases, call: Call::Sync },
    CancelVariant { name: "after", scan: Scan::RunningBase, call: Call::Sync },
    CancelVariant { name: "single_shot", scan: Scan::RunningBase, call: Call::SingleShot },
    CancelVariant { name: "plain", scan: Scan::RunningBase, call: Call::Plain },
];

const STATES: [&str; 3] = ["warm", "cold", "idle"];

type Counts = [[f64; STATES.len()]; VARIANTS.len()];

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let mut study = StudyResult::live("cancel", request);
    let bases = bases(request)?;
    let watch = Stopwatch::calibrated();
    let mut evictor = Evictor::of_largest_cache();
    let turns = request.effort.turns(2, 9, 15);
    let taken = interleave("cancelling", bases.len(), turns, progress, |at| {
        one_turn(request, bases[at], &watch, &mut evictor)
    })?;
    for (&count, taken) in bases.iter().zip(&taken) {
        cells(&mut study, count, taken, &watch);
    }
    plot(&mut study, &watch);
    growth(&mut study, &bases, &taken, &watch);
    across(&mut study, request, progress, &watch)?;
    let [first, last] = [bases.first(), bases.last()].map(|base| base.copied().unwrap_or(0));
    let growth = |what| study.figure(&format!("growth_{first}_to_{last}.{what}"));
    let clock = match watch.cycles_per_ns() {
        Some(rate) => format!("cycles of the time-stamp counter, {} for a ns", figure(rate)),
        None => "nanoseconds, because this machine has no cycle counter".to_string(),
    };
    let words = [
        ("clock", clock),
        ("cache", (evictor.bytes() >> 20).to_string()),
        ("growth before", growth("before.warm")),
        ("growth each base", growth("before.each_base_ns")),
        ("growth after", growth("after.warm")),
    ];
    study.explained(request, STUDY.text, &words)
}

fn bases(request: &Request) -> Result<Vec<u16>, LabError> {
    const MOST: u32 = 2_048;
    let usual = request.effort.pick(
        &[2, 4, 32, 512][..],
        &[2, 4, 8, 32, 128, 512],
        &[2, 4, 8, 16, 32, 64, 128, 256, 512],
    );
    let wanted = request.cpus.as_deref().unwrap_or(usual);
    let base = |&count: &u32| match u16::try_from(count) {
        Ok(few) if count <= MOST => Ok(few),
        _ => Err(LabError::Request {
            what: format!("{count} bases would take as many threads; ask for {MOST} at most"),
        }),
    };
    let mut bases = wanted.iter().map(base).collect::<Result<Vec<u16>, LabError>>()?;
    bases.sort_unstable();
    bases.dedup();
    Ok(bases)
}

fn one_turn(
    request: &Request,
    bases: u16,
    watch: &Stopwatch,
    evictor: &mut Evictor,
) -> Result<Counts, LabError> {
    let passes = request.effort.pick(1, 4, 4);
    let batches = request.effort.pick(10, 30, 100);
    let cold_calls = request.effort.pick(1, 1, 2);
    let mut counts = Counts::default();
    for scan in [Scan::AllBases, Scan::RunningBase] {
        let subject = Subject::start(bases, scan)?;
        let here: Vec<usize> =
            (0..VARIANTS.len()).filter(|&way| VARIANTS[way].scan == scan).collect();
        let passes = interleave("passes", here.len(), passes, &Hidden, |at| {
            let call = VARIANTS[here[at]].call;
            Ok::<_, LabError>([
                subject.warm(watch, call, Finds::Pending, batches),
                subject.cold(watch, evictor, call, Finds::Pending, cold_calls),
                subject.warm(watch, call, Finds::Idle, batches),
            ])
        })?;
        for (way, passes) in here.into_iter().zip(passes) {
            counts[way] = [0, 1, 2].map(|at| Spread::of(passes.iter().map(|pass| pass[at])).median);
        }
    }
    Ok(counts)
}

fn cells(study: &mut StudyResult, bases: u16, taken: &[Counts], watch: &Stopwatch) {
    for (way, CancelVariant { name, .. }) in VARIANTS.iter().enumerate() {
        for (at, state) in STATES.into_iter().enumerate() {
            let counts = || taken.iter().map(|counts| counts[way][at]);
            let id = format!("{bases}.{name}.{state}");
            let ns = Spread::of(counts().map(|counts| watch.ns(counts)));
            study.cells.push(Cell::live(format!("{id}_ns"), "ns", ns));
            if watch.cycles_per_ns().is_some() {
                study.cells.push(Cell::live(id, "cycles", Spread::of(counts())));
            }
        }
    }
}

fn plot(study: &mut StudyResult, watch: &Stopwatch) {
    let (unit, suffix) = match watch.cycles_per_ns() {
        Some(_) => ("cycles", ""),
        None => ("ns", "_ns"),
    };
    let line = |(name, side)| {
        study.line((name, side), &study.cells, &format!("*.{name}.warm{suffix}"), 1.0)
    };
    let lines = [("before", Side::Before), ("after", Side::After)].map(line).to_vec();
    let axes = [Axis::log("CPUs or bases"), Axis::log(format!("{unit} per call"))];
    study.curve("cost", "A warm cancel that waits, over the number of CPUs", axes, lines);
}

/// Adds ratios of call times: a call with the most bases to one with the fewest, and a cancel that
/// waits to one that does not. Also adds by how much each base lengthens a call that checks all.
fn growth(study: &mut StudyResult, bases: &[u16], taken: &[Vec<Counts>], watch: &Stopwatch) {
    let (Some(fewest), Some(most)) = (taken.first(), taken.last()) else { return };
    let ends = format!("{}_to_{}", bases[0], bases[bases.len() - 1]);
    let spans_enough = bases[0] == 2 && bases[bases.len() - 1] >= 512;
    for (at, state) in STATES.into_iter().enumerate() {
        for way in [AFTER, BEFORE] {
            let ratio = Spread::of_ratios(most, fewest, |counts| counts[way][at]);
            let id = format!("growth_{ends}.{}.{state}", VARIANTS[way].name);
            let cell = Cell::live(id, "x", ratio);
            let (steady, grows) = (Band::at_most(1.2), Band::at_least(10.0));
            let band = if way == AFTER { steady } else { grows };
            let is_bound = spans_enough && state != "cold";
            study.cells.push(cell.within(is_bound.then_some(band)));
        }
    }
    let span = f64::from(bases[bases.len() - 1] - bases[0]);
    let both = most.iter().zip(fewest);
    let each = both.map(|(most, few)| watch.ns((most[BEFORE][0] - few[BEFORE][0]) / span));
    if span > 0.0 {
        let id = format!("growth_{ends}.before.each_base_ns");
        study.cells.push(Cell::live(id, "ns", Spread::of(each)));
    }
    for (at, state) in [(0, "warm"), (2, "idle")] {
        for way in [AFTER, SINGLE_SHOT] {
            let ratio = Spread::of(most.iter().map(|counts| counts[way][at] / counts[PLAIN][at]));
            let id = format!("over_plain.{}.{state}", VARIANTS[way].name);
            let cell = Cell::live(id, "x", ratio);
            study.cells.push(cell.within((way == AFTER).then_some(Band::at_most(1.5))));
        }
    }
}

fn across(
    study: &mut StudyResult,
    request: &Request,
    progress: &dyn Progress,
    watch: &Stopwatch,
) -> Result<(), LabError> {
    const VARIANTS: [(&str, Finds, usize); 4] = [
        ("pending", Finds::Pending, BATCH),
        ("idle", Finds::Idle, BATCH),
        ("pending_one_by_one", Finds::Pending, 1),
        ("idle_one_by_one", Finds::Idle, 1),
    ];
    let cpus = measure::cpus();
    let [one, other] = [cpus[0], cpus[cpus.len() - 1]];
    if one == other {
        let note = "there is one CPU, so nothing was cancelled on another CPU's base";
        study.notes.push(note.to_string());
        return Ok(());
    }
    let turns = request.effort.turns(1, 9, 15);
    let rounds = request.effort.pick(50, 1_000, 5_000);
    let taken = interleave("another CPU's", VARIANTS.len(), turns, progress, |way| {
        let (_, finds, batch) = VARIANTS[way];
        cancel_across(watch, [one, other], finds, batch, rounds)
    })?;
    for ((name, ..), counts) in VARIANTS.iter().zip(taken) {
        let ns = Spread::of(counts.into_iter().map(|counts| watch.ns(counts)));
        let id = format!("another_cpus_base.{name}_ns");
        study.cells.push(Cell::live(id, "ns", ns).within(Band::at_most(200.0)));
    }
    Ok(())
}
