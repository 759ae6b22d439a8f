//! The study of lazy rearming on this machine.
//!
//! Two threads wake each other. Each arms a timer, its *guard*, before every wait and cancels it
//! after the wait. The main result is a count of writes to the event device. With lazy rearming the
//! guards never program the device: it stays armed for the first deadline, and every later deadline
//! is later than that. With eager rearming both threads program it when a guard is armed and again
//! when it is removed. The difference in time depends on the cost of a device write. For our driver
//! thread, a write is a system call that wakes the thread.

use super::ping_pong::{By, Guard, Plan, Taken};
use super::{STUDY, kernel, plot_writes};
use crate::error::LabError;
use crate::measure::{self, Spread, interleave};
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::{Axis, Side};
use crate::studies::request::Request;
use crate::studies::result::{self as columns, Column, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::policy::Policy;

const POLICIES: [(&str, Option<Policy>); 4] = [
    ("lazy", Some(Policy::Lazy)),
    ("eager", Some(Policy::Eager)),
    ("restart_aware", Some(Policy::RestartAware)),
    ("unguarded", None),
];

struct Variant {
    id: String,
    guard: Option<Guard>,
    cpus: [usize; 2],
}

impl Variant {
    /// Returns the expected device writes per round trip; `None` without a guard.
    fn writes(&self, trips: u32) -> Option<Band> {
        self.guard.map(|guard| match guard.by {
            // The limit is not zero: a driver of a busy machine perhaps checks the first deadline
            // only during the measurement, and this check also writes to the device.
            By::Library(Policy::Lazy) => Band::at_most((2.0 / f64::from(trips)).max(0.001)),
            _ => Band::at_least(2.0),
        })
    }
}

/// How far ahead a guard is armed. It is the same for all guards, so each deadline is later than
/// the one before, and so long that no guard expires.
const GUARD: Duration = Duration::from_secs(600);

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request.reject_cpus(
        "study rearm --live plays with two threads; leave --cpus out, or use taskset to say where \
         they may run",
    )?;
    let mut study = StudyResult::live("rearm", request);
    let variants = variants();
    let turns = request.effort.turns(2, 8, 8);
    let trips = request.effort.pick(500, 20_000, 1_000_000);
    let taken = interleave("ping-pong", variants.len(), turns, progress, |at| {
        let Variant { guard, cpus, .. } = variants[at];
        Plan { guard, trips, cpus }.play()
    })?;
    for (variant, taken) in variants.iter().zip(&taken) {
        for (at, cell) in columns::cells(&variant.id, &FIGURES, taken).into_iter().enumerate() {
            let band = if at == WRITES { variant.writes(trips) } else { None };
            study.cells.push(cell.within(band));
        }
    }
    let find = |id: &str| Some(&taken[variants.iter().position(|variant| variant.id == id)?][..]);
    ["", "two_cpus."].iter().for_each(|prefix| gaps(&mut study, prefix, &find));
    let plan = Plan { guard: None, trips, cpus: variants[0].cpus };
    let linux = match kernel::writes(plan, GUARD) {
        Ok((cell, how)) => {
            study.cells.push(cell);
            how
        }
        Err(why) => format!("no row for Linux 7.1 or later beside these policies: {why}"),
    };
    plot_writes(&mut study);
    let [spurious, when] = density(&mut study, request, progress, variants[0].cpus)?;
    let gap = "two_cpus.gap.eager_over_lazy";
    let words = [
        ("place", place(&variants)),
        ("trips", trips.to_string()),
        ("ahead", GUARD.as_secs().to_string()),
        ("spurious", spurious),
        ("when", when),
        ("linux", linux),
        // With one CPU there is no such figure. Answers that name it then show "-".
        (gap, study.figure(gap)),
    ];
    study.explained(request, STUDY.text, &words)
}

/// Returns each policy with both threads on one CPU, where a round trip is two context switches;
/// and, if there are two CPUs, with a thread on each, where it waits for idle CPUs to wake.
fn variants() -> Vec<Variant> {
    let cpus = measure::cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let mut places = vec![("", [last; 2])];
    if first != last {
        places.push(("two_cpus.", [first, last]));
    }
    let of_place = |(prefix, cpus)| {
        POLICIES.map(|(name, policy)| Variant {
            id: format!("{prefix}{name}"),
            guard: policy.map(|policy| Guard { by: By::Library(policy), after: GUARD }),
            cpus,
        })
    };
    places.into_iter().flat_map(of_place).collect()
}

