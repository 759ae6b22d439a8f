//! The result of a study.

use super::{Cell, Plot, Request, World};
use crate::measure::{self, Spread};
use crate::text::figure;
use serde::Serialize;
use std::iter::once;

/// The result of a study. Serialises to the JSON that is documented in `docs/book/src/studies.md`.
#[derive(Clone, Debug, Serialize)]
pub struct StudyResult {
    pub study: &'static str,
    pub world: World,
    pub machine: String,
    pub seed: u64,
    pub cells: Vec<Cell>,
    pub answers: Vec<Answer>,
    pub notes: Vec<String>,
    pub plots: Vec<Plot>,
    #[serde(skip)]
    pub exhibits: Vec<Exhibit>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
}

/// A table that a study shows in addition to its list of figures, such as one in the form of a
/// published table. The first column is text, the others are numbers.
#[derive(Clone, Debug)]
pub struct Exhibit {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Exhibit {
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

    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    pub fn value(&self, id: &str) -> f64 {
        value(&self.cells, id)
    }

    pub fn figure(&self, id: &str) -> String {
        figure(self.value(id))
    }

    pub fn outside(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.inside == Some(false))
    }

    pub fn answer(&mut self, question: impl Into<String>, answer: impl Into<String>) {
        self.answers.push(Answer { question: question.into(), answer: answer.into() });
    }
}

pub fn value(cells: &[Cell], id: &str) -> f64 {
    cells.iter().find(|cell| cell.id == id).map_or(f64::NAN, |cell| cell.value)
}

/// A figure of a measurement `T`: its name in the study's result, its heading in tables, its unit,
/// and the function that returns its value.
pub type Column<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

pub fn header<T>(columns: &[Column<T>]) -> Vec<String> {
    let headings = columns.iter().map(|(_, heading, ..)| heading.to_string());
    once(String::new()).chain(headings).collect()
}

pub fn row<T>(label: String, columns: &[Column<T>], taken: &[T]) -> Vec<String> {
    let medians = columns.iter().map(|(.., of)| figure(Spread::of(taken.iter().map(of)).median));
    once(label).chain(medians).collect()
}

/// Returns the cells for the figures that `row` shows. A figure that was not measured (its value is
/// not-a-number) has no cell.
pub fn cells<T>(prefix: &str, columns: &[Column<T>], taken: &[T]) -> Vec<Cell> {
    let cell = |(name, _, unit, of): &Column<T>| {
        let spread = Spread::of(taken.iter().map(of));
        Cell::live(format!("{prefix}.{name}"), unit, spread).in_exhibit()
    };
    columns.iter().map(cell).filter(|cell| !cell.value.is_nan()).collect()
}
