//! One result (*figure*) of one computation (*cell*) of a campaign, and the table of all results.
//!
//! All rows have the same columns, for every kind of cell. A column that does not apply to a cell
//! is empty. `docs/book/src/json.md` lists the columns with types and units.

use crate::campaign::cell::{Cell, Key};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Row {
    pub key: String,
    pub version: String,
    pub kind: String,
    pub study: Option<String>,
    pub machine: Option<String>,
    pub machine_hash: Option<String>,
    pub trace: Option<String>,
    pub cpus: Option<i64>,
    pub policy: Option<String>,
    pub clock: Option<String>,
    pub hz: Option<i64>,
    pub seed: Option<i64>,
    pub figure: Option<String>,
    pub unit: Option<String>,
    pub role: Option<String>,
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub error: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub key: Key,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub figure: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    pub unit: String,
    /// The figure's origin: `calibrated` (a number of the machine was fitted to it), `implied` (a
    /// formula gives it), `predicted` (by simulation) or `live` (without a simulated machine).
    pub role: String,
    pub value: Option<f64>,
    /// The smallest and the greatest value of several runs, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<[Option<f64>; 2]>,
}

impl Figure {
    /// Makes a figure from a single value. A value that is not finite is left empty.
    pub fn once(
        figure: impl Into<String>,
        unit: impl Into<String>,
        role: impl Into<String>,
        value: f64,
    ) -> Figure {
        let value = value.is_finite().then_some(value);
        let (figure, unit, role) = (figure.into(), unit.into(), role.into());
        Figure { figure, policy: None, unit, role, value, spread: None }
    }

    pub(crate) fn predicted(
        figure: impl Into<String>,
        unit: impl Into<String>,
        value: f64,
    ) -> Figure {
        Figure::once(figure, unit, "predicted", value)
    }

    #[must_use]
    pub fn under(mut self, policy: &str) -> Figure {
        self.policy = Some(policy.to_string());
        self
    }
}

impl Outcome {
    /// Returns the rows of a cell: one for each figure, and one with the error if it failed.
    pub fn rows(self, cell: &Cell, version: &str) -> impl Iterator<Item = Row> {
        let Cell { study, machine, machine_hash, trace, cpus, policy, clock, hz, seed, .. } =
            cell.clone();
        let of_cell = Row {
            key: self.key.to_string(),
            version: version.to_string(),
            kind: cell.kind.name().to_string(),
            study: study.map(|study| study.name().to_string()),
            machine,
            machine_hash,
            trace,
            cpus: cpus.map(i64::from),
            policy: policy.map(|policy| policy.name().to_string()),
            clock: clock.map(|clock| clock.name().to_string()),
            hz: hz.map(i64::from),
            seed: seed.map(|seed| i64::try_from(seed).unwrap_or(i64::MAX)),
            ..Row::default()
        };
        let failed = self.error.map(|error| Row { error: Some(error), ..of_cell.clone() });
        let row = move |figure: Figure| {
            let [low, high] = figure.spread.unwrap_or([figure.value; 2]);
            Row {
                policy: figure.policy.or_else(|| of_cell.policy.clone()),
                figure: Some(figure.figure),
                unit: Some(figure.unit),
                role: Some(figure.role),
                value: figure.value,
                low,
                high,
                ..of_cell.clone()
            }
        };
        self.figures.into_iter().map(row).chain(failed)
    }
}
