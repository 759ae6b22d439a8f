//! The simulated run of the study `clock`: its figures, plots, answers and notes.

use super::{STUDY, model};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::plot::{Axis, Line, Plot, Shape, Side};
use crate::studies::result::value;
use crate::studies::sim::{self, SEED_UNUSED, shown, with_published};
use crate::studies::{Cell, Effort, Request, StudyResult};
use crate::text::figure;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let small = sim::machine(request, "haswell-ex-4s", STUDY.needs)?;
    let big = sim::machine(request, "ivybridge-ex-16s", STUDY.needs)?;
    let machines = if small == big { vec![&big] } else { vec![&small, &big] };
    let mut result = sim::begin("clock", request, progress, &machines);
    if let Some(cpus) = sim::points(&mut result, request, &big)? {
        sim::add(&mut result, request, model::curve(&big, &cpus))?;
    } else {
        for spec in machines {
            sim::add(&mut result, request, model::cells(spec, model::SIDES))?;
        }
        if request.machine.is_none() {
            let cpus = curve_cpus(request.effort);
            let curve = model::curve(&big, cpus).map_err(sim::no_memory)?;
            plots(&mut result, cpus, &curve);
            answers(&mut result);
        }
    }
    let refit = |spec: &_| model::refit(spec, &small);
    sim::add_sensitivity(&mut result, request, &big, refit, STUDY.cells);
    result.notes.push(
        "The time in the read explains 5 of the 12 % that 72 CPUs lose, and 34 of the 65 % that \
         480 lose; the published throughput there is 1.9 times lower still. Reads that are \
         repeated because the timekeeper wrote meanwhile would lengthen the time in the read, \
         which comes out, so they are not it. What waits for CPUs that read with their interrupts \
         off (locks that they hold, calls to them) is not modelled: nothing published says how \
         often this workload does either."
            .to_string(),
    );
    result.notes.push(
        "Ticks come to all CPUs in the same picosecond here. Real ones are a little apart, so the \
         scramble for the word is a worst case."
            .to_string(),
    );
    result.notes.push(SEED_UNUSED.to_string());
    Ok(result)
}

/// Returns the numbers of CPUs for which the curve is plotted: one socket with fewer cores, or
/// whole sockets of 30 CPUs.
fn curve_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[4, 16, 30, 60, 120, 180, 240, 300, 360, 420, 480];
    effort.pick(&[4, 30, 120, 240, 480], ALL, ALL)
}

fn plots(result: &mut StudyResult, cpus: &[u16], curve: &[Cell]) {
    const PUBLISHED: [u16; 2] = [72, 480];
    let line = |source: &str, name: &str, side, figure: &str, scale: f64, cells, places: &[u16]| {
        let id = |cpus: u16| format!("{cpus}.{source}.{figure}");
        let point = |&cpus: &u16| [f64::from(cpus), value(cells, &id(cpus)) / scale];
        let line = Line::new(name, side, places.iter().map(point).collect());
        with_published(line, result, id, &PUBLISHED, scale)
    };
    let lines = |figure: &str, scale| {
        vec![
            line("hpet", "direct", Side::Before, figure, scale, curve, cpus),
            line("combined", "combined", Side::After, figure, scale, curve, cpus),
        ]
    };
    let (percent, mut jobs) = (lines("read_percent", 1.0), lines("jobs_per_min", 1e6));
    jobs.push(line("tsc", "TSC", Side::Beside, "jobs_per_min", 1e6, &result.cells, &PUBLISHED));
    let shape =
        |unit: &str, lines| Shape::Curve { x: Axis::linear("CPUs"), y: Axis::linear(unit), lines };
    let title = "Time in the counter's read, over the number of CPUs";
    result.plots.push(Plot::new("read_percent", title, shape("% of CPU time", percent)));
    let title = "Throughput, over the number of CPUs";
    result.plots.push(Plot::new("jobs", title, shape("million jobs per minute", jobs)));
}

fn answers(result: &mut StudyResult) {
    result.answer(
        "What does combining leave to be gained?",
        format!(
            "At 480 CPUs {} % of the time is in the read directly, {} % combined. If ticks were \
             skewed instead, it would be {} % without combining, and {} jobs a minute against {}; \
             but every CPU's tick would then be a wakeup of its own.",
            shown(result, "480.hpet.read_percent"),
            shown(result, "480.combined.read_percent"),
            shown(result, "480.hpet.skewed.read_percent"),
            shown(result, "480.hpet.skewed.jobs_per_min"),
            shown(result, "480.combined.jobs_per_min"),
        ),
    );
    result.answer(
        "Who waits longest?",
        format!(
            "One read in a thousand takes {} ns or longer at 480 CPUs directly, {} combined; at \
             72 CPUs {} and {}.",
            shown(result, "480.hpet.read_p999"),
            shown(result, "480.combined.read_p999"),
            shown(result, "72.hpet.read_p999"),
            shown(result, "72.combined.read_p999"),
        ),
    );
    let few = result.plots.iter().find(|plot| plot.id == "read_percent").and_then(|plot| {
        let Shape::Curve { lines, .. } = &plot.shape else { return None };
        let [direct, combined] = [lines.first()?, lines.get(1)?];
        let pays = direct.points.iter().zip(&combined.points).find(|(d, c)| c[1] < d[1])?;
        Some((pays.0[0], pays.0[1], pays.1[1]))
    });
    if let Some((cpus, direct, combined)) = few {
        result.answer(
            "Is a threshold needed, below which everybody reads by themselves?",
            format!(
                "No: combining takes less from {} CPUs on ({} % of the time against {}).",
                figure(cpus),
                figure(combined),
                figure(direct),
            ),
        );
    }
}
