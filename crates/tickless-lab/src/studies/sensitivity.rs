//! Sensitivity: how much each predicted figure changes when a parameter of the simulated machine
//! that is only assumed moves through its range. Parameters that were fitted to published figures
//! are fitted again each time.

use super::result::value;
use super::{Cell, Role};
use rayon::prelude::*;
use serde::Serialize;
use tickless_machine::spec::{Origin, Spec};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    pub key: String,
    pub cell: String,
    pub value: f64,
    pub at_low: f64,
    pub at_high: f64,
}

impl Sensitivity {
    /// Returns the largest relative change of the figure; 0.1 is 10 %.
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
