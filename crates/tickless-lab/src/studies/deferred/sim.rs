//! The simulated run of the study `deferred`: its figures and plots.

use super::{STUDY, model, plot_wakes};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::{Request, StudyResult, sim};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "deferred")?;
    let spec = sim::machine(request, "atom-e3825", STUDY.needs)?;
    let mut result = sim::begin("deferred", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    plot_wakes(&mut result, "unbound");
    // No parameter of this machine is fitted, so there is nothing to fit again.
    sim::add_sensitivity(&mut result, request, &spec, |spec| Ok(spec.clone()), STUDY.cells);
    result.explain(STUDY.published.text, &[]);
    Ok(result)
}
