//! The simulated run of the study `phase`: its figures, plots, answers and notes.

use super::STUDY;
use super::model::{self, GroupPlan};
use crate::progress::Progress;
use crate::studies::plot::{Axis, Lane, Line, Plot, Shape, Side, merged};
use crate::studies::sim::{self, SEED_UNUSED, shown, with_published};
use crate::studies::{Request, StudyResult};
use crate::{LabError, machines};
use std::io;
use tickless_core::phase::Phase;
use tickless_machine::spec::Spec;

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
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
    answers(&mut result);
    sim::add_sensitivity(&mut result, request, &spec, model::refit, model::cells);
    result.notes.push(
        "The thread does not name its runs' offsets. 30, 0 and 50 ms are those multiples of 10 ms \
         that fit its 131, 155 and 121 s."
            .to_string(),
    );
    result.notes.push(SEED_UNUSED.to_string());
    Ok(result)
}

/// Plots time and energy over the time between the refills of two groups.
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

/// Plots when in a period each of two groups runs.
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

fn answers(result: &mut StudyResult) {
    let of = |id: &str| shown(result, id);
    let power = format!(
        "Apart takes less energy at more power: {} s and {} J together, {} s and {} J 50 ms apart, \
         since half of what a core draws does not depend on its work. Of a later version +15 % \
         power and -7 to -18 % energy were reported; simulated for that machine it is {} W and {} \
         J apart. What it costs is wakeups: one for each group in a period instead of one for all.",
        of("together.aligned.seconds"),
        of("together.aligned.joules"),
        of("together.50ms.seconds"),
        of("together.50ms.joules"),
        of("later.apart.watts"),
        of("later.apart.joules"),
    );
    let busy = format!(
        "Yes, once workers hardly wait: half a period apart is {} times as fast at 10 %, {} at 25, \
         {} at 50, {} at 75 and {} at 100 % of the time for each worker.",
        of("gain.10_percent"),
        of("gain.25_percent"),
        of("gain.50_percent"),
        of("gain.75_percent"),
        of("gain.100_percent"),
    );
    let where_to = format!(
        "Where the first expiry falls decides, so it should not be left to chance: with four \
         groups aligned takes {} s, random {}, spread {}. Groups of 97 and 103 ms drift past each \
         other, {} s.",
        of("four_groups.aligned.seconds"),
        of("four_groups.random.seconds"),
        of("four_groups.spread.seconds"),
        of("together.97_and_103ms.seconds"),
    );
    result.answer("Performance against power: what do both numbers say?", power);
    result.answer("Is there no benefit and no loss at high utilisation?", busy);
    result.answer(
        "Why did one of three runs gain nothing, and where should the phase be set?",
        where_to,
    );
}
