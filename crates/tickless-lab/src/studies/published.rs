//! Describes a published report, which is the text that introduced a mechanism with measurements:
//! its question, its most important figure, and its tables, which show our figures next to the
//! published ones.
//!
//! A table has the rows and columns of the published table. Each entry is either a published
//! figure, from the machine of that report, or one of ours, with its origin.

use super::{Cell, StudyResult};

#[derive(Debug)]
pub struct PublishedReport {
    pub mechanism: &'static str,
    pub source: &'static str,
    pub machine: &'static str,
    pub asked: &'static str,
    /// The names of the two settings that the study compares: before the mechanism, and with it.
    pub sides: [&'static str; 2],
    pub headline: Headline,
    pub plots: [&'static str; 2],
    pub tables: fn(&Results<'_>) -> Vec<Table>,
}

/// The figure that shows best what a mechanism changes. In each pair, the first entry is without
/// the mechanism and the second is with it.
#[derive(Debug)]
pub struct Headline {
    pub unit: &'static str,
    pub published: Option<[f64; 2]>,
    pub simulated: [&'static str; 2],
    pub live_unit: &'static str,
    /// The names of the figures in the result of the study that runs on this machine instead of the
    /// simulated one. `*` is replaced by this machine's number of CPUs.
    pub live: [&'static str; 2],
}

#[derive(Clone, Copy)]
pub struct Results<'a> {
    pub sim: Option<&'a StudyResult>,
    pub live: Option<&'a StudyResult>,
    pub cpus: usize,
}

pub struct Table {
    pub caption: String,
    pub groups: Vec<Group>,
    pub rows: Vec<Row>,
}

pub struct Group {
    pub name: String,
    pub columns: Vec<&'static str>,
}

pub struct Row {
    pub label: String,
    pub entries: Vec<Entry>,
}

pub enum Entry {
    Nothing,
    Published(String),
    Ours(Box<Cell>),
    Word(&'static str),
}

pub const PUBLISHED: &str = "published";
pub const SIMULATED: &str = "simulated";
pub const LIVE: &str = "live";

impl Results<'_> {
    pub fn sim(&self, id: &str) -> Entry {
        entry(self.sim, id)
    }

    pub fn live(&self, id: &str) -> Entry {
        entry(self.live, &self.here(id))
    }

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

pub fn published(what: impl Into<String>) -> Entry {
    Entry::Published(what.into())
}

/// Makes a table from its caption, the names and columns of its groups, and its rows.
pub fn table(caption: &str, groups: &[(&str, &[&'static str])], rows: Vec<Row>) -> Table {
    let group = |(name, columns): &(&str, &[&'static str])| Group {
        name: name.to_string(),
        columns: columns.to_vec(),
    };
    Table { caption: caption.to_string(), groups: groups.iter().map(group).collect(), rows }
}

pub fn row(label: impl Into<String>, entries: impl IntoIterator<Item = Entry>) -> Row {
    Row { label: label.into(), entries: entries.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Hidden;
    use crate::studies::{Effort, Request, STUDIES, World};
    use std::sync::OnceLock;

    fn simulated() -> &'static [StudyResult] {
        static DONE: OnceLock<Vec<StudyResult>> = OnceLock::new();
        let (world, effort) = (World::Sim, Effort::Quick);
        let request = Request::new(world, effort, 0);
        let run = || STUDIES.iter().map(|study| study.run(&request, &Hidden).unwrap());
        DONE.get_or_init(|| run().collect())
    }

    /// Goal: every row of a published table has an entry for each column, every simulated figure
    /// that a headline names exists, and each study's tables show at least four of our figures.
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
