//! Runs the studies: the simulated ones in parallel, then the live ones one by one.
//!
//! Simulated studies are deterministic, so running them at the same time does not change their
//! figures. A live study runs alone, so that no other work of this program disturbs it.

use super::{Report, Verdict};
use crate::effort::Effort;
use crate::error::LabError;
use crate::measure;
use crate::progress::Progress;
use crate::studies::{Request, Study, StudyResult, World};
use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;
use std::time::Instant;
use std::{fs, thread};

#[derive(Clone, Debug)]
pub struct Plan {
    pub studies: Vec<&'static Study>,
    pub worlds: Vec<World>,
    pub effort: Effort,
    pub seed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Done {
    pub study: &'static str,
    pub sim: Option<Part>,
    pub live: Option<Part>,
}

/// A simulated or a live run of a study: either a result or an error.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub seconds: f64,
    pub result: Option<StudyResult>,
    pub error: Option<String>,
}

impl Part {
    fn of(work: impl FnOnce() -> Result<StudyResult, LabError>) -> Part {
        let begun = Instant::now();
        let (result, error) = match work() {
            Ok(study) => (Some(study), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Part { seconds: begun.elapsed().as_secs_f64(), result, error }
    }

    fn died() -> Part {
        let error = "the study died; its message is above. Run it alone to see more";
        Part { seconds: 0.0, result: None, error: Some(error.to_string()) }
    }
}

/// Runs the planned studies. `bar` makes the progress display for the study of a given name.
pub fn run(plan: &Plan, bar: &dyn Fn(&'static str) -> Box<dyn Progress>) -> Vec<Done> {
    let of = |study: &&'static Study| Done { study: study.name, sim: None, live: None };
    let mut done: Vec<Done> = plan.studies.iter().map(of).collect();
    let progress: Vec<_> = plan.studies.iter().map(|study| bar(study.name)).collect();
    if plan.worlds.contains(&World::Sim) {
        let all = done.par_iter_mut().zip(&plan.studies).zip(&progress);
        all.for_each(|((done, study), progress)| {
            done.sim = Some(one(plan, study, World::Sim, progress.as_ref()));
        });
    }
    for ((study, done), progress) in plan.studies.iter().zip(&mut done).zip(&progress) {
        if plan.worlds.contains(&World::Live) {
            done.live = Some(one(plan, study, World::Live, progress.as_ref()));
        }
        let parts = [&done.sim, &done.live].into_iter().flatten();
        let seconds: f64 = parts.clone().map(|part| part.seconds).sum();
        let failed = parts.clone().any(|part| part.error.is_some());
        progress.done(&format!("{} in {seconds:.1} s", if failed { "failed" } else { "done" }));
    }
    done
}

/// Runs a study on a thread of its own, so that a panic does not affect the others.
fn one(plan: &Plan, study: &Study, world: World, progress: &dyn Progress) -> Part {
    let request = Request::new(world, plan.effort, plan.seed);
    let work = || Part::of(|| study.run(&request, progress));
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|_| Part::died())
}

pub fn make(plan: &Plan, bar: &dyn Fn(&'static str) -> Box<dyn Progress>) -> Report {
    let (begun, machine) = (Instant::now(), Facts::here());
    let date = format!("{:.0}", Timestamp::now());
    let studies = run(plan, bar);
    let verdict = |done| Verdict::of(done, machine.cpus);
    Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        date,
        seconds: begun.elapsed().as_secs_f64(),
        effort: plan.effort.name(),
        seed: plan.seed,
        verdicts: studies.iter().filter_map(verdict).collect(),
        machine,
        studies,
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub cpu: String,
    pub cpus: usize,
    pub kernel: String,
    pub clock_source: Option<String>,
    /// The load averages over 1, 5 and 15 minutes before the run.
    pub load: Vec<f64>,
    pub disturbance: Option<String>,
}

impl Facts {
    pub fn here() -> Facts {
        let read = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_string());
        let load = read("/proc/loadavg").unwrap_or_default();
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Facts {
            cpu: measure::processor(),
            cpus: measure::cpus().len(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_string()),
            clock_source: read(source),
            load: load.split(' ').take(3).filter_map(|word| word.parse().ok()).collect(),
            disturbance: measure::disturbance(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Hidden;

    fn breaks(_: &Request, _: &dyn Progress) -> Result<StudyResult, LabError> {
        Err(LabError::Request { what: "no permission; run as root".to_string() })
    }

    fn works(request: &Request, _: &dyn Progress) -> Result<StudyResult, LabError> {
        Ok(StudyResult::new("works", request, "a machine"))
    }

    const REARM: Study = crate::studies::rearm::STUDY;
    static BREAKS: Study = Study { name: "breaks", live: breaks, sim: works, ..REARM };
    static WORKS: Study = Study { name: "works", live: works, sim: works, ..REARM };

    /// Goal: if the live run of a study fails, its error is in that run's result only; the
    /// simulated run and the other studies succeed.
    #[test]
    fn a_failure_does_not_affect_other_studies() {
        let plan = Plan {
            studies: vec![&BREAKS, &WORKS],
            worlds: vec![World::Sim, World::Live],
            effort: Effort::Quick,
            seed: 0,
        };
        let done = run(&plan, &|_| Box::new(Hidden));
        let live = done[0].live.as_ref().unwrap();
        assert!(
            live.result.is_none() && live.error.as_deref() == Some("no permission; run as root")
        );
        let others = [&done[0].sim, &done[1].sim, &done[1].live];
        assert!(others.iter().all(|part| part.as_ref().unwrap().result.is_some()));
    }

    #[test]
    fn one_world_is_enough() {
        let worlds = vec![World::Live];
        let plan = Plan { studies: vec![&WORKS], worlds, effort: Effort::Quick, seed: 0 };
        let done = run(&plan, &|_| Box::new(Hidden));
        assert!(done.len() == 1 && done[0].sim.is_none() && done[0].live.is_some());
    }
}
