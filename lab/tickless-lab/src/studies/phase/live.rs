//! The study of interleaved periods on this machine. The *phase* of a group is the time in its
//! period at which its CPU quota is refilled.
//!
//! Two groups, each with a quota of a quarter of the machine's CPU time and as many workers as
//! there are CPUs, do a fixed amount of work. If they are refilled together, they run at the same
//! time, each at half speed, and then both wait. If they are refilled half a period apart, each has
//! the machine to itself. Whether the work ends sooner depends on the machine: with SMT, a core
//! runs a single thread faster, which is the published gain. On every machine the groups run for
//! shorter times, with fewer switches.

use super::STUDY;
use super::cgroups::{self, Cgroup};
use super::control::{self, refused};
use super::work::{Done, Work, never_throttled, turns_of_unit};
use crate::error::LabError;
use crate::measure::{self, interleave};
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::{Lane, Plot, Shape, Side};
use crate::studies::request::Request;
use crate::studies::result::{self as columns, Column, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::Timers;
use tickless::bandwidth::Throttle;
use tickless::periodic::Phase;

const PERIOD: Duration = Duration::from_millis(100);

struct Placement {
    name: &'static str,
    groups: Groups,
    /// The expected distance in ms between the refills of the two groups.
    apart: Option<Band>,
    /// The colour in the plot. `None` if the phases differ in each turn.
    side: Option<Side>,
}

/// Two groups that the library throttles, with the phase that the function returns for a seed; or
/// two cgroups, which the kernel throttles.
enum Groups {
    Library(fn(u64) -> Phase),
    Kernel { pair: [usize; 2], places_ns: [u64; 2] },
}

struct Taken {
    done: Done,
    /// Wakeups of the library's driver threads; `None` for cgroups, which the kernel refills.
    wakeups: Option<u64>,
    places_ns: [u64; 2],
}

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request.reject_cpus(
        "study phase --live uses all CPUs; leave --cpus out, or use taskset to say where its \
         threads may run",
    )?;
    let mut study = StudyResult::live("phase", request);
    let workers = measure::cpus().len();
    let quota = PERIOD * workers as u32 / 4;
    let of_group = quota * request.effort.pick(3, 10, 40);
    let work = Work { of_group, workers, turns_of_unit: turns_of_unit() };
    let mut ways: Vec<Placement> = LIBRARY_WAYS.into();
    let made = cgroups::make(request.effort.pick(2, 6, 10), quota, PERIOD);
    let groups = match made {
        Ok(groups) => groups,
        Err(why) => {
            study.notes.push(format!("not with the kernel's own cgroups: {why}"));
            Vec::new()
        }
    };
    ways.extend(kernel_ways(&groups, &mut study));
    let turns = request.effort.turns(1, 5, 9);
    let mut turn = 0;
    let taken = interleave("two groups", ways.len(), turns, progress, |way| {
        let seed = request.seed.wrapping_add(turn / ways.len() as u64);
        turn += 1;
        match ways[way].groups {
            Groups::Library(phase) => library(work, quota, phase(seed)),
            Groups::Kernel { pair, places_ns } => {
                let done =
                    work.run(|group| groups[pair[group]].enter().map(|()| never_throttled))?;
                Ok(Taken { done, wakeups: None, places_ns })
            }
        }
    })?;
    drop(groups);
    show(&mut study, &ways, &taken);
    strip(&mut study, &ways, &taken);
    control::cells(&mut study, request, work)?;
    let value = |way: &str, what: &str| study.value(&format!("{way}.{what}"));
    let ratio = |what| (what, figure(value("spread", what) / value("aligned", what)));
    let mut words = ["completion", "burst_p99", "switches", "wakeups"].map(ratio).to_vec();
    let ms = |time: Duration| time.as_millis().to_string();
    words.extend([("quota", ms(quota)), ("period", ms(PERIOD)), ("work", ms(of_group))]);
    words.extend([("workers", workers.to_string()), ("turns", turns.to_string())]);
    study.explained(request, STUDY.text, &words)
}

const LIBRARY_WAYS: [Placement; 3] = [
    Placement {
        name: "aligned",
        groups: Groups::Library(|_| Phase::Aligned),
        apart: Some(Band::at_most(0.0)),
        side: Some(Side::Before),
    },
    Placement {
        name: "spread",
        groups: Groups::Library(|_| Phase::Spread),
        apart: Some(Band::at_least(49.9)),
        side: Some(Side::After),
    },
    Placement { name: "random", groups: Groups::Library(Phase::Random), apart: None, side: None },
];

