//! Compares what the simulation predicts for this host with what is measured on it.
//!
//! First this host is measured, to find the prices (the times of single operations) of the
//! simulated machine: from operations of one CPU, and from two CPUs that pass a cache line back and
//! forth. Then other scenes, which are small timed programs, are simulated with these prices. Only
//! then are the same scenes played on the real CPUs, so that they cannot influence a prediction.

use crate::effort::Effort;
use crate::error::LabError;
use crate::machines::{measured, real};
use crate::measure::Spread;
use crate::progress::Progress;
use crate::studies::{Band, Cell, Exhibit, Request, Role, StudyResult, World};
use crate::text::figure;
use std::io;
use tickless_machine::spec::Spec;
use tickless_machine::validate::{Scene, simulate};

/// A prediction is right if it differs from the measured value by at most this percentage of it.
const BAND_PERCENT: f64 = 30.0;

pub fn run(effort: Effort, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let request = Request::new(World::Live, effort, 0);
    let cpus = measured::cpus()?;
    let mut study = StudyResult::live("validate", &request);
    let spec = measured::host(effort, progress)?;
    study.exhibits.push(prices(&spec));
    let mut parts = Scene::PREDICTED.to_vec();
    if cpus.len() > 2 {
        parts.extend(Scene::CONTENDED);
    }
    let predicted: Vec<_> =
        parts.iter().map(|&part| simulate::plays(&spec, part).map(Spread::of_runs)).collect();
    let turns = effort.pick(3, 101, 101);
    let taken = real::play("playing", &parts, &cpus, turns, progress)?;
    for ((part, predicted), taken) in parts.into_iter().zip(predicted).zip(&taken) {
        let live = middle(taken);
        let id = format!("{}.live", part.name());
        study.cells.push(Cell::live(id, "ns", live));
        match predicted {
            Ok(predicted) => study.cells.extend(compared(part, predicted, taken, live)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                study.notes.push(format!("{error}: {BUSY}"));
            }
            Err(error) => {
                let what = "memory for the simulated CPUs' stacks";
                return Err(LabError::system(what)(error));
            }
        }
    }
    study.notes.push(how(turns, &cpus));
    study.notes.push(
        "live: the median; a tenth of the plays took less than low, a tenth more than high"
            .to_string(),
    );
    study.notes.push(LIMITS.to_string());
    Ok(study)
}

const BUSY: &str = "a line costs more than the scene allows for. Prices measured while others \
    keep the CPUs busy are too high; look again when it is quiet";

const LIMITS: &str = "What this cannot validate: latencies between sockets and through node \
    controllers, a counter behind a bus (HPET), interrupts between CPUs, idle states: this host \
    shows none of them to a program";

fn how(turns: usize, cpus: &[usize]) -> String {
    let all = match cpus.len() {
        2 => "there is no third CPU to contend with".to_string(),
        count => format!("those by all on all {count}"),
    };
    format!(
        "prices were fixed before any scene was predicted or played; the fit sees ping-pongs and \
         what one CPU does by itself. The same code runs on simulated words and on real atomics, \
         {} rounds a play, {turns} plays of each scene in turn, on CPUs {} and {}; {all}",
        simulate::ROUNDS,
        cpus[0],
        cpus[cpus.len() - 1]
    )
}

/// Returns a scene's predicted time, and its ratio to the measured one with the allowed band.
fn compared(part: Scene, predicted: Spread, taken: &[f64], live: Spread) -> [Cell; 2] {
    let id = |what: &str| format!("{}.{what}", part.name());
    let ratios = taken.iter().map(|taken| predicted.median / taken);
    let median = predicted.median / live.median;
    let ratio = Spread { median, ..middle(&ratios.collect::<Vec<_>>()) };
    let off = BAND_PERCENT / 100.0;
    let ratio = Cell::new(id("predicted_over_live"), "x", Role::Predicted, ratio);
    let predicted = Cell::new(id("predicted"), "ns", Role::Predicted, predicted);
    [predicted, ratio.within(Band::between(1.0 - off, 1.0 + off))]
}

/// Returns the median and, as `low` and `high`, the 10th and the 90th percentile. The extremes are
/// ignored because on a virtual machine they come from the work of other virtual machines.
fn middle(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |tenths: usize| sorted[(sorted.len() - 1) * tenths / 10];
    if sorted.is_empty() {
        return Spread::of([]);
    }
    Spread { low: at(1), high: at(9), ..Spread::of(sorted.iter().copied()) }
}

/// Lists the parameters of the simulated host that matter most, and where each comes from.
fn prices(spec: &Spec) -> Exhibit {
    const SHOWN: [&str; 12] = [
        "line.hit_ns",
        "line.store_ns",
        "line.atomic_ns",
        "line.node_ns",
        "line.hold_ns",
        "line.request_share",
        "line.migrates",
        "line.overlap_ns",
        "cpu.section_ns",
        "cpu.pause_ns",
        "cpu.tsc_ns",
        "cpu.ghz",
    ];
    let lines = spec.parameters().filter(|(key, _)| SHOWN.contains(key)).map(|(key, parameter)| {
        let from = match &parameter.origin {
            tickless_machine::spec::Origin::Source(source) => source.clone(),
            tickless_machine::spec::Origin::Assumed { because, .. } => because.clone(),
            tickless_machine::spec::Origin::Fitted(cell) => format!("fitted to {cell}"),
        };
        vec![key.to_string(), figure(parameter.value), from]
    });
    let title = "Prices of this host, fixed first".to_string();
    Exhibit { title, header: vec!["", "value", ""], rows: lines.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_leaves_out_the_extremes() {
        let values: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!(middle(&values), Spread { median: 5.0, low: 1.0, high: 9.0, count: 11 });
        assert!(middle(&[]).median.is_nan());
    }
}
