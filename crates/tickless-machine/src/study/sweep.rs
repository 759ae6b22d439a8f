//! Sensitivity: how much each predicted cell moves when an assumed number moves in its range.

use super::{Cell, Role};
use crate::spec::{Origin, Spec};
use serde::Serialize;

/// What one assumed number does to one predicted cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The number's key.
    pub key: String,
    /// The cell.
    pub cell: String,
    /// The cell with the number as it stands.
    pub value: f64,
    /// With the number at the lower end of its range.
    pub at_low: f64,
    /// With the number at the upper end.
    pub at_high: f64,
}

impl Sensitivity {
    /// By how much of the cell it moves, at most; 0.1 is 10 %.
    pub fn moves(&self) -> f64 {
        let off =
            |value: f64| ((value - self.value) / self.value.abs().max(f64::MIN_POSITIVE)).abs();
        off(self.at_low).max(off(self.at_high))
    }
}

/// Runs a study again with each assumed number of a machine at both ends of its range. The
/// largest effects come first. Two runs of the study for each number.
pub fn sensitivity(spec: &Spec, study: impl Fn(&Spec) -> Vec<Cell>) -> Vec<Sensitivity> {
    let predicted = |spec: &Spec| -> Vec<Cell> {
        let cells = study(spec).into_iter();
        cells.filter(|cell| cell.role == Role::Predicted).collect()
    };
    let standing = predicted(spec);
    let mut found = Vec::new();
    for (key, parameter) in spec.parameters() {
        let Origin::Assumed { low, high, .. } = parameter.origin else { continue };
        if low == high {
            continue;
        }
        let (lows, highs) = (predicted(&spec.with(key, low)), predicted(&spec.with(key, high)));
        for ((cell, at_low), at_high) in standing.iter().zip(lows).zip(highs) {
            found.push(Sensitivity {
                key: key.to_string(),
                cell: cell.id.clone(),
                value: cell.value,
                at_low: at_low.value,
                at_high: at_high.value,
            });
        }
    }
    found.sort_by(|one, other| other.moves().total_cmp(&one.moves()));
    found
}
