//! Simulate, replay, project, read a trace, report.

use crate::errors::error;
use crate::machine::Machine;
use crate::table::Table;
use crate::wait::{Finishes, Steps, wait};
use arrow_array::ArrayRef;
use arrow_array::builder::{Int64Builder, StringBuilder};
use pyo3::prelude::*;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tickless_fleet::campaign::{Cell, Project, Replay, Simulate, VERSION};
use tickless_fleet::perform::{policy_of, replayed, simulate_on};
use tickless_fleet::project::{self as onto, Clock, Request};
use tickless_fleet::row::{Figure, Outcome, Row};
use tickless_lab::progress::Progress;
use tickless_lab::report::files::Files;
use tickless_lab::report::{Plan, make, page};
use tickless_lab::studies::{Effort, OFFERS, World};
use tickless_trace::Trace;
use tickless_trace::read::Event;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

#[pyfunction]
#[pyo3(signature = (
    study, machine, *, cpus = None, policy = None, hz = None, seed = 0, length = None,
    progress = None
))]
#[allow(clippy::too_many_arguments)]
pub fn simulate(
    py: Python<'_>,
    study: String,
    machine: Machine,
    cpus: Option<u16>,
    policy: Option<String>,
    hz: Option<u32>,
    seed: u64,
    length: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let spec = machine.spec;
    let cell = Simulate {
        study,
        machine: spec.name.clone(),
        machine_hash: format!("{:016x}", spec.fingerprint()),
        cpus: cpus.unwrap_or_else(|| spec.costs().topology.cpus()),
        policy,
        hz,
        seed,
        length,
    };
    let steps = one_step();
    let done = wait(py, Finishes::No, steps.tell(progress), move |_| {
        let figures = simulate_on(&spec, &cell)?;
        steps.step();
        Ok::<_, String>(rows(&Cell::Simulate(cell), figures))
    })?;
    Table::of_rows(&done.map_err(error)?)
}

#[pyfunction]
#[pyo3(signature = (paths, policies = None, *, inference = true, progress = None))]
pub fn replay(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    policies: Option<Vec<String>>,
    inference: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let policies = match policies {
        None => ReplayPolicy::DEFAULT.to_vec(),
        Some(names) => {
            names.iter().map(|name| policy_of(name)).collect::<Result<_, _>>().map_err(error)?
        }
    };
    let steps = Steps::default();
    steps.begin("replaying", paths.len());
    let done = wait(py, Finishes::No, steps.tell(progress), move |stop| {
        let one = |path: &PathBuf| {
            if stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let rows = replay_one(path, &policies, inference);
            steps.step();
            rows
        };
        // One trace needs no pool, and its policies have a thread each.
        let all: Result<Vec<Vec<Row>>, String> = match &paths[..] {
            [path] => one(path).map(|rows| vec![rows]),
            paths => paths.par_iter().map(one).collect(),
        };
        all.map(|all| all.concat())
    })?;
    Table::of_rows(&done.map_err(error)?)
}

fn replay_one(path: &Path, policies: &[ReplayPolicy], inference: bool) -> Result<Vec<Row>, String> {
    let trace = Trace::read(path).map_err(|error| error.to_string())?;
    let how = if inference { Inference::On } else { Inference::Off };
    let figures = replayed(&summarise(&trace, policies, how));
    let cell = Replay {
        trace: path.display().to_string(),
        bytes: path.metadata().map_or(0, |facts| facts.len()),
        policies: policies.iter().map(|policy| policy.name().to_string()).collect(),
        inference,
    };
    Ok(rows(&Cell::Replay(cell), figures))
}

#[pyfunction]
#[pyo3(signature = (
    path, machine, *, cpus = None, clock = "tsc".to_string(), policies = None, seed = 0,
    seconds = None, progress = None
))]
#[allow(clippy::too_many_arguments)]
pub fn project(
    py: Python<'_>,
    path: PathBuf,
    machine: Machine,
    cpus: Option<Vec<u16>>,
    clock: String,
    policies: Option<Vec<String>>,
    seed: u64,
    seconds: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let spec = machine.spec;
    let cpus = cpus.unwrap_or_else(|| vec![spec.costs().topology.cpus()]);
    let names = ReplayPolicy::DEFAULT.map(|policy| policy.name().to_string());
    let policies = policies.unwrap_or_else(|| names.to_vec());
    let known = Clock::ALL.into_iter().find(|known| known.name() == clock);
    let known = known.ok_or_else(|| error(format!("there is no clock {clock}")))?;
    let steps = Steps::default();
    steps.begin("projecting", cpus.len() * policies.len());
    let done = wait(py, Finishes::No, steps.tell(progress), move |stop| {
        let trace = Trace::read(&path).map_err(|error| error.to_string())?;
        let streams = Streams::of(&trace, Inference::On);
        let mut all = Vec::new();
        for &count in &cpus {
            for name in &policies {
                if stop.load(Ordering::Relaxed) {
                    return Ok(all);
                }
                let policy = policy_of(name)?;
                let request = Request { cpus: count, policy, clock: known, seed, seconds };
                let point = onto::project(&streams, &spec, &request);
                let point = point.map_err(|error| error.to_string())?;
                let cell = Project {
                    trace: path.display().to_string(),
                    bytes: path.metadata().map_or(0, |facts| facts.len()),
                    machine: spec.name.clone(),
                    machine_hash: format!("{:016x}", spec.fingerprint()),
                    cpus: point.cpus,
                    clock: known.name().to_string(),
                    policy: name.clone(),
                    seed,
                };
                all.extend(rows(&Cell::Project(cell), point.figures()));
                steps.step();
            }
        }
        Ok::<_, String>(all)
    })?;
    Table::of_rows(&done.map_err(error)?)
}

