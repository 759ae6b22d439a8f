//! The studies on simulated machines: the machine crate's cells, as this program shows them.
//!
//! Each runs on the machine of its published report. `--cpus` asks for the curve instead of the
//! published cells, `--sensitivity` for how far the predicted cells move with each number that was
//! assumed, `--machine` for another machine, `--timeline` for what each CPU did.

use super::cancel::sim as cancel;
use super::clock::sim as clock;
use super::deferred::sim as deferred;
use super::phase::sim as phase;
use super::rearm::sim as rearm;
use super::{Cell, Exhibit, Form, Request, Role, Study, StudyError, sim_answers, sim_plots};
use super::{Sensitivity, sensitivity};
use crate::machines;
use crate::progress::Progress;
use std::io;
use tickless_machine::size::{Sized, sized};
use tickless_machine::spec::Spec;
use tickless_machine::trace;

/// How many effects of assumed numbers are listed.
const EFFECTS_MAX: usize = 30;

type Cells = Result<Vec<Cell>, StudyError>;

/// Those of `rearm`.
pub fn run_rearm(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    no_curve(request, "rearm")?;
    const NEEDS: [&str; 4] =
        ["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"];
    let spec = machine(request, "x5675-2s", &NEEDS)?;
    let mut study = start("rearm", request, progress, &[&spec]);
    take(&mut study, request, cells(rearm::cells(&spec))?);
    sweep(&mut study, request, &spec, rearm::refit, rearm::cells);
    sim_plots::rearm(&mut study);
    sim_answers::rearm(&mut study);
    timeline(&mut study, request, || rearm::stretch(&spec))?;
    study.notes.push(
        "Half of the eager policy's eight writes per round trip are made while the other CPU \
         works, so only the others are waited for. The CPU time of a task is too high, and \
         rises by too little: on this machine a task's time counts from when it is queued, \
         and overlaps with that of the task that woke it by more than the published runs say."
            .to_string(),
    );
    study.notes.push(NO_CHANCE.to_string());
    Ok(study)
}

/// Those of `clock`.
pub fn run_clock(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    const NEEDS: [&str; 3] =
        ["workload.hz", "workload.reads_per_tick", "workload.jobs_per_cpu_minute"];
    let small = machine(request, "haswell-ex-4s", &NEEDS)?;
    let big = machine(request, "ivybridge-ex-16s", &NEEDS)?;
    let machines = if small == big { vec![&big] } else { vec![&small, &big] };
    let mut study = start("clock", request, progress, &machines);
    match points(request)? {
        Some(cpus) => {
            rounded(&mut study, &big, &cpus);
            take(&mut study, request, cells(clock::curve(&big, &cpus))?);
        }
        None => {
            for spec in machines {
                take(&mut study, request, cells(clock::cells(spec))?);
            }
            if request.sim.machine.is_none() {
                let cpus = sim_plots::clock_cpus(request.effort);
                sim_plots::clock(&mut study, cpus, &curve(clock::curve(&big, cpus))?);
                sim_answers::clock(&mut study);
            }
        }
    }
    sweep(&mut study, request, &big, |spec| clock::refit(spec, &small), clock::cells);
    timeline(&mut study, request, || clock::stretch(&small))?;
    study.notes.push(
        "The time in the read explains 5 of the 12 % that 72 CPUs lose, and 34 of the 65 % that \
         480 lose; the published throughput there is 1.9 times lower still. Reads that are \
         repeated because the timekeeper wrote meanwhile would lengthen the time in the read, \
         which comes out, so they are not it. What waits for CPUs that read with their interrupts \
         off (locks that they hold, calls to them) is not modelled: nothing published says how \
         often this workload does either."
            .to_string(),
    );
    study.notes.push(
        "Ticks come to all CPUs in the same picosecond here. Real ones are a little apart, so the \
         scramble for the word is a worst case."
            .to_string(),
    );
    study.notes.push(NO_CHANCE.to_string());
    Ok(study)
}

