//! Simulate, replay, project, read a trace, report.

use crate::errors::{error, named};
use crate::machine::Machine;
use crate::table::{Table, text, whole};
use crate::wait::run;
use pyo3::prelude::*;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tickless_fleet::project::{Clock, Request, project as project_onto};
use tickless_fleet::row::{Figure, Row};
use tickless_fleet::simulate::Cell;
use tickless_lab::effort::Effort;
use tickless_lab::progress::Progress;
use tickless_lab::report::files::Files;
use tickless_lab::report::{Plan, make, page};
use tickless_lab::studies::{STUDIES, World};
use tickless_trace::Trace;
use tickless_trace::read::{Event, NameId, TimerAddr};
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
    study: &str,
    machine: Machine,
    cpus: Option<u16>,
    policy: Option<&str>,
    hz: Option<u32>,
    seed: u64,
    length: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let spec = machine.spec;
    let cell = Cell {
        study: named("study", "study", study)?,
        cpus: cpus.unwrap_or_else(|| spec.costs().topology.cpus()),
        policy: policy.map(|policy| named("policy", "policy", policy)).transpose()?,
        hz,
        seed,
        length,
    };
    let rows = run(py, progress, move |steps, _| {
        steps.begin("simulating", 1);
        let figures = cell.simulate(&spec)?;
        steps.step();
        Ok::<_, String>(cell.labels(&spec).rows(Ok(figures)))
    })?;
    Table::of_rows(&rows)
}

/// Parses the names of policies; the usual three by default.
fn policies(names: Option<Vec<String>>) -> PyResult<Vec<ReplayPolicy>> {
    match names {
        None => Ok(ReplayPolicy::DEFAULT.to_vec()),
        Some(names) => names.iter().map(|name| named("policies", "policy", name)).collect(),
    }
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
    let policies = self::policies(policies)?;
    let rows = run(py, progress, move |steps, stop| {
        steps.begin("replaying", paths.len());
        let one = |path: &PathBuf| {
            if stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let rows = replay_one(path, &policies, inference);
            steps.step();
            rows
        };
        // A single trace needs no pool: its policies have a thread each.
        let all: Result<Vec<Vec<Row>>, String> = match &paths[..] {
            [path] => one(path).map(|rows| vec![rows]),
            paths => paths.par_iter().map(one).collect(),
        };
        all.map(|all| all.concat())
    })?;
    Table::of_rows(&rows)
}

fn replay_one(path: &Path, policies: &[ReplayPolicy], inference: bool) -> Result<Vec<Row>, String> {
    let trace = Trace::read(path).map_err(|error| error.to_string())?;
    let inferred = if inference { Inference::On } else { Inference::Off };
    let figures = Figure::of_replay(&summarise(trace, policies, inferred));
    Ok(of_trace(path, Row::of_version()).rows(Ok(figures)))
}

fn of_trace(path: &Path, row: Row) -> Row {
    Row { trace: Some(path.display().to_string()), ..row }
}

#[pyfunction]
#[pyo3(signature = (
    path, machine, *, cpus = None, clock = "tsc", policies = None, seed = 0, seconds = None,
    progress = None
))]
#[allow(clippy::too_many_arguments)]
pub fn project(
    py: Python<'_>,
    path: PathBuf,
    machine: Machine,
    cpus: Option<Vec<u16>>,
    clock: &str,
    policies: Option<Vec<String>>,
    seed: u64,
    seconds: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let spec = machine.spec;
    let cpus = cpus.unwrap_or_else(|| vec![spec.costs().topology.cpus()]);
    let policies = self::policies(policies)?;
    let clock: Clock = named("clock", "clock", clock)?;
    let rows = run(py, progress, move |steps, stop| {
        steps.begin("projecting", cpus.len() * policies.len());
        let trace = Trace::read(&path).map_err(|error| error.to_string())?;
        let streams = Streams::of(&trace, Inference::On);
        let mut all = Vec::new();
        let requests = cpus.iter().flat_map(|&cpus| {
            policies.iter().map(move |&policy| Request { cpus, policy, clock, seed, seconds })
        });
        for request in requests.take_while(|_| !stop.load(Ordering::Relaxed)) {
            let point = project_onto(&streams, &spec, &request);
            let point = point.map_err(|error| error.to_string())?;
            let row = Row {
                clock: Some(clock.name().to_string()),
                policy: Some(request.policy.name().to_string()),
                ..of_trace(&path, Row::on(&spec, point.cpus, seed))
            };
            all.extend(row.rows(Ok(point.figures())));
            steps.step();
        }
        Ok::<_, String>(all)
    })?;
    Table::of_rows(&rows)
}

#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub fn read_trace(py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> PyResult<Table> {
    let trace = run(py, progress, move |steps, _| {
        steps.begin("reading", 1);
        let trace = Trace::read(&path);
        steps.step();
        trace
    })?;
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let records = || trace.records.iter();
    let timers = || records().map(|it| of_timer(&it.event));
    let functions = timers().map(|(_, function, _)| function.map(|it| trace.names.name(it)));
    Table::of(vec![
        ("time_ns", whole(records().map(|it| Some(number(it.time.0))))),
        ("cpu", whole(records().map(|it| Some(it.cpu.0.into())))),
        ("event", text(records().map(|it| Some(it.event.kind().name())))),
        ("timer", text(timers().map(|(timer, ..)| timer.map(|it| format!("{:x}", it.0))))),
        ("function", text(functions)),
        ("expires", whole(timers().map(|(.., expires)| expires.map(number)))),
    ])
}

/// The timer of an event, its function, and its expiry.
fn of_timer(event: &Event) -> (Option<TimerAddr>, Option<NameId>, Option<u64>) {
    match *event {
        Event::TimerStart { timer, function, expires, .. } => {
            (Some(timer), Some(function), Some(expires.0))
        }
        Event::HrtimerStart { timer, function, expires, .. } => {
            (Some(timer), Some(function), Some(expires.0))
        }
        Event::TimerExpireEntry { timer, function, .. }
        | Event::HrtimerExpireEntry { timer, function, .. } => (Some(timer), Some(function), None),
        Event::TimerInit { timer }
        | Event::TimerCancel { timer }
        | Event::TimerExpireExit { timer }
        | Event::HrtimerSetup { timer, .. }
        | Event::HrtimerCancel { timer }
        | Event::HrtimerExpireExit { timer } => (Some(timer), None, None),
        _ => (None, None, None),
    }
}

/// Writes the report's page and its JSON. Returns their paths.
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
        only.iter().flatten().find(|name| STUDIES.iter().all(|it| it.name != **name))
    {
        return Err(error(format!("there is no study {unknown}")));
    }
    let plan = Plan {
        studies: STUDIES.iter().filter(|study| is_wanted(study.name)).collect(),
        worlds: if live { vec![World::Sim, World::Live] } else { vec![World::Sim] },
        effort: if quick { Effort::Quick } else { Effort::Brief },
        seed,
    };
    run(py, progress, move |steps, stop| {
        let files = Files::at(&out);
        let write = || -> std::io::Result<()> {
            files.prepare()?;
            let report = make(&plan, &|_| Box::new(steps.clone()));
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            files.write(&page(&report), &serde_json::to_string_pretty(&report)?)
        };
        let written = write().map(|()| (files.page.clone(), files.json.clone()));
        written.map_err(|cause| format!("the report cannot be written: {cause}"))
    })
}