fn rows(cell: &Cell, figures: Vec<Figure>) -> Vec<Row> {
    let outcome = Outcome { key: cell.key(VERSION), figures, error: None };
    outcome.rows(cell, VERSION).collect()
}

/// For what cannot be divided: a callback is still called, and its exceptions end the call.
fn one_step() -> Steps {
    let steps = Steps::default();
    steps.begin("", 1);
    steps
}

#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub fn read_trace(py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> PyResult<Table> {
    let steps = one_step();
    let done = wait(py, Finishes::No, steps.tell(progress), move |_| {
        let read = Trace::read(&path).map(|trace| columns(&trace));
        steps.step();
        read.map_err(|error| error.to_string())
    })?;
    Table::of(done.map_err(error)?)
}

/// What every event has, and what those of timers have.
fn columns(trace: &Trace) -> Vec<(&'static str, ArrayRef)> {
    let [mut times, mut cpus, mut expires] = [(); 3].map(|()| Int64Builder::new());
    let [mut events, mut timers, mut functions] = [(); 3].map(|()| StringBuilder::new());
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    for record in &trace.records {
        times.append_value(number(record.time.0));
        cpus.append_value(record.cpu.0.into());
        events.append_value(record.event.kind().name());
        let (timer, function, at) = match record.event {
            Event::TimerStart { timer, function, expires, .. } => {
                (Some(timer), Some(function), Some(expires.0))
            }
            Event::HrtimerStart { timer, function, expires, .. } => {
                (Some(timer), Some(function), Some(expires.0))
            }
            Event::TimerExpireEntry { timer, function, .. }
            | Event::HrtimerExpireEntry { timer, function, .. } => {
                (Some(timer), Some(function), None)
            }
            Event::TimerInit { timer }
            | Event::TimerCancel { timer }
            | Event::TimerExpireExit { timer }
            | Event::HrtimerSetup { timer, .. }
            | Event::HrtimerCancel { timer }
            | Event::HrtimerExpireExit { timer } => (Some(timer), None, None),
            _ => (None, None, None),
        };
        timers.append_option(timer.map(|timer| format!("{:x}", timer.0)));
        functions.append_option(function.map(|function| trace.names.name(function)));
        expires.append_option(at.map(number));
    }
    vec![
        ("time_ns", Arc::new(times.finish())),
        ("cpu", Arc::new(cpus.finish())),
        ("event", Arc::new(events.finish())),
        ("timer", Arc::new(timers.finish())),
        ("function", Arc::new(functions.finish())),
        ("expires", Arc::new(expires.finish())),
    ]
}

/// Writes the report's page and its JSON; returns their paths.
#[pyfunction]
#[pyo3(signature = (out, *, quick = false, only = None, live = true, seed = 0, progress = None))]
#[allow(clippy::too_many_arguments)]
pub fn report(
    py: Python<'_>,
    out: PathBuf,
    quick: bool,
    only: Option<Vec<String>>,
    live: bool,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, PathBuf)> {
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only.iter().any(|it| it == name));
    if let Some(unknown) =
        only.iter().flatten().find(|name| OFFERS.iter().all(|it| it.name != **name))
    {
        return Err(error(format!("there is no study {unknown}")));
    }
    let plan = Plan {
        offers: OFFERS.iter().filter(|offer| is_wanted(offer.name)).collect(),
        worlds: if live { vec![World::Sim, World::Live] } else { vec![World::Sim] },
        effort: if quick { Effort::Quick } else { Effort::Brief },
        seed,
    };
    let steps = Steps::default();
    let done = wait(py, Finishes::No, steps.tell(progress), move |stop| {
        let files = Files::at(&out);
        files.prepare()?;
        let report = make(&plan, &|_| Box::new(steps.clone()));
        if !stop.load(Ordering::Relaxed) {
            files.write(&page(&report)?, &serde_json::to_string_pretty(&report)?)?;
        }
        Ok::<_, std::io::Error>((files.page.clone(), files.json.clone()))
    })?;
    done.map_err(|cause| error(format!("the report cannot be written: {cause}")))
}
