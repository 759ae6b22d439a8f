//! Fits one parameter of a simulated machine, so that the simulation reproduces the published
//! figure of the one cell that was chosen for calibration.

use super::result::value;
use crate::studies::cell::{Cell, Role};
use rayon::prelude::*;
use serde::Serialize;
use std::io;
use tickless_machine::spec::{Origin, Spec};

/// The search ends when the simulated figure differs by at most this fraction of the published one.
const CLOSE: f64 = 0.001;
/// The number of attempts, each of which is a simulation. A few suffice, because figures grow
/// nearly linearly with the parameter that is fitted to them.
const TRIES: u32 = 8;

/// Returns the machine with the parameter `key` set so that `cell`, which simulates a figure,
/// returns `wanted` or a value as close to it as possible. `cell` must grow or fall monotonically
/// with the parameter.
pub fn fitted(
    spec: &Spec,
    key: &str,
    wanted: f64,
    cell: impl Fn(&Spec) -> io::Result<f64>,
) -> io::Result<Spec> {
    // A machine's file accepts no price (time of an operation) of zero, so the least value is
    // slightly above zero.
    const LEAST: f64 = 1e-3;
    let off = |value: f64| -> io::Result<f64> { Ok(cell(&spec.with(key, value))? - wanted) };
    let is_close = |off: f64| off.abs() <= CLOSE * wanted.abs();
    let mut last = spec.value(key).max(LEAST);
    let mut last_off = off(last)?;
    if is_close(last_off) {
        return Ok(spec.clone());
    }
    let mut best = (last_off.abs(), last);
    let mut next = last * 1.1;
    for _ in 0..TRIES {
        let next_off = off(next)?;
        if next_off.abs() < best.0 {
            best = (next_off.abs(), next);
        }
        let slope = (next_off - last_off) / (next - last);
        if is_close(next_off) || slope == 0.0 || !slope.is_finite() {
            break;
        }
        (last, last_off) = (next, next_off);
        next = (next - next_off / slope).clamp(LEAST, 10.0 * next);
        if next == last {
            break;
        }
    }
    Ok(spec.with(key, best.1))
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    pub key: String,
    pub cell: String,
    pub value: f64,
    pub at_low: f64,
    pub at_high: f64,
}

impl Sensitivity {
    /// Returns the largest relative change of the figure when the parameter goes to either end of
    /// its range. 0.1 is 10 %.
    pub fn moves(&self) -> f64 {
        let off =
            |value: f64| ((value - self.value) / self.value.abs().max(f64::MIN_POSITIVE)).abs();
        off(self.at_low).max(off(self.at_high))
    }
}

/// Runs a study again with each assumed parameter of the simulated machine at both ends of its
/// range, in parallel on the CPUs of this machine. The largest effects come first.
///
/// At each end `refit` fits the calibrated parameters again, so that the figures to which they are
/// fitted do not change, and what remains is the effect of the assumed parameter on the
/// predictions. Without this, a predicted figure would change together with the calibrated ones,
/// and the effect would be attributed to the wrong parameter.
pub fn sensitivity(
    spec: &Spec,
    refit: impl Fn(&Spec) -> Spec + Sync,
    study: impl Fn(&Spec) -> Vec<Cell> + Sync,
) -> Vec<Sensitivity> {
    let others = |spec: &Spec| -> Vec<Cell> {
        let cells = study(spec).into_iter();
        cells.filter(|cell| cell.role != Role::Calibrated).collect()
    };
    let standing = others(&refit(spec));
    let swept = |key: &str, low, high| {
        let [lows, highs] = [low, high].map(|end| others(&refit(&spec.with(key, end))));
        let effect = |cell: &Cell| Sensitivity {
            key: key.to_string(),
            cell: cell.id.clone(),
            value: cell.value,
            at_low: value(&lows, &cell.id),
            at_high: value(&highs, &cell.id),
        };
        standing.iter().map(effect).collect::<Vec<_>>()
    };
    let ranges: Vec<(&str, f64, f64)> = spec
        .parameters()
        .filter_map(|(key, parameter)| match parameter.origin {
            Origin::Assumed { low, high, .. } if low < high => Some((key, low, high)),
            _ => None,
        })
        .collect();
    let mut found: Vec<Sensitivity> =
        ranges.par_iter().flat_map_iter(|&(key, low, high)| swept(key, low, high)).collect();
    let name = |one: &Sensitivity| (one.key.clone(), one.cell.clone());
    found.sort_by(|one: &Sensitivity, other| {
        other.moves().total_cmp(&one.moves()).then_with(|| name(one).cmp(&name(other)))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_machine::machines;

    #[test]
    fn numbers_are_found() {
        let spec = machines::named("x5675-2s").unwrap().unwrap();
        let key = "workload.pipe_ns";
        let find = |wanted, cell: fn(f64) -> f64| {
            let cell = |spec: &Spec| Ok(cell(spec.value(key)));
            fitted(&spec, key, wanted, cell).unwrap().value(key)
        };
        assert!((find(5000.0, |x| 1000.0 + 4.0 * x) - 1000.0).abs() < 2.0);
        assert!((find(5000.0, |x| x * x) - 5000_f64.sqrt()).abs() < 0.1);
        assert!(find(100.0, |x| 1000.0 + 4.0 * x) <= 0.002, "nothing is the least");
    }
}
