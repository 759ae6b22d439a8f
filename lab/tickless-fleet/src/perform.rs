//! The computation of one cell.
//!
//! A cell is one of the computations that a campaign's file requests. It is computed on one thread.
//! The result depends only on the cell and on the files that it names, so it is equal on every
//! computer. A failure, even a panic in the simulated machine, becomes the result of that cell and
//! does not affect other cells.

use crate::campaign::{Cell, Key, Kind, Plan, StudyName};
use crate::clock::Clock;
use crate::project::{Request, project};
use crate::row::{Figure, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickless_core::bases::Settings;
use tickless_lab::studies::rearm::model as rearm;
use tickless_lab::studies::{self, Study, schedule};
use tickless_machine::size::exactly;
use tickless_machine::spec::Spec;
use tickless_trace::Trace;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy, Summary, summarise};

type Figures = Result<Vec<Figure>, String>;

/// Computes one cell. That takes from milliseconds to minutes.
pub fn perform(plan: &Plan, cell: &Cell, key: Key) -> Outcome {
    let machine = || plan.machine(cell.machine.as_deref().unwrap_or_default());
    let done = catch("the simulation", || match cell.kind {
        Kind::Simulate => simulate_on(machine()?, cell),
        Kind::Replay => replay(plan, cell),
        Kind::Project => projected(plan, machine()?, cell),
    });
    match done {
        Ok(figures) => Outcome { key, figures, error: None },
        Err(error) => Outcome { key, figures: Vec::new(), error: Some(error) },
    }
}

/// Computes one of many results. A panic becomes an error, so the other computations go on.
pub(crate) fn catch<T>(
    what: &str,
    compute: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("{what} panicked: {}", message.unwrap_or("without a message")))
    })
}

/// Runs a study on a simulated machine in which operations cost as much time as on `like`, and
/// which has the cell's number of CPUs, tick rate and seed. Refuses what the machine or the study
/// does not have.
pub fn simulate_on(like: &Spec, cell: &Cell) -> Figures {
    let name = cell.study.unwrap_or(StudyName::SCHEDULE);
    cell.check(name)?;
    let mut spec = exactly(like, cpus(like, cell)).map_err(|error| error.to_string())?;
    if let Some(hz) = cell.hz {
        spec = spec.with("workload.hz", f64::from(hz));
    }
    spec.seed = cell.seed.unwrap_or(0);
    let Some(study) = Study::named(name.name()) else {
        return slices(&spec, cell, cell.policy);
    };
    let hz: &[&str] = if cell.hz.is_some() { &["workload.hz"] } else { &[] };
    spec.require(&[study.needs, hz].concat()).map_err(|error| error.to_string())?;
    if let (Some(StudyName::REARM), Some(policy)) = (cell.study, cell.policy) {
        return ping_pong(&spec, policy, cell.length);
    }
    let cells = (study.cells)(&spec).map_err(|error| format!("{}: {error}", like.name))?;
    Ok(cells.into_iter().map(|cell| figure(&cell.unpublished())).collect())
}

fn ping_pong(spec: &Spec, policy: ReplayPolicy, rounds: Option<u32>) -> Figures {
    let policy = policy.set(Settings::default()).policy;
    let ran = rearm::run(spec, policy, rearm::Others::Watchdog, rounds.unwrap_or(20_000));
    let ran = ran.map_err(|error| format!("{}: {error}", spec.name))?;
    let figures = rearm::COLUMNS.map(|(what, unit, of)| Figure::predicted(what, unit, of(&ran)));
    Ok(figures.to_vec())
}

