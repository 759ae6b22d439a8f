//! What one cell comes to.
//!
//! A cell runs on one thread and depends on nothing but itself and the files that it names: the
//! same cell comes to the same figures wherever it runs. Whatever goes wrong with it, a panic in
//! the simulated machine included, is the cell's outcome and nobody else's.

use crate::campaign::{Cell, Key, Plan, Project, Replay, Simulate};
use crate::project::{Clock, Request, project};
use crate::row::{Figure, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickless_core::rearm::Policy;
use tickless_lab::study::Role;
use tickless_machine::spec::Spec;
use tickless_machine::study::{self, cancel, clock, deferred, phase, rearm, schedule, sized};
use tickless_trace::Trace;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy, Summary, summarise};

type Figures = Result<Vec<Figure>, String>;

/// Works a cell out. Takes from milliseconds to minutes, as the cell is.
pub fn perform(plan: &Plan, cell: &Cell, key: Key) -> Outcome {
    let done = catch_unwind(AssertUnwindSafe(|| match cell {
        Cell::Simulate(cell) => simulate(plan, cell),
        Cell::Replay(cell) => replay(plan, cell),
        Cell::Project(cell) => projected(plan, cell),
    }));
    match done {
        Ok(Ok(figures)) => Outcome { key, figures, error: None },
        Ok(Err(error)) => Outcome { key, figures: Vec::new(), error: Some(error) },
        Err(panic) => {
            let what = panic.downcast_ref::<String>().cloned();
            let what = what.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_string()));
            let what = what.unwrap_or_else(|| "no more is known".to_string());
            let error = Some(format!("the simulation came to a stop: {what}"));
            Outcome { key, figures: Vec::new(), error }
        }
    }
}

fn simulate(plan: &Plan, cell: &Simulate) -> Figures {
    simulate_on(&plan.machine(&cell.machine)?, cell)
}

/// Runs a study on a machine like `like`, with what the cell says of its size, its tick and its
/// seed.
///
/// # Errors
///
/// What the machine's file lacks for the study, and what cannot be run.
pub fn simulate_on(like: &Spec, cell: &Simulate) -> Figures {
    let spec = machine(like, cell)?;
    if let (Some(policy), "rearm") = (&cell.policy, cell.study.as_str()) {
        let policy = match policy_of(policy)? {
            ReplayPolicy::Eager => Policy::Eager,
            ReplayPolicy::Lazy => Policy::Lazy,
            _ => Policy::RestartAware,
        };
        return ping_pong(&spec, policy, cell.length.unwrap_or(20_000));
    }
    let cells = match cell.study.as_str() {
        "rearm" => rearm::cells(&spec),
        "clock" => clock::cells(&spec),
        "cancel" => cancel::cells_of(&spec),
        "deferred" => deferred::cells(&spec),
        "phase" => phase::cells(&spec),
        "schedule" => return slices(&spec, cell),
        other => return Err(format!("there is no study {other}")),
    };
    let cells = cells.map_err(|error| format!("{}: {error}", cell.machine))?;
    Ok(cells.into_iter().map(|cell| figure(&cell.elsewhere())).collect())
}

/// The machine of a cell: of its size, with its tick and its seed.
fn machine(like: &Spec, cell: &Simulate) -> Result<Spec, String> {
    let mut spec = sized(like, cell.cpus).spec;
    if let Some(hz) = cell.hz {
        spec = spec.with("workload.hz", f64::from(hz));
    }
    let needs: &[&str] = match cell.study.as_str() {
        "rearm" => {
            &["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"]
        }
        "clock" => &["workload.hz", "workload.reads_per_tick", "workload.jobs_per_cpu_minute"],
        "cancel" => &["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"],
        "deferred" => &["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"],
        "phase" => &["workload.hz", "workload.work_s"],
        _ => &[],
    };
    spec.require(needs).map_err(|error| error.to_string())?;
    spec.seed = cell.seed;
    Ok(spec)
}

fn ping_pong(spec: &Spec, policy: Policy, rounds: u32) -> Figures {
    let ran = rearm::run(spec, policy, rearm::Others::Watchdog, rounds);
    let ran = ran.map_err(|error| format!("{}: {error}", spec.name))?;
    Ok(vec![
        predicted("us_per_round_trip", "us", ran.us),
        predicted("device_writes_per_round_trip", "writes", ran.writes),
        predicted("spurious_wakeups_per_s", "wakeups/s", ran.spurious_per_s),
        predicted("task_us_per_round_trip", "us", ran.task_us),
        predicted("task_percent", "% of real time", ran.task_percent),
    ])
}

