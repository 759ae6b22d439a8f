//! The simulated run of the study `rearm`: its figures and plots.

use super::{STUDY, model, plot_writes};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::{Request, StudyResult, sim};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "rearm")?;
    let spec = sim::machine(request, "x5675-2s", STUDY.needs)?;
    let mut result = sim::begin("rearm", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    sim::add_sensitivity(&mut result, request, &spec, model::refit, STUDY.cells);
    plot_writes(&mut result);
    let [eager, lazy] =
        ["eager", "lazy"].map(|of| result.value(&format!("{of}.us_per_round_trip")));
    let slower = format!("{:.1} %", 100.0 * (eager / lazy - 1.0));
    result.explain(STUDY.published.text, &[("slower", slower)]);
    Ok(result)
}
