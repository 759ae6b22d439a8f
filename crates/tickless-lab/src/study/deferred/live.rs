//! The study of deferred expiry on the machine at hand.
//!
//! What must come out is a count: with a tick of 1 ms and timeouts that expire now and then, waking
//! the expiry thread when something expired takes a small part of the wakes. The thread's signs
//! are in what another thread sees: a probe that may run anywhere wakes earlier on average, its
//! maximum stays, and one on each CPU sees no difference.

use super::report;
use super::scene::{Load, Probe, Scene, Taken, Way};
use crate::measure::{self, interleave};
use crate::progress::Progress;
use crate::study::{Request, Study, StudyError};
use std::time::Duration;

/// Circumstances in which the ways are compared.
pub struct Circumstances {
    /// What its cells' names begin with.
    pub id: &'static str,
    /// In words.
    pub title: &'static str,
    hz: u32,
    load: Load,
    probe: Probe,
    /// What is compared in them.
    pub ways: &'static [Way],
}

const BOTH: &[Way] = &[Way::Before, Way::After];

/// All of them.
pub const CIRCUMSTANCES: [Circumstances; 5] = [
    Circumstances {
        id: "1000hz.idle",
        title: "1000 Hz idle",
        hz: 1_000,
        load: Load::Idle,
        probe: Probe::Unpinned,
        ways: &[Way::Before, Way::After, Way::Tickless],
    },
    Circumstances {
        id: "1000hz.busy",
        title: "1000 Hz busy",
        hz: 1_000,
        load: Load::Busy,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
    Circumstances {
        id: "1000hz.pinned",
        title: "1000 Hz idle -S",
        hz: 1_000,
        load: Load::Idle,
        probe: Probe::Pinned,
        ways: BOTH,
    },
    Circumstances {
        id: "250hz.idle",
        title: "250 Hz idle",
        hz: 250,
        load: Load::Idle,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
    Circumstances {
        id: "250hz.busy",
        title: "250 Hz busy",
        hz: 250,
        load: Load::Busy,
        probe: Probe::Unpinned,
        ways: BOTH,
    },
];

/// When the probe wakes, after a tick.
pub const PHASES_US: [u64; 4] = [0, 250, 500, 750];

/// Runs it.
pub fn run(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    if request.cpus.is_some() {
        let what = "study deferred --live uses every CPU; leave --cpus out, or use taskset";
        return Err(StudyError::Request { what: what.to_string() });
    }
    let mut study = Study::new("deferred", request, measure::machine());
    study.notes.extend(measure::disturbance());
    let compared = circumstances(request, progress)?;
    let phases = phases(request, progress)?;
    report::write(&mut study, &compared, &phases);
    Ok(study)
}

/// For each of the circumstances, for each of its ways: what its turns gave.
fn circumstances(
    request: &Request,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Vec<Taken>>>, StudyError> {
    let turns = request.effort.turns(1, 3, 10);
    let duration = Duration::from_millis(request.effort.pick(150, 1_000, 10_000));
    let scenes: Vec<Scene> = CIRCUMSTANCES
        .iter()
        .flat_map(|Circumstances { hz, load, probe, ways, .. }| {
            ways.iter().map(|&way| Scene {
                way,
                hz: *hz,
                load: *load,
                probe: *probe,
                phase: None,
                duration,
                seed: request.seed,
            })
        })
        .collect();
    let mut taken = play(&scenes, turns, "ticking", progress)?.into_iter();
    let of_ways = |here: &Circumstances| taken.by_ref().take(here.ways.len()).collect();
    Ok(CIRCUMSTANCES.iter().map(of_ways).collect())
}

/// For each phase, before and after: what its turns gave.
fn phases(request: &Request, progress: &dyn Progress) -> Result<Vec<Vec<Vec<Taken>>>, StudyError> {
    let turns = request.effort.turns(1, 2, 5);
    let duration = Duration::from_millis(request.effort.pick(100, 700, 5_000));
    let scene = |phase_us, way| Scene {
        way,
        hz: 1_000,
        load: Load::Idle,
        probe: Probe::Unpinned,
        phase: Some(Duration::from_micros(phase_us)),
        duration,
        seed: request.seed,
    };
    let scenes: Vec<Scene> =
        PHASES_US.iter().flat_map(|&us| BOTH.iter().map(move |&way| scene(us, way))).collect();
    let taken = play(&scenes, turns, "phases", progress)?;
    Ok(taken.chunks(BOTH.len()).map(<[Vec<Taken>]>::to_vec).collect())
}

fn play(
    scenes: &[Scene],
    turns: usize,
    what: &'static str,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Taken>>, StudyError> {
    progress.begin(what, turns * scenes.len());
    interleave(scenes.len(), turns, |at| {
        let taken = scenes[at].play()?;
        progress.step();
        Ok(taken)
    })
}