fn slices(spec: &Spec, cell: &Simulate) -> Figures {
    let hz = cell.hz.map_or_else(|| (spec.value("workload.hz") as u64).max(1), u64::from);
    let messages = cell.length.unwrap_or(20);
    // As the study calls what a policy of a replay does.
    let wanted = cell.policy.as_deref().map(|policy| match policy {
        "rearm-put-off" => "put_off".to_string(),
        "linux-7.1" => "both".to_string(),
        other => other.replace('-', "_"),
    });
    let mut figures = Vec::new();
    for way in schedule::WAYS.iter().filter(|way| wanted.as_deref().is_none_or(|it| it == way.name))
    {
        let ran = schedule::run(spec, hz, messages, *way);
        let ran = ran.map_err(|error| format!("{}: {error}", spec.name))?;
        let per_1000 = |count: u64| count as f64 * 1e3 / ran.switches.max(1) as f64;
        let unit = "per 1000 switches";
        let name = |what: &str| format!("{}.{what}", way.name);
        figures.extend([
            predicted(name("writes"), unit, per_1000(ran.device.writes)),
            predicted(name("events"), unit, per_1000(ran.device.events)),
            predicted(name("for_nothing"), unit, per_1000(ran.device.spurious)),
            predicted(name("ms"), "ms", ran.ms),
        ]);
    }
    Ok(figures)
}

fn replay(plan: &Plan, cell: &Replay) -> Figures {
    let path = plan.trace(&cell.trace);
    let trace = Trace::read(&path).map_err(|error| error.to_string())?;
    let policies = cell.policies.iter().map(|policy| policy_of(policy));
    let policies: Vec<ReplayPolicy> = policies.collect::<Result<_, _>>()?;
    let inference = if cell.inference { Inference::On } else { Inference::Off };
    Ok(replayed(&summarise(&trace, &policies, inference)))
}

fn projected(plan: &Plan, cell: &Project) -> Figures {
    let trace = Trace::read(&plan.trace(&cell.trace)).map_err(|error| error.to_string())?;
    let clock = Clock::ALL.into_iter().find(|clock| clock.name() == cell.clock);
    let request = Request {
        cpus: cell.cpus,
        policy: policy_of(&cell.policy)?,
        clock: clock.ok_or_else(|| format!("there is no clock {}", cell.clock))?,
        seed: cell.seed,
        seconds: None,
    };
    let spec = plan.machine(&cell.machine)?;
    let projection = project(&Streams::of(&trace, Inference::On), &spec, &request);
    projection.map(|projection| projection.figures()).map_err(|error| error.to_string())
}

/// The figures of a replay that can be compared between traces.
pub fn replayed(summary: &Summary) -> Vec<Figure> {
    let live = |what: &str, unit: &str, value: f64| Figure::once(what, unit, LIVE, value);
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
    let counted = [
        ("device_writes", "writes", trace.recorded.device_writes),
        ("wakeups", "wakeups", trace.recorded.timer_interrupts),
        ("expirations", "timers", Some(trace.recorded.expirations)),
    ];
    let counted = counted.into_iter().filter_map(|(what, unit, count)| Some((what, unit, count?)));
    figures.extend(
        counted.map(|(what, unit, count)| live(what, unit, count as f64).under("recorded")),
    );
    for result in &summary.policies {
        let late = result.lateness_ns;
        let all = [
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
        let one = |(what, unit, value): (&str, &str, u64)| {
            predicted(what, unit, value as f64).under(result.policy)
        };
        figures.extend(all.into_iter().map(one));
    }
    figures
}

const LIVE: &str = "live";

pub(crate) fn predicted(figure: impl Into<String>, unit: impl Into<String>, value: f64) -> Figure {
    Figure::once(figure, unit, "predicted", value)
}

fn figure(cell: &study::Cell) -> Figure {
    let role = match cell.role {
        Role::Calibrated => "calibrated",
        Role::Implied => "implied",
        Role::Predicted => "predicted",
        Role::Live => LIVE,
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    let is_one = cell.low == cell.value && cell.high == cell.value;
    let spread = (!is_one).then(|| [finite(cell.low), finite(cell.high)]);
    Figure { spread, ..Figure::once(cell.id.clone(), cell.unit, role, cell.value) }
}

/// The policy of this name.
///
/// # Errors
///
/// There is none.
pub fn policy_of(name: &str) -> Result<ReplayPolicy, String> {
    let found = ReplayPolicy::ALL.into_iter().find(|policy| policy.name() == name);
    found.ok_or_else(|| format!("there is no policy {name}"))
}
