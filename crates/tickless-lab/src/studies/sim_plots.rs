//! What the simulated studies show as curves and bars, with the published points beside them.

use super::phase::sim::{self as phase, GroupPlan};
use super::plot::{Axis, Bar, Lane, Line, Plot, Shape, Side, merged};
use super::{Cell, Effort, Study};
use std::io;
use tickless_core::phase::Phase;
use tickless_machine::spec::Spec;

/// Where the curve of counter reads is looked at: a socket with fewer cores, or whole ones of 30
/// CPUs.
pub fn clock_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[4, 16, 30, 60, 120, 180, 240, 300, 360, 420, 480];
    effort.pick(&[4, 30, 120, 240, 480], ALL, ALL)
}

/// Where the curve of synchronous cancels is looked at.
pub fn cancel_cpus(effort: Effort) -> &'static [u16] {
    const ALL: &[u16] = &[2, 4, 8, 16, 32, 64, 128, 256, 512];
    effort.pick(&[2, 4, 8, 16, 32, 64, 128], ALL, ALL)
}

/// Device writes of each policy.
pub fn rearm(study: &mut Study) {
    let bars = [
        ("eager", "eager", Side::Before),
        ("restart-aware", "restart_aware", Side::Beside),
        ("lazy", "lazy", Side::After),
    ];
    let bars = bars.map(|(name, id, side)| Bar {
        name: name.to_string(),
        side,
        value: value(&study.cells, &format!("{id}.device_writes_per_round_trip")),
    });
    let shape = Shape::Bars { unit: "writes per round trip", bars: bars.to_vec() };
    let plot = Plot::new("writes", "Device writes per round trip", shape);
    study.plots.push(plot.in_exhibit());
}

/// The share of the time and the throughput, over the number of CPUs.
pub fn clock(study: &mut Study, cpus: &[u16], curve: &[Cell]) {
    let line = |source: &str, side, name: &str, what: &str, scale: f64| {
        let points = cpus.iter().map(|&cpus| {
            [f64::from(cpus), value(curve, &format!("{cpus}.{source}.{what}")) / scale]
        });
        let mut line = Line::new(name, side, points.collect());
        line.published = published(study, |cpus| format!("{cpus}.{source}.{what}"), &[72, 480]);
        line.published.iter_mut().for_each(|point| point[1] /= scale);
        line
    };
    let ways = [("hpet", Side::Before, "direct"), ("combined", Side::After, "combined")];
    let percent =
        ways.map(|(source, side, name)| line(source, side, name, "read_percent", 1.0)).to_vec();
    let jobs = ways.map(|(source, side, name)| line(source, side, name, "jobs_per_min", 1e6));
    let mut tsc = Line::new("TSC", Side::Beside, Vec::new());
    for cpus in [72, 480] {
        let id = format!("{cpus}.tsc.jobs_per_min");
        tsc.points.push([f64::from(cpus), value(&study.cells, &id) / 1e6]);
    }
    tsc.published = published(study, |cpus| format!("{cpus}.tsc.jobs_per_min"), &[72, 480]);
    tsc.published.iter_mut().for_each(|point| point[1] /= 1e6);
    let x_axis = || Axis::linear("CPUs");
    let (x, y) = (x_axis(), Axis::linear("% of CPU time"));
    let shape = Shape::Curve { x, y, lines: percent };
    let title = "Time in the counter's read, over the number of CPUs";
    study.plots.push(Plot::new("read_percent", title, shape));
    let (x, y) = (x_axis(), Axis::linear("million jobs per minute"));
    let shape = Shape::Curve { x, y, lines: jobs.into_iter().chain([tsc]).collect() };
    let title = "Throughput, over the number of CPUs";
    study.plots.push(Plot::new("jobs", title, shape));
}

/// The cycles of a call over the number of CPUs.
pub fn cancel(study: &mut Study, cpus: &[u16], curve: &[Cell]) {
    let line = |name: &str, side| {
        let id = |cpus: u16| format!("{cpus}p.{name}.warm");
        let points = cpus.iter().map(|&cpus| [f64::from(cpus), value(curve, &id(cpus))]);
        let mut line = Line::new(name, side, points.collect());
        line.published = published(study, id, &[4, 32]);
        line
    };
    let lines = vec![line("before", Side::Before), line("after", Side::After)];
    let (x, y) = (Axis::log("CPUs or bases"), Axis::log("cycles per call"));
    let title = "A warm cancel that waits, over the number of CPUs";
    study.plots.push(Plot::new("cost", title, Shape::Curve { x, y, lines }));
}

/// How often the expiry thread is woken.
pub fn deferred(study: &mut Study) {
    let mut bars = Vec::new();
    for hz in [1_000, 250] {
        for (name, side) in [("before", Side::Before), ("after", Side::After)] {
            let id = format!("{hz}hz.unbound.{name}.wakes_per_s");
            let name = format!("{hz} Hz, {name}");
            bars.push(Bar { name, side, value: value(&study.cells, &id) });
        }
    }
    let shape = Shape::Bars { unit: "wakes/s", bars };
    let title = "Wakes of the expiry thread, each second and CPU";
    study.plots.push(Plot::new("wakes", title, shape).in_exhibit());
}

/// Time and energy over the distance between the refills.
pub fn offsets(study: &mut Study) {
    let id = |apart: u16, what: &str| match apart {
        0 => format!("together.aligned.{what}"),
        _ => format!("together.{apart}ms.{what}"),
    };
    let points = |what: &str| -> Vec<[f64; 2]> {
        let places = (0..=50).step_by(10);
        places.map(|apart| [f64::from(apart), value(&study.cells, &id(apart, what))]).collect()
    };
    let mut seconds = Line::new("seconds", Side::After, points("seconds"));
    seconds.published = published(study, |apart| id(apart, "seconds"), &[0, 30, 50]);
    let x = || Axis::linear("refills are so far apart, ms");
    let shape = Shape::Curve { x: x(), y: Axis::linear("completion, s"), lines: vec![seconds] };
    let title = "Completion time of two groups, by how far apart they are refilled";
    study.plots.push(Plot::new("seconds", title, shape).in_exhibit());
    let joules = Line::new("joules", Side::After, points("joules"));
    let shape = Shape::Curve { x: x(), y: Axis::linear("energy, J"), lines: vec![joules] };
    let title = "Energy of the same work (the watts are assumed)";
    study.plots.push(Plot::new("joules", title, shape).in_exhibit());
}

/// When each group runs in a period, aligned and spread.
pub fn strip(study: &mut Study, spec: &Spec) -> io::Result<()> {
    let mut lanes = Vec::new();
    let period_ns = GroupPlan::published(Phase::Aligned).period.0;
    for (name, side, phase) in
        [("aligned", Side::Before, Phase::Aligned), ("spread", Side::After, Phase::Spread)]
    {
        let groups = phase::windows(spec, &phase::pair(phase))?;
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
    study.plots.push(Plot::new("strip", title, shape));
    Ok(())
}

fn value(cells: &[Cell], id: &str) -> f64 {
    cells.iter().find(|cell| cell.id == id).map_or(f64::NAN, |cell| cell.value)
}

/// What was published for these places.
fn published(study: &Study, id: impl Fn(u16) -> String, places: &[u16]) -> Vec<[f64; 2]> {
    let point = |&at: &u16| Some([f64::from(at), study.cell(&id(at))?.published?]);
    places.iter().filter_map(point).collect()
}
