//! The result of a study.

use super::plot::{Axis, Series, Shape, Side};
use super::report_text::explanations;
use crate::error::LabError;
use crate::measure::{self, Spread};
use crate::studies::cell::Cell;
use crate::studies::plot::Plot;
use crate::studies::request::{Request, World};
use crate::text::{figure, grouped};
use serde::Serialize;

/// The result of a study. Serialises to the JSON that is documented in `docs/book/src/studies.md`.
#[derive(Clone, Debug, Default, Serialize)]
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

/// A table of numbers that are not figures of the study. The first column has texts.
#[derive(Clone, Debug)]
pub struct Exhibit {
    pub title: String,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl StudyResult {
    pub fn new(study: &'static str, request: &Request, machine: impl Into<String>) -> StudyResult {
        let Request { world, seed, .. } = *request;
        StudyResult { study, world, machine: machine.into(), seed, ..StudyResult::default() }
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

    /// Makes a line of the figures in `cells` whose names match `names`, where `*` stands for a
    /// number: their x. Adds the result's published figures of such names. Divides by `scale`.
    pub fn line(
        &self,
        (name, side): (&str, Side),
        cells: &[Cell],
        names: &str,
        scale: f64,
    ) -> Series {
        let (first, last) = names.split_once('*').unwrap_or((names, ""));
        let x = |cell: &Cell| -> Option<f64> {
            cell.id.strip_prefix(first)?.strip_suffix(last)?.parse().ok()
        };
        let points = cells.iter().filter_map(|cell| Some([x(cell)?, cell.value / scale]));
        let published = |cell: &Cell| Some([x(cell)?, cell.published? / scale]);
        let mut published: Vec<[f64; 2]> = self.cells.iter().filter_map(published).collect();
        published.sort_by(|one, other| one[0].total_cmp(&other[0]));
        Series { published, ..Series::new(name, side, points.collect()) }
    }

    pub fn curve(
        &mut self,
        id: &'static str,
        title: impl Into<String>,
        [x, y]: [Axis; 2],
        lines: Vec<Series>,
    ) {
        self.plots.push(Plot::new(id, title, Shape::Curve { x, y, lines }));
    }

    /// Adds the notes and answers of the study's text. `words` has the texts that the study
    /// provides for it. A name of a missing figure is an error, unless the user chose the machine
    /// or the numbers of CPUs: then notes and answers about others are left out.
    pub fn explained(
        mut self,
        request: &Request,
        text: &str,
        words: &[(&str, String)],
    ) -> Result<StudyResult, LabError> {
        let (notes, answers) = explanations(text, self.world);
        for note in notes {
            let note = self.filled(request, &note, words)?;
            self.notes.extend(note);
        }
        for (question, answer) in answers {
            if let Some(answer) = self.filled(request, &answer, words)? {
                self.answer(question, answer);
            }
        }
        Ok(self)
    }

    /// Replaces each `{NAME}` by the word or figure of that name.
    fn filled(
        &self,
        request: &Request,
        text: &str,
        words: &[(&str, String)],
    ) -> Result<Option<String>, LabError> {
        let shown = if self.world == World::Sim { grouped } else { figure };
        let mut parts = text.split('{');
        let mut filled = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            match (words.iter().find(|(word, _)| *word == name), self.cell(name)) {
                (Some((_, text)), _) => filled += text,
                _ if name == "atomic add" => filled += &figure(measure::atomic_add_ns()),
                (None, Some(cell)) => filled += &shown(cell.value),
                _ if request.machine.is_some() || request.cpus.is_some() => return Ok(None),
                _ => return Err(LabError::Missing { study: self.study, name: name.into() }),
            }
            filled += rest;
        }
        Ok(Some(filled))
    }
}

pub fn value(cells: &[Cell], id: &str) -> f64 {
    cells.iter().find(|cell| cell.id == id).map_or(f64::NAN, |cell| cell.value)
}

/// A figure of a measurement `T`: its name in the study's result, its unit, and the function that
/// returns its value.
pub type Column<T> = (&'static str, &'static str, fn(&T) -> f64);

/// A table of figures that are named `row.column`: the last dot of a name separates the two. Each
/// element is the name of a row, and the figures of that row.
pub type Grid<'a> = Vec<(&'a str, Vec<&'a Cell>)>;

/// Splits figures into tables and single figures. A table has at least two rows, whose columns are
/// equal, and at least two columns. A row with published figures is not put into a table.
pub fn grids<'a>(cells: &[&'a Cell]) -> (Vec<Grid<'a>>, Vec<&'a Cell>) {
    let split = |cell: &'a Cell| cell.id.rsplit_once('.').unwrap_or(("", &cell.id));
    let mut rows: Grid<'a> = Vec::new();
    for &cell in cells {
        let (row, _) = split(cell);
        match rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((row, vec![cell])),
        }
    }
    let columns =
        |row: &[&'a Cell]| -> Vec<&'a str> { row.iter().map(|cell| split(cell).1).collect() };
    let mut grids: Vec<Grid<'a>> = Vec::new();
    for (name, cells) in rows {
        let of_row = columns(&cells);
        let is_published = |cells: &[&Cell]| cells.iter().any(|cell| cell.published.is_some());
        let same = |grid: &&mut Grid<'a>| {
            !is_published(&grid[0].1) && !is_published(&cells) && columns(&grid[0].1) == of_row
        };
        match grids.iter_mut().find(same) {
            Some(grid) => grid.push((name, cells)),
            None => grids.push(vec![(name, cells)]),
        }
    }
    let (grids, single): (Vec<_>, Vec<_>) =
        grids.into_iter().partition(|grid| grid.len() > 1 && grid[0].1.len() > 1);
    let single: Vec<&str> = single.iter().flatten().map(|(name, _)| *name).collect();
    let listed = cells.iter().filter(|cell| single.contains(&split(cell).0));
    (grids, listed.copied().collect())
}

