//! The study of combined reads on this machine: threads read a slow counter, either each by itself
//! (*direct*), or such that one thread's read serves all that wait (*combined*). One thread reads,
//! then two, up to twice the number of CPUs.
//!
//! It measures two devices. One is emulated: it serves one read at a time, as the published counter
//! does, and is labelled as emulated wherever it appears. The other is a real device of this host.

use super::STUDY;
use super::device::{self, EMULATED_READ_NS, Slow};
use super::readers::{Plan, Taken};
use crate::error::LabError;
use crate::measure::{self, Spread, interleave};
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::{Axis, Side};
use crate::studies::request::Request;
use crate::studies::result::{self as columns, Column, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::clock::ClockSource;
use tickless_core::clock::combined::ReadPolicy;

const POLICIES: [(&str, ReadPolicy); 2] =
    [("direct", ReadPolicy::Direct), ("combined", ReadPolicy::Combined)];

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let mut study = StudyResult::live("clock", request);
    let (real, no_ptp) = device::real();
    let clock = device::clock()?;
    let emulated = device::emulated(&clock);
    study.notes.extend(no_ptp.map(|why| format!("no PTP clock to read: {why}")));
    let cpus = measure::cpus();
    let threads = threads(request, cpus.len());
    let turns = request.effort.turns(2, 7, 15);
    let duration = Duration::from_millis(request.effort.pick(10, 150, 1_000));
    for device in [&emulated, &real] {
        let variants = threads.len() * POLICIES.len();
        let taken = interleave("reading", variants, turns, progress, |way| {
            let policy = POLICIES[way % 2].1;
            let threads = threads[way / 2];
            let plan = Plan { policy, threads, duration, cpus: &cpus, clock: &clock };
            let counter = (device.open)().map_err(LabError::other(
                "the slow counter could not be opened again; try again",
            ))?;
            plan.read(counter)
        })?;
        for (pair, &threads) in taken.chunks(POLICIES.len()).zip(&threads) {
            for ((name, _), taken) in POLICIES.iter().zip(pair) {
                cells(&mut study, device, threads, name, taken);
            }
            gain(&mut study, device, threads, cpus.len(), pair);
        }
        plot(&mut study, device);
    }
    let source = match clock.clock_source() {
        ClockSource::Tsc => "the TSC",
        _ => "CLOCK_MONOTONIC",
    };
    let mut words = vec![
        ("ms", duration.as_millis().to_string()),
        ("turns", turns.to_string()),
        ("emulated", EMULATED_READ_NS.to_string()),
        ("source", source.to_string()),
    ];
    words.extend(gains(&study, &real).map(|gains| ("gains", gains)));
    study.explained(request, STUDY.text, &words)
}

fn threads(request: &Request, cpus: usize) -> Vec<usize> {
    match &request.cpus {
        Some(list) => list.iter().map(|&threads| threads as usize).collect(),
        None => (1..=2 * cpus).collect(),
    }
}

const COLUMNS: [Column<Taken>; 5] = [
    ("reads_per_s", "reads/s", Taken::reads_per_s),
    ("device_reads_per_read", "device reads", Taken::device_reads_per_read),
    ("p50_ns", "ns", |taken| taken.latency.value_at_quantile(0.5) as f64),
    ("p99_ns", "ns", |taken| taken.latency.value_at_quantile(0.99) as f64),
    ("fairness", "least/most", Taken::fairness),
];

fn cells(study: &mut StudyResult, device: &Slow, threads: usize, policy: &str, taken: &[Taken]) {
    let id = format!("{}.{threads}t.{policy}", device.id);
    study.cells.extend(columns::cells(&id, &COLUMNS, taken));
    if let Some(cell) = study.cells.iter_mut().rfind(|cell| cell.id.ends_with("per_read")) {
        // A direct read takes exactly one device read. A combined read takes at most one, except
        // for a reader that lost its turn to another thread and read the device in vain.
        let band = if policy == "direct" { Band::between(1.0, 1.0) } else { Band::at_most(1.1) };
        *cell = cell.clone().within(band);
    }
    let backwards = taken.iter().map(|taken| taken.backwards).sum::<u64>() as f64;
    let cell = Cell::live(format!("{id}.backwards"), "reads", backwards);
    // Only the emulated device guarantees that its values never decrease.
    let is_ours = device.id == "emulated";
    study.cells.push(cell.within(is_ours.then_some(Band::at_most(0.0))));
}

/// Adds the gain from combining: the reads per second with combining divided by those without it,
/// one ratio for each turn. For one thread, adds the inverse ratio, which is the cost of combining.
fn gain(study: &mut StudyResult, device: &Slow, threads: usize, cpus: usize, pair: &[Vec<Taken>]) {
    let ratio = |above: usize, below: usize| {
        Spread::of_ratios(&pair[above], &pair[below], Taken::reads_per_s)
    };
    let id = |what: &str| format!("{}.{threads}t.{what}", device.id);
    if threads == 1 {
        let cell = Cell::live(id("cost_alone"), "x", ratio(0, 1));
        study.cells.push(cell.within(Band::at_most(1.25)));
        return;
    }
    let cell = Cell::live(id("gain"), "x", ratio(1, 0));
    // If a device read serves both readers, combining doubles the reads per second, less the cost
    // of passing the value from CPU to CPU.
    let is_target = device.id == "emulated" && threads == 2 && cpus >= 2;
    study.cells.push(cell.within(is_target.then_some(Band::at_least(1.7))));
}

fn plot(study: &mut StudyResult, device: &Slow) {
    let line = |(policy, side)| {
        let names = format!("{}.*t.{policy}.reads_per_s", device.id);
        study.line((policy, side), &study.cells, &names, 1e6)
    };
    let lines = [("direct", Side::Before), ("combined", Side::After)].map(line).to_vec();
    let axes = [Axis::linear("threads"), Axis::linear("million values per s")];
    let title = format!("Values from {}", device.name);
    let id = if device.id == "emulated" { "emulated" } else { "real" };
    study.curve(id, title, axes, lines);
}

/// Returns a text on how much faster two readers are with combining; `None` if not measured.
fn gains(study: &StudyResult, real: &Slow) -> Option<String> {
    let gain = |id: &str| {
        let gain = study.cell(&format!("{id}.2t.gain"))?.value;
        Some(format!("{} times the reads per second on {id}", figure(gain)))
    };
    let gains: Vec<String> = ["emulated", real.id].into_iter().filter_map(gain).collect();
    (!gains.is_empty()).then(|| gains.join(", "))
}