/// Those of `cancel`.
pub fn run_cancel(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    const NEEDS: [&str; 3] = ["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"];
    let big = machine(request, "itanium2-32p", &NEEDS)?;
    let small = machine(request, "itanium2-4p", &NEEDS)?;
    let machines = if small == big { vec![&big] } else { vec![&big, &small] };
    let mut study = start("cancel", request, progress, &machines);
    match (points(request)?, &request.sim.machine) {
        (Some(cpus), _) => {
            rounded(&mut study, &big, &cpus);
            take(&mut study, request, cells(cancel::curve(&big, &cpus))?);
        }
        (None, Some(_)) => take(&mut study, request, cells(cancel::cells_of(&big))?),
        (None, None) => {
            take(&mut study, request, cells(cancel::cells(&big, &small))?);
            let [big, small] = [known("itanium2-32w-2005")?, known("itanium2-4w-2005")?];
            take(&mut study, request, cells(cancel::second_source(&big, &small))?);
            let cpus = sim_plots::cancel_cpus(request.effort);
            sim_plots::cancel(&mut study, cpus, &curve(cancel::curve(&big, cpus))?);
            sim_answers::cancel(&mut study);
        }
    }
    // Each machine by itself: a number of one does nothing to the other's cells.
    let is_set = |id: &str| study.cell(id).is_some_and(|cell| cell.role == Role::Calibrated);
    let set = ["32p.before.warm", "4p.after.warm"].map(|id| (id, is_set(id)));
    for spec in machines {
        let refit = |spec: &Spec| cancel::refit(spec, &small);
        sweep(&mut study, request, spec, refit, |spec| {
            let mut cells = cancel::cells_of(spec)?;
            cells.retain(|cell| !set.contains(&(cell.id.as_str(), true)));
            Ok(cells)
        });
    }
    timeline(&mut study, request, || cancel::stretch(&small))?;
    study.notes.push(
        "All CPUs do timer work, so what a base runs is in its CPU's cache and dirty. The \
         published cold cells are not consistent with each other and are not fitted."
            .to_string(),
    );
    study.notes.push("The seed draws when timers are due and how long calls are apart".to_string());
    Ok(study)
}

/// Those of `deferred`.
pub fn run_deferred(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    no_curve(request, "deferred")?;
    const NEEDS: [&str; 3] =
        ["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"];
    let spec = machine(request, "atom-e3825", &NEEDS)?;
    let mut study = start("deferred", request, progress, &[&spec]);
    take(&mut study, request, cells(deferred::cells(&spec))?);
    sim_plots::deferred(&mut study);
    sim_answers::deferred(&mut study);
    // Nothing is fitted on this machine.
    sweep(&mut study, request, &spec, |spec| Ok(spec.clone()), deferred::cells);
    timeline(&mut study, request, || deferred::stretch(&spec))?;
    study.notes.push(
        "How far the two CPUs' ticks are apart decides, and nobody knows it of the published \
         machine: 20 skews of up to 10 us are drawn, and the claim is in how many of them the \
         average of an unbound thread falls more than that of bound ones. Only sleeps that end \
         beside a tick notice anything."
            .to_string(),
    );
    study.notes.push("The seed draws the skews and when the timers expire".to_string());
    Ok(study)
}

/// Those of `phase`.
pub fn run_phase(request: &Request, progress: &dyn Progress) -> Result<Study, StudyError> {
    no_curve(request, "phase")?;
    let spec = machine(request, "power10-core", &["workload.hz", "workload.work_s"])?;
    let mut study = start("phase", request, progress, &[&spec]);
    take(&mut study, request, cells(phase::cells(&spec))?);
    if request.sim.machine.is_none() {
        take(&mut study, request, cells(phase::second_source(&known("power10-later")?))?);
    }
    sim_plots::offsets(&mut study);
    sim_plots::strip(&mut study, &spec).map_err(no_stacks())?;
    sim_answers::phase(&mut study);
    sweep(&mut study, request, &spec, phase::refit, phase::cells);
    timeline(&mut study, request, || phase::stretch(&spec))?;
    study.notes.push(
        "The thread does not name its runs' offsets. 30, 0 and 50 ms are those multiples of 10 ms \
         that fit its 131, 155 and 121 s."
            .to_string(),
    );
    study.notes.push(NO_CHANCE.to_string());
    Ok(study)
}

const NO_CHANCE: &str = "Nothing here is drawn by chance: the seed changes nothing";

/// The machine that was asked for, or that of the thread. It has to have these numbers.
fn machine(request: &Request, usual: &str, needs: &[&str]) -> Result<Spec, StudyError> {
    let mut spec = machines::find(request.sim.machine.as_deref().unwrap_or(usual))?;
    spec.require(needs).map_err(|error| StudyError::Request { what: error.to_string() })?;
    spec.seed = request.seed;
    Ok(spec)
}