fn slices(spec: &Spec, cell: &Cell, policy: Option<ReplayPolicy>) -> Figures {
    let hz = cell.hz.map_or_else(|| (spec.value("workload.hz") as u64).max(1), u64::from);
    let wanted = policy.map(|policy| policy.set(Settings::default()));
    let is_wanted = |way: &&schedule::DevicePolicy| {
        wanted.is_none_or(|Settings { policy, lazy_timers, handler_end, .. }| {
            (policy, lazy_timers, handler_end) == (way.policy, way.lazy_timers, way.handler_end)
        })
    };
    let mut figures = Vec::new();
    for way in schedule::DEVICE_POLICIES.iter().filter(is_wanted) {
        let load = schedule::Load::new(spec, hz, cell.length.unwrap_or(20));
        let ran = schedule::run(spec, load, *way);
        let ran = ran.map_err(|error| format!("{}: {error}", spec.name))?;
        figures.extend(schedule::COLUMNS.map(|(what, unit, of)| {
            Figure::predicted(format!("{}.{what}", way.name), unit, of(&ran))
        }));
    }
    Ok(figures)
}

fn cpus(like: &Spec, cell: &Cell) -> u16 {
    cell.cpus.unwrap_or_else(|| like.costs().topology.cpus())
}

fn trace(plan: &Plan, cell: &Cell) -> Result<Trace, String> {
    let path = plan.trace(cell.trace.as_deref().unwrap_or_default());
    Trace::read(&path).map_err(|error| error.to_string())
}

fn replay(plan: &Plan, cell: &Cell) -> Figures {
    let inference = if cell.inference == Some(false) { Inference::Off } else { Inference::On };
    Ok(replayed(&summarise(trace(plan, cell)?, &cell.policies, inference)))
}

fn projected(plan: &Plan, like: &Spec, cell: &Cell) -> Figures {
    let request = Request {
        cpus: cpus(like, cell),
        policy: cell.policy.unwrap_or(ReplayPolicy::RestartAware),
        clock: cell.clock.unwrap_or(Clock::Tsc),
        seed: cell.seed.unwrap_or(0),
        seconds: None,
    };
    let projection = project(&Streams::of(&trace(plan, cell)?, Inference::On), like, &request);
    projection.map(|projection| projection.figures()).map_err(|error| error.to_string())
}

pub fn replayed(summary: &Summary) -> Vec<Figure> {
    let live = |name: &str, unit: &str, value: f64| Figure::once(name, unit, "live", value);
    let trace = &summary.trace;
    let mut figures = vec![
        live("seconds", "s", trace.seconds),
        live("trace_cpus", "CPUs", trace.cpus.into()),
        live("armed", "timers", summary.operations.start as f64),
        live("cancelled_percent", "%", summary.cancelled_percent),
        live("inferred_operations", "operations", summary.inferred_operations as f64),
        live("skipped_lines", "lines", summary.skipped_lines as f64),
        live("dropped_events", "events", summary.dropped_events as f64),
    ];
    figures.extend(trace.hz.map(|hz| live("trace_hz", "1/s", hz.into())));
    let recorded = [
        ("device_writes", "writes", trace.recorded.device_writes),
        ("wakeups", "wakeups", trace.recorded.timer_interrupts),
        ("expirations", "timers", Some(trace.recorded.expirations)),
    ];
    figures.extend(
        recorded.into_iter().filter_map(|(name, unit, count)| {
            Some(live(name, unit, count? as f64).under("recorded"))
        }),
    );
    for result in &summary.policies {
        let late = result.lateness_ns;
        let replayed = [
            ("device_writes", "writes", result.device_writes),
            ("inferred_writes", "writes", result.inferred_writes),
            ("wakeups", "wakeups", result.wakeups),
            ("expirations", "timers", result.expirations),
            ("spurious_wakeups", "wakeups", result.spurious_wakeups),
            ("early", "timers", result.early),
            ("lateness_p50", "ns", late.p50),
            ("lateness_p99", "ns", late.p99),
            ("lateness_max", "ns", late.max),
        ];
        figures.extend(replayed.into_iter().map(|(name, unit, value)| {
            Figure::predicted(name, unit, value as f64).under(result.policy)
        }));
    }
    figures
}

fn figure(cell: &studies::Cell) -> Figure {
    let finite = |value: f64| value.is_finite().then_some(value);
    let is_one = cell.low == cell.value && cell.high == cell.value;
    let spread = (!is_one).then(|| [finite(cell.low), finite(cell.high)]);
    Figure { spread, ..Figure::once(cell.id.clone(), cell.unit, cell.role.name(), cell.value) }
}
