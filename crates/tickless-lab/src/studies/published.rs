//! The form of a published report: its question, its headline, and its tables with our figures next
//! to the published ones.
//!
//! Such a table has the rows and columns of the published table. Each entry is either published, on
//! the machine of that report, or ours, with its role.

use super::{Cell, StudyResult};

/// A published report on a mechanism.
#[derive(Debug)]
pub struct PublishedReport {
    /// The mechanism, in a line.
    pub mechanism: &'static str,
    /// The source.
    pub source: &'static str,
    /// The machine of its measurements.
    pub machine: &'static str,
    /// Its question.
    pub asked: &'static str,
    /// The names of the two settings that the study compares: before the mechanism, and with it.
    pub sides: [&'static str; 2],
    /// Its most important figure.
    pub headline: Headline,
    /// The names of its most important plots.
    pub plots: [&'static str; 2],
    /// Its tables, with our figures.
    pub tables: fn(&Results<'_>) -> Vec<Table>,
}

/// One figure of a mechanism, before and after.
#[derive(Debug)]
pub struct Headline {
    /// The unit of the published and the simulated figures.
    pub unit: &'static str,
    /// The published figures, if there are any.
    pub published: Option<[f64; 2]>,
    /// The cells of the simulated study.
    pub simulated: [&'static str; 2],
    /// The unit of the live figures, which may differ.
    pub live_unit: &'static str,
    /// The cells of the live study; `*` is replaced by the number of CPUs of this machine.
    pub live: [&'static str; 2],
}

/// The results of a study.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// Simulated.
    pub sim: Option<&'a StudyResult>,
    /// Measured on this machine.
    pub live: Option<&'a StudyResult>,
    /// The number of CPUs of this machine.
    pub cpus: usize,
}

/// A table in the form of a published one.
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The columns, in groups.
    pub groups: Vec<Group>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// Columns that belong together.
pub struct Group {
    /// The group's name.
    pub name: String,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
}

/// A row.
pub struct Row {
    /// The label.
    pub label: String,
    /// The entries, one for each column.
    pub entries: Vec<Entry>,
}

/// An entry of a table.
pub enum Entry {
    /// An empty entry: neither published nor measured.
    Nothing,
    /// The published figure.
    Published(String),
    /// Our figure.
    Ours(Box<Cell>),
    /// A word in a row without published figures.
    Word(&'static str),
}

/// The heading of published figures.
pub const PUBLISHED: &str = "published";
/// The heading of simulated figures.
pub const SIMULATED: &str = "simulated";
/// The heading of live figures.
pub const LIVE: &str = "live";

impl Results<'_> {
    /// A simulated figure.
    pub fn sim(&self, id: &str) -> Entry {
        entry(self.sim, id)
    }

    /// A live figure; `*` is replaced by the number of CPUs of this machine.
    pub fn live(&self, id: &str) -> Entry {
        entry(self.live, &self.here(id))
    }

    /// The name of a live cell.
    pub fn here(&self, id: &str) -> String {
        id.replace('*', &self.cpus.to_string())
    }
}

fn entry(study: Option<&StudyResult>, id: &str) -> Entry {
    match study.and_then(|study| study.cell(id)) {
        Some(cell) => Entry::Ours(Box::new(cell.clone())),
        None => Entry::Nothing,
    }
}

/// A published entry.
pub fn published(what: impl Into<String>) -> Entry {
    Entry::Published(what.into())
}

/// A group of columns.
pub fn group(name: impl Into<String>, columns: &[&'static str]) -> Group {
    Group { name: name.into(), columns: columns.to_vec() }
}

/// A row.
pub fn row(label: impl Into<String>, entries: impl IntoIterator<Item = Entry>) -> Row {
    Row { label: label.into(), entries: entries.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Hidden;
    use crate::studies::{Effort, Request, STUDIES, World};
    use std::sync::OnceLock;

    /// Returns the results of all simulated studies, in the order of the studies.
    fn simulated() -> &'static [StudyResult] {
        static DONE: OnceLock<Vec<StudyResult>> = OnceLock::new();
        let (world, effort) = (World::Sim, Effort::Quick);
        let request = Request::new(world, effort, 0);
        let run = || STUDIES.iter().map(|study| study.run(&request, &Hidden).unwrap());
        DONE.get_or_init(|| run().collect())
    }

    /// Goal: every study has its mechanism; every row has an entry for each column; and every
    /// simulated cell that a table or a headline names exists.
    #[test]
    fn tables_are_whole() {
        for (study, sim) in STUDIES.iter().zip(simulated()) {
            let report = &study.published;
            let results = Results { sim: Some(sim), live: None, cpus: 2 };
            for id in report.headline.simulated {
                assert!(sim.cell(id).is_some(), "{}: {id}", study.name);
            }
            let mut ours = 0;
            for table in (report.tables)(&results) {
                let columns: usize = table.groups.iter().map(|group| group.columns.len()).sum();
                for row in &table.rows {
                    assert_eq!(row.entries.len(), columns, "{}: {}", study.name, row.label);
                    ours += row.entries.iter().filter(|e| matches!(e, Entry::Ours(_))).count();
                }
            }
            assert!(ours >= 4, "{} has only {ours} of our figures", study.name);
        }
    }

    /// Goal: the published table of a study contains every simulated cell with a published figure.
    #[test]
    fn every_published_figure_has_ours_beside_it() {
        for (study, sim) in STUDIES.iter().zip(simulated()) {
            let results = Results { sim: Some(sim), live: None, cpus: 2 };
            let tables = (study.published.tables)(&results);
            let entries = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.entries);
            let shown: Vec<&str> = entries
                .filter_map(|entry| match entry {
                    Entry::Ours(cell) => Some(cell.id.as_str()),
                    _ => None,
                })
                .collect();
            for cell in sim.cells.iter().filter(|cell| cell.published.is_some()) {
                assert!(shown.contains(&cell.id.as_str()), "{}: {}", study.name, cell.id);
            }
        }
    }
}