/// Writes what happened on each CPU, if that was asked for.
fn timeline(
    study: &mut Study,
    request: &Request,
    stretch: impl FnOnce() -> io::Result<()>,
) -> Result<(), StudyError> {
    let Some(path) = &request.sim.timeline else { return Ok(()) };
    let (done, trace) = trace::of(stretch);
    done.map_err(StudyError::system("memory for the simulated CPUs' stacks; use fewer CPUs"))?;
    let json = trace.unwrap_or_default().to_chrome_json();
    std::fs::write(path, json)
        .map_err(StudyError::system("the timeline could not be written; name another file"))?;
    study.notes.push(format!(
        "A timeline of a short stretch is in {}: open it in ui.perfetto.dev or chrome://tracing",
        path.display()
    ));
    Ok(())
}

fn start(name: &'static str, request: &Request, progress: &dyn Progress, specs: &[&Spec]) -> Study {
    progress.begin("simulating", 1);
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    Study::new(name, request, names.join("; "))
}

fn cells(run: io::Result<Vec<Cell>>) -> Cells {
    run.map_err(no_stacks())
}

fn no_stacks() -> impl FnOnce(io::Error) -> StudyError {
    StudyError::system("memory for the simulated CPUs' stacks; use fewer CPUs")
}

/// The cells of a curve, which are shown as a plot and are none of the thread's.
fn curve(run: io::Result<Vec<Cell>>) -> Result<Vec<Cell>, StudyError> {
    cells(run)
}

fn take(study: &mut Study, request: &Request, cells: Vec<Cell>) {
    let is_elsewhere = request.sim.machine.is_some();
    let one = |cell: Cell| if is_elsewhere { cell.elsewhere() } else { cell };
    study.cells.extend(cells.into_iter().map(one));
}

/// One of the machines that come with the program, with nothing changed.
fn known(name: &str) -> Result<Spec, StudyError> {
    machines::find(name)
}

/// Says which of these CPU counts the machine cannot have, and what is shown instead.
fn rounded(study: &mut Study, like: &Spec, cpus: &[u16]) {
    for &asked in cpus {
        let Sized { cpus, .. } = sized(like, asked);
        if cpus != asked {
            study.notes.push(format!(
                "A machine of this kind has whole sockets, or one with whole cores, so there is \
                 none with {asked} CPUs: the figures are of one with {cpus}, and are named so"
            ));
        }
    }
}

/// The points of the curve that was asked for.
fn points(request: &Request) -> Result<Option<Vec<u16>>, StudyError> {
    const MOST: u32 = 4_096;
    let Some(cpus) = &request.cpus else { return Ok(None) };
    let point = |&cpus: &u32| match u16::try_from(cpus) {
        Ok(count) if (1..=MOST).contains(&cpus) => Ok(count),
        _ => Err(StudyError::Request { what: format!("{cpus} CPUs; ask for 1 to {MOST}") }),
    };
    cpus.iter().map(point).collect::<Result<_, _>>().map(Some)
}

fn no_curve(request: &Request, study: &str) -> Result<(), StudyError> {
    match request.cpus {
        None => Ok(()),
        Some(_) => {
            let what = format!("study {study} --sim has no curve over CPUs; leave --cpus out");
            Err(StudyError::Request { what })
        }
    }
}

/// Adds what the assumed numbers of a machine do to the predicted cells, if that was asked for.
fn sweep(
    study: &mut Study,
    request: &Request,
    spec: &Spec,
    refit: impl Fn(&Spec) -> io::Result<Spec> + Sync,
    cells: impl Fn(&Spec) -> io::Result<Vec<Cell>> + Sync,
) {
    if !request.sensitivity {
        return;
    }
    let header = ["number", "cell", "at low", "as it is", "at high", "moves"];
    let row = |one: &Sensitivity| {
        let number = |value: f64| format!("{value:.3}");
        vec![
            one.key.clone(),
            one.cell.clone(),
            number(one.at_low),
            number(one.value),
            number(one.at_high),
            format!("{:.0} %", 100.0 * one.moves()),
        ]
    };
    // On a machine of one's own nothing was fitted.
    let is_fitted = request.sim.machine.is_none();
    let refit = |spec: &Spec| match is_fitted {
        true => refit(spec).unwrap_or_else(|_| spec.clone()),
        false => spec.clone(),
    };
    let effects = sensitivity(spec, refit, |spec| cells(spec).unwrap_or_default());
    study.exhibits.push(Exhibit {
        title: format!(
            "What assumed numbers of {} do to cells that are not calibrated, over the ranges in \
             {}; fitted numbers are set again at each end",
            spec.name, spec.file
        ),
        form: Form::Table {
            header: header.map(str::to_string).to_vec(),
            rows: effects.iter().take(EFFECTS_MAX).map(row).collect(),
        },
    });
}
