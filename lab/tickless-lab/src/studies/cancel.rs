//! The study `cancel`: a cancel that waits for the timer's callback checks one base instead of all.

mod calls;
mod doctor;
mod live;
pub mod model;

use crate::effort::Effort;
use crate::error::LabError;
use crate::machines;
use crate::progress::Progress;
use crate::studies::cell::{Cell, Role};
use crate::studies::plot::{Axis, Side};
use crate::studies::request::Request;
use crate::studies::result::{StudyResult, value};
use crate::studies::sim;
use crate::studies::study::Study;
use crate::text::grouped;

pub const STUDY: Study = Study {
    name: "cancel",
    about: "A cancel that waits: look at every base, or at one",
    text: include_str!("cancel/report.txt"),
    needs: &["workload.hz", "workload.timers_per_tick", "workload.timer_work_ns"],
    cells: model::cells_of,
    sim: simulate,
    live: live::run,
    checks: &[doctor::CANCELS],
};

fn simulate(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let big = sim::machine(request, "itanium2-32p", STUDY.needs)?;
    let small = sim::machine(request, "itanium2-4p", STUDY.needs)?;
    let specs = if small == big { vec![&big] } else { vec![&big, &small] };
    let mut result = sim::begin("cancel", request, progress, &specs);
    let mut words = Vec::new();
    match (sim::points(request, &big)?, &request.machine) {
        (Some(cpus), _) => sim::add(&mut result, request, model::curve(&big, &cpus))?,
        (None, Some(_)) => sim::add(&mut result, request, model::cells_of(&big))?,
        (None, None) => {
            let cells = model::cells(&big, &small, model::SIDES, model::Caches::Cold);
            sim::add(&mut result, request, cells)?;
            let later = ["itanium2-32w-2005", "itanium2-4w-2005"].map(machines::find);
            let [big_2005, small_2005] = later;
            sim::add(&mut result, request, model::second_source(&big_2005?, &small_2005?))?;
            let cpus = curve_cpus(request.effort);
            let curve = model::curve(&big, cpus).map_err(sim::no_memory)?;
            plot(&mut result, &curve);
            let most = cpus.last().copied().unwrap_or_default();
            let end = |name| grouped(value(&curve, &format!("{most}p.{name}.warm")));
            words.push(("most", most.to_string()));
            words.extend([("most before", end("before")), ("most after", end("after"))]);
        }
    }
    // Analyse the sensitivity to parameters for each machine separately, because the parameters of
    // one machine do not affect the figures of the other.
    let is_set = |id: &str| result.cell(id).is_some_and(|cell| cell.role == Role::Calibrated);
    let set = ["32p.before.warm", "4p.after.warm"].map(|id| (id, is_set(id)));
    for spec in specs {
        let refit = |spec: &_| model::refit(spec, &small);
        sim::add_sensitivity(&mut result, request, spec, refit, |spec| {
            let mut cells = model::cells_of(spec)?;
            cells.retain(|cell| !set.contains(&(cell.id.as_str(), true)));
            Ok(cells)
        });
    }
    result.explained(request, STUDY.text, &words)
}

fn curve_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[2, 4, 8, 16, 32, 64, 128, 256, 512];
    effort.pick(&[2, 4, 8, 16, 32, 64, 128], ALL, ALL)
}

fn plot(result: &mut StudyResult, curve: &[Cell]) {
    let line = |(name, side)| result.line((name, side), curve, &format!("*p.{name}.warm"), 1.0);
    let lines = [("before", Side::Before), ("after", Side::After)].map(line).to_vec();
    let axes = [Axis::log("CPUs or bases"), Axis::log("cycles per call")];
    result.curve("cost", "A warm cancel that waits, over the number of CPUs", axes, lines);
}