/// Returns two variants with cgroups: the pair whose refills are nearest to each other, and the
/// pair whose refills are farthest apart. Groups whose phase was not found are left out.
fn kernel_ways(groups: &[Cgroup], study: &mut StudyResult) -> Vec<Placement> {
    let known: Vec<(usize, u64)> =
        groups.iter().enumerate().filter_map(|(n, group)| Some((n, group.phase_ns?))).collect();
    let mut pairs: Vec<(u64, [usize; 2])> = Vec::new();
    for (n, one) in known.iter().enumerate() {
        let others = known[n + 1..].iter();
        pairs
            .extend(others.map(|other| (cgroups::apart(one.1, other.1, PERIOD), [one.0, other.0])));
    }
    pairs.sort_unstable();
    let [Some(&near), Some(&far)] = [pairs.first(), pairs.last()] else {
        if !groups.is_empty() {
            study.notes.push(format!(
                "not with the kernel's own cgroups: the phase of only {} of {} was found, because \
                 this machine is too busy",
                known.len(),
                groups.len()
            ));
        }
        return Vec::new();
    };
    let phases: Vec<String> = known.iter().map(|(_, phase)| figure(*phase as f64 / 1e6)).collect();
    study.notes.push(format!(
        "the kernel chooses a cgroup's phase; of {} cgroups these phases were found: {} ms. \
         kernel_near and kernel_far are the pairs {} and {} ms apart",
        groups.len(),
        phases.join(", "),
        figure(near.0 as f64 / 1e6),
        figure(far.0 as f64 / 1e6),
    ));
    let place = |group: usize| groups[group].phase_ns.unwrap_or(0);
    let way = |name, (_, pair): (u64, [usize; 2])| {
        let groups = Groups::Kernel { pair, places_ns: pair.map(place) };
        Placement { name, groups, apart: None, side: Some(Side::Beside) }
    };
    vec![way("kernel_near", near), way("kernel_far", far)]
}

fn library(work: Work, quota: Duration, phase: Phase) -> Result<Taken, LabError> {
    let timers = Timers::builder().start()?;
    let start = || timers.throttle(quota, PERIOD).phase(phase).start().map_err(refused);
    let groups: [Throttle; 2] = [start()?, start()?];
    let done = work.run(|group| control::join(&groups[group]))?;
    let places_ns =
        [0, 1].map(|group| groups[group].phase_offset().map_or(0, |place| place.as_nanos() as u64));
    let wakeups = timers.stats().bases.iter().map(|base| base.device.events).sum();
    Ok(Taken { done, wakeups: Some(wakeups), places_ns })
}

impl Taken {
    fn apart_ns(&self) -> u64 {
        cgroups::apart(self.places_ns[0], self.places_ns[1], PERIOD)
    }
}

const COLUMNS: [Column<Taken>; 7] = [
    ("apart", "ms", |taken| taken.apart_ns() as f64 / 1e6),
    ("overlap", "", |taken| taken.done.overlap),
    ("completion", "s", |taken| {
        taken.done.completion_s.iter().sum::<f64>() / taken.done.completion_s.len() as f64
    }),
    ("burst_p50", "ms", |taken| taken.done.burst_ms(50)),
    ("burst_p99", "ms", |taken| taken.done.burst_ms(99)),
    ("switches", "1/s", |taken| taken.done.usage.switches() as f64 / taken.done.usage.real_s),
    ("wakeups", "1/s", |taken| {
        taken.wakeups.map_or(f64::NAN, |wakeups| wakeups as f64 / taken.done.usage.real_s)
    }),
];

fn show(study: &mut StudyResult, ways: &[Placement], taken: &[Vec<Taken>]) {
    for (Placement { name, apart, .. }, taken) in ways.iter().zip(taken) {
        let cell = |cell: Cell| match *apart {
            Some(band) if cell.id.ends_with(".apart") => cell.within(band),
            _ => cell,
        };
        study.cells.extend(columns::cells(name, &COLUMNS, taken).into_iter().map(cell));
    }
}

/// Random phases are left out of the plot, because they differ in each turn.
fn strip(study: &mut StudyResult, ways: &[Placement], taken: &[Vec<Taken>]) {
    let mut lanes = Vec::new();
    for (Placement { name, side, .. }, taken) in ways.iter().zip(taken) {
        let Some(side) = *side else { continue };
        for group in [0, 1] {
            let name = format!("{}, {}", name.replace('_', " "), group + 1);
            lanes.push(lane(name, side, taken, group));
        }
    }
    let shape = Shape::Strip { period_ms: PERIOD.as_secs_f64() * 1e3, lanes };
    let title = "When each group runs in a period, and when it is refilled";
    study.plots.push(Plot::new("strip", title, shape));
}

/// Averages over the turns how often a group ran in each part of its period.
fn lane(name: String, side: Side, taken: &[Taken], group: usize) -> Lane {
    let period_ns = PERIOD.as_nanos() as u64;
    let of_turn = |taken: &Taken| {
        let places = [taken.places_ns[0], taken.places_ns[group]];
        Lane::folded(name.clone(), side, &taken.done.windows[group], places, period_ns)
    };
    let turns: Vec<Lane> = taken.iter().map(of_turn).collect();
    let mean = |part: usize| {
        turns.iter().map(|turn| turn.runs[part]).sum::<f64>() / turns.len().max(1) as f64
    };
    let parts = turns.first().map_or(0, |turn| turn.runs.len());
    let refill_ms = turns.first().map_or(0.0, |turn| turn.refill_ms);
    Lane { name: name.clone(), side, refill_ms, runs: (0..parts).map(mean).collect() }
}
