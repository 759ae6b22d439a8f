//! The study of deferred expiry on this machine. Expired timers are fired by an expiry thread,
//! which is woken on every tick (before) or only when a timer has expired (after).
//!
//! The main result is a count: with a tick of 1 ms and few expiring timeouts, a thread that is
//! woken only for expired timers is woken far less often than on every tick. The published effects
//! are on the lateness of a probe, which is a measuring thread: an unpinned probe wakes earlier on
//! average, with an unchanged maximum, and for a pinned probe on each CPU nothing changes.

use super::circumstances::{BOTH, CIRCUMSTANCES, Circumstances, PHASES_US};
use super::report;
use super::scene::{Load, Probe, Scene, Taken};
use crate::measure::interleave;
use crate::progress::Progress;
use crate::studies::{Request, StudyError, StudyResult};
use std::time::Duration;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, StudyError> {
    request
        .reject_cpus("study deferred --live uses every CPU; leave --cpus out, or use taskset")?;
    let mut study = StudyResult::live("deferred", request);
    let compared = circumstances(request, progress)?;
    let phases = phases(request, progress)?;
    report::write(&mut study, &compared, &phases);
    Ok(study)
}

/// Measures in all circumstances. Returns for each of them, and for each variant compared in it,
/// the results of all turns.
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

/// Measures with each phase, which is the time from a tick to the probe's wakeup. Returns for each
/// phase the results of all turns, first without and then with the mechanism.
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
    Ok(interleave(what, scenes.len(), turns, progress, |at| scenes[at].play())?)
}