const FIGURES: [Column<Taken>; 6] = [
    ("real_us_per_round_trip", "us", |t| t.us(t.usage.real_s)),
    ("user_us_per_round_trip", "us", |t| t.us(t.usage.user_s)),
    ("system_us_per_round_trip", "us", |t| t.us(t.usage.system_s)),
    ("switches_per_round_trip", "switches", |t| t.count(t.usage.switches())),
    ("device_writes_per_round_trip", "writes", |t| t.count(t.device.writes)),
    ("wake_calls_per_round_trip", "calls", |t| t.count(t.wake_calls)),
];
const REAL: usize = 0;
const WRITES: usize = 4;

/// Adds how many times as long one policy takes as another, for each pair of policies.
fn gaps<'a>(study: &mut StudyResult, prefix: &str, find: &dyn Fn(&str) -> Option<&'a [Taken]>) {
    let pairs = [
        ("eager", "lazy", Some(7.202 / 5.32425)),
        ("restart_aware", "lazy", None),
        ("lazy", "unguarded", None),
    ];
    for (above, below, published) in pairs {
        let taken = [above, below].map(|name| find(&format!("{prefix}{name}")));
        let [Some(slow), Some(fast)] = taken else { continue };
        let id = format!("{prefix}gap.{above}_over_{below}");
        let cell = Cell::live(id, "x", Spread::of_ratios(slow, fast, |t| t.usage.real_s));
        study.cells.push(Cell { published: published.filter(|_| prefix.is_empty()), ..cell });
    }
}

fn place(variants: &[Variant]) -> String {
    let [one, other] = variants[variants.len() - 1].cpus;
    match one == other {
        true => format!("both, and the drivers, on CPU {one}, the only one"),
        false => format!(
            "both, and the drivers, on CPU {other}; two_cpus: on CPUs {one} and {other}, where \
             waking an idle CPU takes so long that eager's writes add little"
        ),
    }
}

/// Measures round trips with nearer guards, to find the distance below which lazy rearming costs
/// more than it saves: the device then fires for guards that were cancelled. Returns how often per
/// round trip the device fired so at most, and at which distances lazy rearming cost more.
fn density(
    study: &mut StudyResult,
    request: &Request,
    progress: &dyn Progress,
    cpus: [usize; 2],
) -> Result<[String; 2], LabError> {
    const COMPARED: [Policy; 2] = [Policy::Lazy, Policy::Eager];
    let turns = request.effort.turns(1, 5, 9);
    let trips = request.effort.pick(500, 5_000, 50_000);
    let guards_us: &[u64] = request.effort.pick(
        &[100, 1_000, 10_000],
        &[50, 100, 300, 1_000, 10_000],
        &[30, 50, 100, 200, 300, 1_000, 3_000, 10_000, 100_000],
    );
    let variants = guards_us.len() * COMPARED.len();
    let taken = interleave("nearer guards", variants, turns, progress, |way| {
        let after = Duration::from_micros(guards_us[way / 2]);
        let guard = Some(Guard { by: By::Library(COMPARED[way % 2]), after });
        Plan { guard, trips, cpus }.play()
    })?;
    let mut dearer = Vec::new();
    let mut spurious_most = 0.0_f64;
    for (pair, &guard_us) in taken.chunks(COMPARED.len()).zip(guards_us) {
        let spurious = Spread::of(pair[0].iter().map(|taken| taken.count(taken.device.spurious)));
        spurious_most = spurious_most.max(spurious.median);
        let ratio = Spread::of_ratios(&pair[1], &pair[0], |taken| taken.usage.real_s);
        // At this distance lazy rearming takes longer than eager rearming.
        if ratio.median < 1.0 {
            dearer.push(format!("{guard_us} us"));
        }
        let mut push = |what: &str, unit, spread: Spread| {
            study.cells.push(Cell::live(format!("guard_{guard_us}us.{what}"), unit, spread));
        };
        push("eager_over_lazy", "x", ratio);
        push("lazy_events_for_nothing", "events", spurious);
        for (taken, (name, _)) in pair.iter().zip(POLICIES) {
            let spread = |figure: usize| Spread::of(taken.iter().map(FIGURES[figure].2));
            push(&format!("{name}_us"), "us", spread(REAL));
            push(&format!("{name}_writes"), "writes", spread(WRITES));
        }
    }
    let line =
        |(name, side)| study.line((name, side), &study.cells, &format!("guard_*us.{name}_us"), 1.0);
    let lines = [("eager", Side::Before), ("lazy", Side::After)].map(line).to_vec();
    let axes = [Axis::log("distance of the guard, us"), Axis::linear("us per round trip")];
    study.curve("guards", "A round trip by the distance of the guard", axes, lines);
    let when = match &dearer[..] {
        [] => "at none of the measured guards did they cost more than eager's writes".to_string(),
        some => format!("at guards of {} they cost more than eager's writes", some.join(", ")),
    };
    Ok([figure(spurious_most), when])
}
