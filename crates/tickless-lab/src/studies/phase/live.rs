//! The study of interleaved periods on this machine. The *phase* of a group is the time in its
//! period at which its CPU quota is refilled.
//!
//! Two groups, each with a quota of a quarter of the machine's CPU time and as many workers as
//! there are CPUs, do a fixed amount of work. If they are refilled together, they run at the same
//! time, each at half speed, and then both wait. If they are refilled half a period apart, each has
//! the machine to itself. Whether the work ends sooner depends on the machine: with SMT, a core
//! runs a single thread faster, which is the published gain. On every machine the groups run for
//! shorter times, with fewer switches.

use super::work::{Done, Throttled, Work, turns_of_unit};
use crate::LabError;
use crate::measure::{self, interleave};
use crate::progress::Progress;
use crate::studies::result::{self as columns, Column};
use crate::studies::{Band, Cell, Request, StudyResult};
use std::time::Duration;
use tickless::Timers;
use tickless::bandwidth::{Throttle, Worker};
use tickless::periodic::Phase;

const PERIOD: Duration = Duration::from_millis(100);

/// Where the refills of the two groups are, and the band of the time between them.
struct Placement {
    name: &'static str,
    phase: fn(u64) -> Phase,
    apart: Option<Band>,
}

const PLACEMENTS: [Placement; 3] = [
    Placement { name: "aligned", phase: |_| Phase::Aligned, apart: Some(Band::at_most(0.0)) },
    Placement { name: "spread", phase: |_| Phase::Spread, apart: Some(Band::at_least(49.9)) },
    Placement { name: "random", phase: Phase::Random, apart: None },
];

struct Taken {
    done: Done,
    /// Wakeups of the library's driver threads.
    wakeups: u64,
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
    let turns = request.effort.turns(1, 5, 9);
    let mut turn = 0;
    let taken = interleave("two groups", PLACEMENTS.len(), turns, progress, |way| {
        let seed = request.seed.wrapping_add(turn / PLACEMENTS.len() as u64);
        turn += 1;
        two_groups(work, quota, (PLACEMENTS[way].phase)(seed))
    })?;
    show(&mut study, &taken);
    study.notes.push(format!(
        "two groups of {workers} threads, each {} ms of CPU time in {} ms and {} ms of work; {} \
         runs each, in turn, forwards and backwards. A burst is 5 ms of CPU time of one thread. \
         overlap: of the time in which the less busy group ran, the part in which both did. \
         switches are of the whole process",
        quota.as_millis(),
        PERIOD.as_millis(),
        of_group.as_millis(),
        turns,
    ));
    Ok(study)
}

fn two_groups(work: Work, quota: Duration, phase: Phase) -> Result<Taken, LabError> {
    let timers = Timers::builder().start()?;
    let start = || timers.throttle(quota, PERIOD).phase(phase).start().map_err(refused);
    let groups: [Throttle; 2] = [start()?, start()?];
    let done = work.run(|group| groups[group].join().map_err(refused))?;
    let places_ns =
        [0, 1].map(|group| groups[group].phase_offset().map_or(0, |place| place.as_nanos() as u64));
    let wakeups = timers.stats().bases.iter().map(|base| base.device.events).sum();
    Ok(Taken { done, wakeups, places_ns })
}

impl Taken {
    fn apart_ns(&self) -> u64 {
        let period = PERIOD.as_nanos() as u64;
        let apart = self.places_ns[0].abs_diff(self.places_ns[1]);
        apart.min(period - apart)
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
    ("wakeups", "1/s", |taken| taken.wakeups as f64 / taken.done.usage.real_s),
];

fn show(study: &mut StudyResult, taken: &[Vec<Taken>]) {
    for (Placement { name, apart, .. }, taken) in PLACEMENTS.iter().zip(taken) {
        let cell = |cell: Cell| match apart {
            Some(band) if cell.id.ends_with(".apart") => cell.within(*band),
            _ => cell,
        };
        study.cells.extend(columns::cells(name, &COLUMNS, taken).into_iter().map(cell));
    }
}

impl Throttled for Worker {
    fn check(&mut self) -> Result<(), LabError> {
        Worker::check(self).map(|_| ()).map_err(|error| {
            LabError::system("a worker could not be throttled; run the study again")(
                std::io::Error::other(error.to_string()),
            )
        })
    }
}

fn refused(error: impl std::fmt::Display) -> LabError {
    LabError::system(
        "a bandwidth group could not be started; raise the limit on threads (ulimit -u)",
    )(std::io::Error::other(error.to_string()))
}
