//! The simulated run of the study: its figures, plots and notes.

use super::NEEDS;
use super::model;
use crate::progress::Progress;
use crate::studies::plot::{Axis, Line, Plot, Shape, Side};
use crate::studies::sim::{self, SEED_UNUSED, with_published};
use crate::studies::{Request, StudyResult};
use crate::{LabError, machines};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "phase")?;
    let spec = sim::machine(request, "power10-core", &NEEDS)?;
    let mut result = sim::begin("phase", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec))?;
    if request.machine.is_none() {
        let later = machines::find("power10-later")?;
        sim::add(&mut result, request, model::second_source(&later, model::SIDES))?;
    }
    plot_offsets(&mut result);
    sim::add_sensitivity(&mut result, request, &spec, model::refit, model::cells);
    result.notes.push(
        "The thread does not name its runs' offsets. 30, 0 and 50 ms are those multiples of 10 ms \
         that fit its 131, 155 and 121 s."
            .to_string(),
    );
    result.notes.push(SEED_UNUSED.to_string());
    Ok(result)
}

fn plot_offsets(result: &mut StudyResult) {
    let line = |figure: &str, places: &[u16]| {
        let id = |apart: u16| match apart {
            0 => format!("together.aligned.{figure}"),
            _ => format!("together.{apart}ms.{figure}"),
        };
        let offsets = (0..=50).step_by(10);
        let points = offsets.map(|apart| [f64::from(apart), result.value(&id(apart))]);
        with_published(Line::new(figure, Side::After, points.collect()), result, id, places, 1.0)
    };
    let (seconds, joules) = (line("seconds", &[0, 30, 50]), line("joules", &[]));
    let shape = |y: &str, line| Shape::Curve {
        x: Axis::linear("refills are so far apart, ms"),
        y: Axis::linear(y),
        lines: vec![line],
    };
    let title = "Completion time of two groups, by how far apart they are refilled";
    result.plots.push(Plot::new("seconds", title, shape("completion, s", seconds)));
    let title = "Energy of the same work (the watts are assumed)";
    result.plots.push(Plot::new("joules", title, shape("energy, J", joules)));
}
