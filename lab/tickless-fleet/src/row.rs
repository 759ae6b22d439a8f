//! One figure with what it was computed from: a row of the table that `tickless sweep` prints.
//!
//! All rows have the same columns. A column that does not apply is empty. `docs/book/src/json.md`
//! lists the columns with types and units.

use serde::Serialize;

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Row {
    pub version: String,
    pub study: Option<String>,
    pub machine: Option<String>,
    pub machine_hash: Option<String>,
    pub cpus: Option<i64>,
    pub policy: Option<String>,
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

#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    pub figure: String,
    pub unit: String,
    /// The figure's origin: `calibrated` (a number of the machine was fitted to it), `implied` (a
    /// formula gives it), `predicted` (by simulation) or `live` (without a simulated machine).
    pub role: String,
    pub value: Option<f64>,
    /// The smallest and the greatest value of several runs, if they differ.
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
        Figure { figure, unit, role, value, spread: None }
    }

    pub(crate) fn predicted(
        figure: impl Into<String>,
        unit: impl Into<String>,
        value: f64,
    ) -> Figure {
        Figure::once(figure, unit, "predicted", value)
    }
}

impl Row {
    /// Returns a row with these columns for each figure, or one with the error.
    pub fn rows(&self, figures: Result<Vec<Figure>, String>) -> Vec<Row> {
        let row = |figure: Figure| {
            let [low, high] = figure.spread.unwrap_or([figure.value; 2]);
            Row {
                figure: Some(figure.figure),
                unit: Some(figure.unit),
                role: Some(figure.role),
                value: figure.value,
                low,
                high,
                ..self.clone()
            }
        };
        match figures {
            Ok(figures) => figures.into_iter().map(row).collect(),
            Err(error) => vec![Row { error: Some(error), ..self.clone() }],
        }
    }
}
