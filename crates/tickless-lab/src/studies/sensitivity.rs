//! Sensitivity: how much each predicted cell moves when an assumed number moves in its range and
//! the fitted numbers follow.

use super::result::value;
use super::{Cell, Role};
use rayon::prelude::*;
use serde::Serialize;
use tickless_machine::spec::{Origin, Spec};

/// The effect of one assumed number on one predicted cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The number's key.
    pub key: String,
    /// The cell.
    pub cell: String,
    /// The cell with the number unchanged.
    pub value: f64,
    /// The cell with the number at the lower end of its range.
    pub at_low: f64,
    /// The cell with the number at the upper end.
    pub at_high: f64,
}

impl Sensitivity {
    /// Returns the largest relative change of the cell; 0.1 is 10 %.
    pub fn moves(&self) -> f64 {
        let off =
            |value: f64| ((value - self.value) / self.value.abs().max(f64::MIN_POSITIVE)).abs();
        off(self.at_low).max(off(self.at_high))
    }
}

/// Runs a study again with each assumed number of a machine at both ends of its range, on all
/// CPUs of this one. The largest effects come first.
///
/// At each end `refit` sets the fitted numbers again, so that calibrated cells do not change and
/// the remaining change is the number's effect on the prediction. Otherwise a predicted cell would
/// change with a calibrated one, and the effect would be attributed to the wrong number.
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
