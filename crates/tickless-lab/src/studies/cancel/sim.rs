//! The simulated run of the study `cancel`: its figures, plots, answers and notes.

use super::{STUDY, model};
use crate::progress::Progress;
use crate::studies::plot::{Axis, Line, Plot, Shape, Side};
use crate::studies::result::value;
use crate::studies::sim::{self, shown, with_published};
use crate::studies::{Cell, Effort, Request, Role, StudyResult};
use crate::text::grouped;
use crate::{LabError, machines};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let big = sim::machine(request, "itanium2-32p", STUDY.needs)?;
    let small = sim::machine(request, "itanium2-4p", STUDY.needs)?;
    let specs = if small == big { vec![&big] } else { vec![&big, &small] };
    let mut result = sim::begin("cancel", request, progress, &specs);
    match (sim::points(&mut result, request, &big)?, &request.machine) {
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
            plot(&mut result, cpus, &curve);
            answers(&mut result);
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
    result.notes.push(
        "All CPUs do timer work, so what a base runs is in its CPU's cache and dirty. The \
         published cold cells are not consistent with each other and are not fitted."
            .to_string(),
    );
    result
        .notes
        .push("The seed draws when timers are due and how long calls are apart".to_string());
    Ok(result)
}

fn curve_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[2, 4, 8, 16, 32, 64, 128, 256, 512];
    effort.pick(&[2, 4, 8, 16, 32, 64, 128], ALL, ALL)
}

fn plot(result: &mut StudyResult, cpus: &[u16], curve: &[Cell]) {
    let line = |name: &str, side| {
        let id = |cpus: u16| format!("{cpus}p.{name}.warm");
        let points = cpus.iter().map(|&cpus| [f64::from(cpus), value(curve, &id(cpus))]);
        with_published(Line::new(name, side, points.collect()), result, id, &[4, 32], 1.0)
    };
    let lines = vec![line("before", Side::Before), line("after", Side::After)];
    let (x, y) = (Axis::log("CPUs or bases"), Axis::log("cycles per call"));
    let title = "A warm cancel that waits, over the number of CPUs";
    result.plots.push(Plot::new("cost", title, Shape::Curve { x, y, lines }));
}

fn answers(result: &mut StudyResult) {
    let end = |name: &str| {
        let plot = result.plots.iter().find(|plot| plot.id == "cost")?;
        let Shape::Curve { lines, .. } = &plot.shape else { return None };
        let line = lines.iter().find(|line| line.name == name)?;
        line.points.last().copied()
    };
    let [before, after] = ["before", "after"].map(|name| end(name).unwrap_or([f64::NAN; 2]));
    let answer = format!(
        "It grows by a remote line for each CPU: {} cycles at 32 CPUs, {} at {}. Looking at one \
         base takes {} at any number; the form for timers that do not arm themselves {}.",
        shown(result, "32p.before.warm"),
        grouped(before[1]),
        grouped(before[0]),
        grouped(after[1]),
        shown(result, "4p.single_shot.warm"),
    );
    result.answer("Why is it so bad on 16 nodes, and what would more CPUs do?", answer);
}
