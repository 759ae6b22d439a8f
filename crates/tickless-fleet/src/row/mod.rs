//! One figure of one cell, and the table of them.
//!
//! All rows have the same columns, whatever their cell is; a column that says nothing about a cell
//! is empty there. `docs/book/src/json.md` has them with types and units.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

pub use table::{Format, TableError, TableWriter};
pub(crate) use table::{persist, readable};

use crate::campaign::{Cell, Key};
use serde::{Deserialize, Serialize};

/// A row: what was worked out, and what came of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The cell, as 32 hexadecimal digits.
    pub key: String,
    /// The version of the program that worked it out.
    pub version: String,
    /// `simulate`, `replay` or `project`.
    pub kind: String,
    /// The study of a simulation.
    pub study: Option<String>,
    /// The simulated machine.
    pub machine: Option<String>,
    /// What stands in the machine's file, as a hash.
    pub machine_hash: Option<String>,
    /// The trace, by its path from the campaign's folder.
    pub trace: Option<String>,
    /// CPUs of the simulated machine.
    pub cpus: Option<i64>,
    /// `eager`, `lazy`, `restart-aware`; `recorded` for what the trace itself says.
    pub policy: Option<String>,
    /// The clock of a projection.
    pub clock: Option<String>,
    /// Ticks a second, if they were not left to the machine.
    pub hz: Option<i64>,
    /// Where randomness starts.
    pub seed: Option<i64>,
    /// What the figure is; empty in a row that only has an error.
    pub figure: Option<String>,
    /// What it is counted in.
    pub unit: Option<String>,
    /// `calibrated`, `implied`, `predicted` or `live`.
    pub role: Option<String>,
    /// The figure: the median where there were several runs.
    pub value: Option<f64>,
    /// The least of several runs.
    pub low: Option<f64>,
    /// The greatest of several runs.
    pub high: Option<f64>,
    /// Why there is no figure.
    pub error: Option<String>,
}

/// What a cell came to: its figures, or why there are none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The cell.
    pub key: Key,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Why nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub figure: String,
    /// Under which policy, where the cell has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What it is counted in.
    pub unit: String,
    /// Where it comes from.
    pub role: String,
    /// The figure; `None` for what is not a number.
    pub value: Option<f64>,
    /// The least and the greatest, where they are not the figure itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<[Option<f64>; 2]>,
}

impl Figure {
    /// One run's figure, or one that cannot differ.
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

    /// Under this policy.
    #[must_use]
    pub fn under(mut self, policy: &str) -> Figure {
        self.policy = Some(policy.to_string());
        self
    }
}

impl Outcome {
    /// The rows of a cell, in the order of its figures.
    pub fn rows(self, cell: &Cell, version: &str) -> impl Iterator<Item = Row> {
        let of_cell = Row { key: self.key.to_string(), ..Row::of_cell(cell, version) };
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

impl Row {
    /// What all rows of a cell have in common.
    fn of_cell(cell: &Cell, version: &str) -> Row {
        let common = Row { version: version.to_string(), ..Row::default() };
        let number = |seed: u64| Some(i64::try_from(seed).unwrap_or(i64::MAX));
        match cell {
            Cell::Simulate(cell) => Row {
                kind: "simulate".to_string(),
                study: Some(cell.study.clone()),
                machine: Some(cell.machine.clone()),
                machine_hash: Some(cell.machine_hash.clone()),
                cpus: Some(cell.cpus.into()),
                policy: cell.policy.clone(),
                hz: cell.hz.map(i64::from),
                seed: number(cell.seed),
                ..common
            },
            Cell::Replay(cell) => {
                Row { kind: "replay".to_string(), trace: Some(cell.trace.clone()), ..common }
            }
            Cell::Project(cell) => Row {
                kind: "project".to_string(),
                machine: Some(cell.machine.clone()),
                machine_hash: Some(cell.machine_hash.clone()),
                trace: Some(cell.trace.clone()),
                cpus: Some(cell.cpus.into()),
                policy: Some(cell.policy.clone()),
                clock: Some(cell.clock.clone()),
                seed: number(cell.seed),
                ..common
            },
        }
    }
}