/// Makes a cell of each column's figure. Leaves out figures that were not measured (not-a-number).
pub fn cells<T>(prefix: &str, columns: &[Column<T>], taken: &[T]) -> Vec<Cell> {
    let cell = |(name, unit, of): &Column<T>| {
        Cell::live(format!("{prefix}.{name}"), unit, Spread::of(taken.iter().map(of)))
    };
    columns.iter().map(cell).filter(|cell| !cell.value.is_nan()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;

    #[test]
    fn a_text_that_names_a_missing_figure_is_an_error() {
        let text = "The text.\n\n# simulated\n- all of {it}\n- {one.us} of it\n\n# live\n";
        let mut request = Request::new(World::Sim, Effort::Quick, 0);
        let notes = |request: &Request| {
            let study = StudyResult::new("a", request, "b");
            let explained = study.explained(request, text, &[("it", "two".to_string())]);
            explained.map(|study| study.notes).map_err(|error| error.to_string())
        };
        assert!(notes(&request).unwrap_err().contains("study a names one.us"));
        request.cpus = Some(vec![4]);
        assert_eq!(notes(&request).unwrap(), ["all of two"]);
    }

    /// Goal: rows with equal columns are one table. A row with other columns, with one column, or
    /// with published figures is listed.
    #[test]
    fn rows_with_equal_columns_are_a_table() {
        let ids = ["a.x", "a.y", "b.x", "b.y", "c.d.x", "c.d.y", "e.x", "f.y", "f.x", "g.x", "g.y"];
        let cell = |id: &str| Cell::live(id, "us", 1.0);
        let mut cells: Vec<Cell> = ids.map(cell).into();
        cells[10].published = Some(2.0);
        let (grids, listed) = grids(&cells.iter().collect::<Vec<_>>());
        let rows =
            |grid: &Grid<'_>| grid.iter().map(|(row, _)| row.to_string()).collect::<Vec<_>>();
        assert_eq!(grids.iter().map(rows).collect::<Vec<_>>(), [["a", "b", "c.d"]]);
        let listed: Vec<&str> = listed.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(listed, ["e.x", "f.y", "f.x", "g.x", "g.y"]);
    }
}
