//! One result (*figure*) of one computation (*cell*) of a campaign, and the table of all results.
//!
//! All rows have the same columns, for every kind of cell. A column that does not apply to a cell
//! is empty. `docs/book/src/json.md` lists the columns with types and units.

mod table;

pub use table::{TableError, TableWriter};
pub(crate) use table::{parent, persist, temporary};

use crate::campaign::{AxisValues, Cell, Key};
use serde::{Deserialize, Serialize};

/// A row of the table: a cell, and one of its figures (results) or its error.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "parquet", derive(parquet_derive::ParquetRecordWriter))]
pub struct Row {
    /// The key of the cell's results, as 32 hexadecimal digits.
    pub key: String,
    /// The version of the program that computed the row.
    pub version: String,
    /// `simulate`, `replay` or `project`.
    pub kind: String,
    /// The study of a simulation.
    pub study: Option<String>,
    /// The simulated machine.
    pub machine: Option<String>,
    /// A hash of the numbers in the machine's file.
    pub machine_hash: Option<String>,
    /// The path of the trace, relative to the campaign's folder.
    pub trace: Option<String>,
    /// CPUs of the simulated machine.
    pub cpus: Option<i64>,
    /// The policy of a simulation or a replay; `recorded` for a figure that the trace itself
    /// recorded.
    pub policy: Option<String>,
    /// The clock of a projection.
    pub clock: Option<String>,
    /// The tick rate in Hz, if the campaign sets it.
    pub hz: Option<i64>,
    /// The seed of the random numbers.
    pub seed: Option<i64>,
    /// The figure's name; empty in a row that has an error instead.
    pub figure: Option<String>,
    /// The figure's unit.
    pub unit: Option<String>,
    /// `calibrated`, `implied`, `predicted` or `live`.
    pub role: Option<String>,
    /// The figure's value: the median if there were several runs.
    pub value: Option<f64>,
    /// The least of several runs.
    pub low: Option<f64>,
    /// The greatest of several runs.
    pub high: Option<f64>,
    /// Why there is no figure.
    pub error: Option<String>,
}

/// The result of computing a cell: its figures, or its error.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The cell.
    pub key: Key,
    /// The figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub figure: String,
    /// The policy, in a cell that covers several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Its unit.
    pub unit: String,
    /// The figure's origin: `calibrated` (a number of the machine was fitted to it), `implied`,
    /// `predicted` (by simulation) or `live` (without a simulated machine).
    pub role: String,
    /// The figure's value; `None` if it is infinite or not a number.
    pub value: Option<f64>,
    /// The smallest and the greatest value of several runs, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<[Option<f64>; 2]>,
}

impl Figure {
    /// The figure of one run.
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

    /// Makes a figure from one run on a simulated machine.
    pub(crate) fn predicted(
        figure: impl Into<String>,
        unit: impl Into<String>,
        value: f64,
    ) -> Figure {
        Figure::once(figure, unit, "predicted", value)
    }

    /// The figure under this policy.
    #[must_use]
    pub fn under(mut self, policy: &str) -> Figure {
        self.policy = Some(policy.to_string());
        self
    }
}

impl Outcome {
    /// Returns the table rows of a cell, one for each figure.
    pub fn rows(self, cell: &Cell, version: &str) -> impl Iterator<Item = Row> {
        let AxisValues { study, machine, machine_hash, trace, cpus, policy, clock, hz, seed } =
            cell.values();
        let of_cell = Row {
            key: self.key.to_string(),
            version: version.to_string(),
            kind: cell.kind().to_string(),
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
