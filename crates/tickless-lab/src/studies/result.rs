//! The result of a study.

use super::{Cell, Plot, Request, World};
use crate::measure;
use crate::text::figure;
use serde::Serialize;

/// The result of a study. Serialises to the JSON that is documented in `docs/book/src/studies.md`.
#[derive(Clone, Debug, Serialize)]
pub struct StudyResult {
    /// The study's name.
    pub study: &'static str,
    /// Whether it was simulated or measured live.
    pub world: World,
    /// The machine.
    pub machine: String,
    /// The seed.
    pub seed: u64,
    /// The figures.
    pub cells: Vec<Cell>,
    /// Answers to the open questions of the published report.
    pub answers: Vec<Answer>,
    /// Notes on the method and on disturbances.
    pub notes: Vec<String>,
    /// Plots.
    pub plots: Vec<Plot>,
    /// Tables that show the figures of `cells` in another form.
    #[serde(skip)]
    pub exhibits: Vec<Exhibit>,
}

/// A question that the published report left open, with the answer that a run gives.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// The answer of this run.
    pub answer: String,
}

/// A table that a study shows in addition to its list of figures, such as one in the form of a
/// published table. The first column is text, the others are numbers.
#[derive(Clone, Debug)]
pub struct Exhibit {
    /// The title.
    pub title: String,
    /// The columns' names.
    pub header: Vec<String>,
    /// The rows, with an entry for each column.
    pub rows: Vec<Vec<String>>,
}

impl Exhibit {
    /// Makes a table with these columns.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        header: impl IntoIterator<Item = T>,
        rows: Vec<Vec<String>>,
    ) -> Exhibit {
        let header = header.into_iter().map(Into::into).collect();
        Exhibit { title: title.into(), header, rows }
    }
}

impl StudyResult {
    /// Makes an empty result for a request. The study adds its figures to it.
    pub fn new(study: &'static str, request: &Request, machine: impl Into<String>) -> StudyResult {
        StudyResult {
            study,
            world: request.world,
            machine: machine.into(),
            seed: request.seed,
            cells: Vec::new(),
            answers: Vec::new(),
            notes: Vec::new(),
            plots: Vec::new(),
            exhibits: Vec::new(),
        }
    }

    /// Makes an empty result for a run on this machine, with a note if other work disturbs the run.
    pub fn live(study: &'static str, request: &Request) -> StudyResult {
        let notes = measure::disturbance().into_iter().collect();
        StudyResult { notes, ..StudyResult::new(study, request, measure::machine()) }
    }

    /// Returns the cell of this name.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// Returns the value of the figure with this name, or not-a-number if there is none.
    pub fn value(&self, id: &str) -> f64 {
        value(&self.cells, id)
    }

    /// Returns the value of the figure with this name as text, or a dash if there is none.
    pub fn figure(&self, id: &str) -> String {
        figure(self.value(id))
    }

    /// Returns the figures that lie outside the range in which they should lie.
    pub fn outside(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.inside == Some(false))
    }

    /// Adds a question that the published report left open, with the answer that this run gives.
    pub fn answer(&mut self, question: impl Into<String>, answer: impl Into<String>) {
        self.answers.push(Answer { question: question.into(), answer: answer.into() });
    }
}

/// Returns the value of the figure with this name, or not-a-number if there is none.
pub fn value(cells: &[Cell], id: &str) -> f64 {
    cells.iter().find(|cell| cell.id == id).map_or(f64::NAN, |cell| cell.value)
}
