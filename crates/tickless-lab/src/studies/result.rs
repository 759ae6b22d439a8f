//! What a study returns.

use super::{Cell, Plot, Request, World};
use serde::Serialize;

/// The result of a study. Serialises to the JSON that is documented in `docs/book/src/studies.md`.
#[derive(Clone, Debug, Serialize)]
pub struct StudyResult {
    /// Its name.
    pub study: &'static str,
    /// Where it was measured.
    pub world: World,
    /// On what.
    pub machine: String,
    /// Where randomness started.
    pub seed: u64,
    /// The figures.
    pub cells: Vec<Cell>,
    /// Answers to the open questions of the published report.
    pub answers: Vec<Answer>,
    /// How it was measured, and what disturbed it.
    pub notes: Vec<String>,
    /// Plots.
    pub plots: Vec<Plot>,
    /// Tables beside the cells: their figures in another form.
    #[serde(skip)]
    pub exhibits: Vec<Exhibit>,
}

/// An open question of the published report, and the evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// The answer of this run.
    pub answer: String,
}

/// A table that a study shows beside its cells, such as the published one. The first column is
/// text, the others are numbers.
#[derive(Clone, Debug)]
pub struct Exhibit {
    /// What it shows.
    pub title: String,
    /// The columns' names.
    pub header: Vec<String>,
    /// As many entries each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Exhibit {
    /// A table with these columns.
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
    /// A study of this request without figures yet.
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

    /// The cell of this name.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// The cells that are not in the band where they should be.
    pub fn outside(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.inside == Some(false))
    }

    /// Adds the answer of this run to a question.
    pub fn answer(&mut self, question: impl Into<String>, answer: impl Into<String>) {
        self.answers.push(Answer { question: question.into(), answer: answer.into() });
    }
}
