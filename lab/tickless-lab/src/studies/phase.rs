//! The study `phase`: the CPU quotas of two groups of threads are refilled at the same moment, or
//! half a period apart.

mod cgroups;
mod control;
mod doctor;
mod live;
pub mod model;
mod work;

use self::model::GroupPlan;
use crate::error::LabError;
use crate::machines;
use crate::progress::Progress;
use crate::studies::plot::{Axis, Lane, Plot, Shape, Side, merged};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::sim;
use crate::studies::study::Study;
use std::io;
use tickless_core::phase::Phase;
use tickless_machine::spec::Spec;

pub const STUDY: Study = Study {
    name: "phase",
    about: "Two groups with a CPU quota: refill them together, or half a period apart",
    text: include_str!("phase/report.txt"),
    needs: &["workload.hz", "workload.work_s"],
    cells: model::cells,
    sim: simulate,
    live: live::run,
    checks: &[doctor::THROTTLED, doctor::QUOTAS, doctor::ALIGNED],
};

fn simulate(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "phase")?;
    let spec = sim::machine(request, "power10-core", STUDY.needs)?;
    let mut result = sim::begin("phase", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec))?;
    if request.machine.is_none() {
        let later = machines::find("power10-later")?;
        sim::add(&mut result, request, model::second_source(&later, model::SIDES))?;
    }
    plot_offsets(&mut result);
    plot_period(&mut result, &spec).map_err(sim::no_memory)?;
    sim::add_sensitivity(&mut result, request, &spec, model::refit, model::cells);
    result.explained(request, STUDY.text, &[])
}

fn plot_offsets(result: &mut StudyResult) {
    let line = |figure: &str| {
        let names = format!("together.*ms.{figure}");
        let mut line = result.line((figure, Side::After), &result.cells, &names, 1.0);
        let aligned = result.cell(&format!("together.aligned.{figure}"));
        line.points.splice(0..0, aligned.map(|cell| [0.0, cell.value]));
        line.published.splice(0..0, aligned.and_then(|cell| Some([0.0, cell.published?])));
        vec![line]
    };
    let (seconds, joules) = (line("seconds"), line("joules"));
    let axes = |unit| [Axis::linear("refills are so far apart, ms"), Axis::linear(unit)];
    let title = "Completion time of two groups, by how far apart they are refilled";
    result.curve("seconds", title, axes("completion, s"), seconds);
    let title = "Energy of the same work (the watts are assumed)";
    result.curve("joules", title, axes("energy, J"), joules);
}

fn plot_period(result: &mut StudyResult, spec: &Spec) -> io::Result<()> {
    let mut lanes = Vec::new();
    let period_ns = GroupPlan::published(Phase::Aligned).period.0;
    for (name, side, phase) in
        [("aligned", Side::Before, Phase::Aligned), ("spread", Side::After, Phase::Spread)]
    {
        let groups = model::run(spec, &model::pair(phase))?.windows;
        let origin_ns = groups.first().map_or(0, |group| group.first_refill.0);
        for (number, group) in groups.iter().enumerate() {
            let windows = merged(group.ran.iter().map(|(from, to)| (from.0, to.0)).collect());
            let name = format!("{name}, {}", number + 1);
            let places = [origin_ns, group.first_refill.0];
            lanes.push(Lane::folded(name, side, &windows, places, period_ns));
        }
    }
    let shape = Shape::Strip { period_ms: period_ns as f64 / 1e6, lanes };
    let title = "When each group runs in a period, and when it is refilled";
    result.plots.push(Plot::new("strip", title, shape));
    Ok(())
}
