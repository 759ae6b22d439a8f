//! The study `deferred`: the thread that fires timers is woken after an expiry, not on every tick.

mod doctor;
mod live;
pub mod model;
mod scene;
mod softirqs;

use super::plot::{Bar, Plot, Shape, Side};
use super::sim;
use crate::error::LabError;
use crate::progress::Progress;
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "deferred",
    about: "The expiry thread: wake it on every tick, or when something expired",
    text: include_str!("deferred/report.txt"),
    needs: &["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: simulate,
    live: live::run,
    checks: &[doctor::SOFTIRQ, doctor::EMPTY_SOFTIRQS, doctor::IDLE_TICKS, doctor::TICK_WAKERS],
};

/// `place` is the part of the figures' names between the tick rate and the way of waking.
fn plot_wakes(study: &mut StudyResult, place: &str) {
    let mut bars = Vec::new();
    for hz in [1_000, 250] {
        for (name, side) in
            [("before", Side::Before), ("after", Side::After), ("tickless", Side::Beside)]
        {
            if let Some(cell) = study.cell(&format!("{hz}hz.{place}.{name}.wakes_per_s")) {
                bars.push(Bar { name: format!("{hz} Hz, {name}"), side, value: cell.value });
            }
        }
    }
    let title = "Wakes of the expiry thread, each second and CPU";
    study.plots.push(Plot::new("wakes", title, Shape::Bars { unit: "wakes/s", bars }));
}

fn simulate(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "deferred")?;
    let spec = sim::machine(request, "atom-e3825", STUDY.needs)?;
    let mut result = sim::begin("deferred", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    plot_wakes(&mut result, "unbound");
    // No parameter of this machine is fitted, so there is nothing to fit again.
    sim::add_sensitivity(&mut result, request, &spec, |spec| Ok(spec.clone()), STUDY.cells);
    result.explained(request, STUDY.text, &[])
}
