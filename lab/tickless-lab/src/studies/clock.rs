//! The study `clock`: one CPU reads a slow shared counter, and the other CPUs that wait for a read
//! take the value that it has read.

pub mod device;
mod doctor;
mod live;
pub mod model;
mod readers;

use crate::effort::Effort;
use crate::error::LabError;
use crate::progress::Progress;
use crate::studies::cell::Cell;
use crate::studies::plot::{Axis, Shape, Side};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::sim;
use crate::studies::study::Study;
use crate::text::figure;

pub const STUDY: Study = Study {
    name: "clock",
    about: "A slow shared counter: everybody reads it, or one reads for all",
    text: include_str!("clock/report.txt"),
    needs: &["workload.hz", "workload.reads_per_tick", "workload.jobs_per_cpu_minute"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: simulate,
    live: live::run,
    checks: &[doctor::SOURCE, doctor::CONTENTION, doctor::WATCHDOG],
};

fn simulate(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let small = sim::machine(request, "haswell-ex-4s", STUDY.needs)?;
    let big = sim::machine(request, "ivybridge-ex-16s", STUDY.needs)?;
    let machines = if small == big { vec![&big] } else { vec![&small, &big] };
    let mut result = sim::begin("clock", request, progress, &machines);
    if let Some(cpus) = sim::points(request, &big)? {
        sim::add(&mut result, request, model::curve(&big, &cpus))?;
    } else {
        for spec in machines {
            sim::add(&mut result, request, model::cells(spec, model::SIDES))?;
        }
        if request.machine.is_none() {
            let cpus = curve_cpus(request.effort);
            let curve = model::curve(&big, cpus).map_err(sim::no_memory)?;
            plots(&mut result, &curve);
        }
    }
    let refit = |spec: &_| model::refit(spec, &small);
    sim::add_sensitivity(&mut result, request, &big, refit, STUDY.cells);
    let words: Vec<_> = threshold(&result).into_iter().flatten().collect();
    result.explained(request, STUDY.text, &words)
}

/// Returns the numbers of CPUs for which the curve is plotted: one socket with fewer cores, or
/// whole sockets of 30 CPUs.
fn curve_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[4, 16, 30, 60, 120, 180, 240, 300, 360, 420, 480];
    effort.pick(&[4, 30, 120, 240, 480], ALL, ALL)
}

fn plots(result: &mut StudyResult, curve: &[Cell]) {
    let lines = |figure: &str, scale| {
        let line = |source: &str, name, side| {
            result.line((name, side), curve, &format!("*.{source}.{figure}"), scale)
        };
        vec![line("hpet", "direct", Side::Before), line("combined", "combined", Side::After)]
    };
    let (percent, mut jobs) = (lines("read_percent", 1.0), lines("jobs_per_min", 1e6));
    jobs.push(result.line(("TSC", Side::Beside), &result.cells, "*.tsc.jobs_per_min", 1e6));
    let axes = |unit| [Axis::linear("CPUs"), Axis::linear(unit)];
    let title = "Time in the counter's read, over the number of CPUs";
    result.curve("read_percent", title, axes("% of CPU time"), percent);
    let title = "Throughput, over the number of CPUs";
    result.curve("jobs", title, axes("million jobs per minute"), jobs);
}

/// Returns the fewest CPUs for which combining takes less time than direct reads, and both times.
fn threshold(result: &StudyResult) -> Option<[(&'static str, String); 3]> {
    let plot = result.plots.iter().find(|plot| plot.id == "read_percent")?;
    let Shape::Curve { lines, .. } = &plot.shape else { return None };
    let [direct, combined] = [lines.first()?, lines.get(1)?];
    let mut points = direct.points.iter().zip(&combined.points);
    let (&[cpus, direct], &[_, combined]) = points.find(|(d, c)| c[1] < d[1])?;
    let words = [("fewest", cpus), ("fewest combined", combined), ("fewest direct", direct)];
    Some(words.map(|(word, value)| (word, figure(value))))
}
