//! The simulated run of the study: its figures, plots and notes.

use super::{NEEDS, STUDY, model};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::plot::{Bar, Plot, Shape, Side};
use crate::studies::sim::{self, SEED_UNUSED};
use crate::studies::{Request, StudyResult};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "rearm")?;
    let spec = sim::machine(request, "x5675-2s", &NEEDS)?;
    let mut result = sim::begin("rearm", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    sim::add_sensitivity(&mut result, request, &spec, model::refit, STUDY.cells);
    let bar = |(name, id, side): (&str, &str, Side)| Bar {
        name: name.to_string(),
        side,
        value: result.value(&format!("{id}.device_writes_per_round_trip")),
    };
    let bars = [
        ("eager", "eager", Side::Before),
        ("restart-aware", "restart_aware", Side::Beside),
        ("lazy", "lazy", Side::After),
    ];
    let shape = Shape::Bars { unit: "writes per round trip", bars: bars.map(bar).to_vec() };
    result.plots.push(Plot::new("writes", "Device writes per round trip", shape));
    result.notes.push(
        "Half of the eager policy's eight writes per round trip are made while the other CPU \
         works, so only the others are waited for. The tasks are on two sockets, because together \
         the published ones used less than 100 % of the time."
            .to_string(),
    );
    result.notes.push(SEED_UNUSED.to_string());
    Ok(result)
}
