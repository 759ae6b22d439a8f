//! The study `rearm`: removing the first timer leaves the event device (the CPU's timer hardware)
//! as it is, instead of programming it for the next timer.

mod doctor;
mod kernel;
mod live;
pub mod model;
mod ping_pong;

use super::plot::{Bar, Plot, Shape, Side};
use super::sim;
use crate::error::LabError;
use crate::progress::Progress;
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "rearm",
    about: "Removing the first timer: program the event device, or not",
    text: include_str!("rearm/report.txt"),
    needs: &["workload.hz", "workload.pipe_ns", "workload.next_timer_ms", "workload.watchdog_ms"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: simulate,
    live: live::run,
    checks: &[doctor::WRITES, doctor::REMOVALS, doctor::SLICE],
};

/// How the row of a kernel begins, before its version.
const LINUX: &str = "linux_";

fn plot_writes(study: &mut StudyResult) {
    let mut rows = study.cells.iter().filter_map(|cell| cell.id.split('.').next());
    let linux = rows.find(|row| row.starts_with(LINUX)).unwrap_or(LINUX).to_string();
    let bar = |(name, side): (&str, Side)| Bar {
        name: match name.strip_prefix(LINUX) {
            Some(version) => format!("linux-{}", version.replace('_', ".")),
            None => name.replace('_', "-"),
        },
        side,
        value: study.value(&format!("{name}.device_writes_per_round_trip")),
    };
    let ways = [
        ("eager", Side::Before),
        ("restart_aware", Side::Beside),
        (linux.as_str(), Side::Beside),
        ("lazy", Side::After),
    ];
    // The simulation has Linux 7.2, and a live result the kernel's own row if that is 7.1 or later.
    let has = |name: &str| study.cells.iter().any(|cell| cell.id.starts_with(name));
    let bars: Vec<Bar> = ways.into_iter().filter(|way| has(way.0)).map(bar).collect();
    let shape = Shape::Bars { unit: "writes per round trip", bars };
    study.plots.push(Plot::new("writes", "Device writes per round trip", shape));
}

fn simulate(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "rearm")?;
    let spec = sim::machine(request, "x5675-2s", STUDY.needs)?;
    let mut result = sim::begin("rearm", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    sim::add_sensitivity(&mut result, request, &spec, model::refit, STUDY.cells);
    plot_writes(&mut result);
    let [eager, lazy] =
        ["eager", "lazy"].map(|of| result.value(&format!("{of}.us_per_round_trip")));
    let slower = format!("{:.1} %", 100.0 * (eager / lazy - 1.0));
    result.explained(request, STUDY.text, &[("slower", slower)])
}
