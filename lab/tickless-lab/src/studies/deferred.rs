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
use crate::studies::published::{Headline, PublishedReport};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use crate::studies::study::Study;

pub const STUDY: Study = Study {
    name: "deferred",
    about: "The expiry thread: wake it on every tick, or when something expired",
    published: REPORT,
    needs: &["workload.timer_work_ns", "workload.expiry_ns", "workload.tick_skew_ns"],
    cells: |spec| model::cells(spec, model::SIDES),
    sim: simulate,
    live: live::run,
    checks: &[doctor::SOFTIRQ, doctor::EMPTY_SOFTIRQS, doctor::IDLE_TICKS, doctor::TICK_WAKERS],
};

const REPORT: PublishedReport = PublishedReport {
    mechanism: "The expiry thread is woken when something expired",
    source: "H. Okanovic, \"timers: Don't wake ktimersoftd on every tick\", linux-kernel, \
             December 2016",
    machine: "NI cRIO-9033: 2 cores of an Intel Atom; Linux 4.8.6-rt5",
    asked: "A real-time kernel fired timers in a thread that every tick woke, mostly needlessly. \
            Collecting expired timers in the interrupt, and waking the thread only for them, \
            lowered the latency of cyclictest. Can collected lists be merged in constant time \
            without more memory? Can the tick count advance during the collection, the CPU stop \
            its tick, or go offline?",
    sides: ["every tick", "when expired"],
    headline: Headline {
        unit: "wakes of the thread per s and CPU, 1000 Hz",
        published: None,
        simulated: ["1000hz.unbound.before.wakes_per_s", "1000hz.unbound.after.wakes_per_s"],
        live_unit: "wakes of the thread per s and CPU, 1000 Hz",
        live: ["1000hz.idle.before.wakes_per_s", "1000hz.idle.after.wakes_per_s"],
    },
    plots: ["wakes", "late_idle"],
    text: include_str!("deferred/report.txt"),
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
    result.explained(request, STUDY.published.text, &[])
}
