//! The five mechanisms: what the published report on each asked, its table, and ours beside it.
//!
//! A table here has the rows and columns that the published report's table had. Each of its entries
//! is either published, on the machine of that report, or ours, with its role.
//!
//! | file | mechanism |
//! |---|---|
//! | `rearm` | removing a timer does not program the event device |
//! | `clock` | one reads a slow shared counter for all |
//! | `cancel` | a cancel that waits looks at one base |
//! | `deferred` | the expiry thread is woken when something expired |
//! | `phase` | refills of bandwidth groups, together or apart |

use super::{Cell, Study, cancel, clock, deferred, phase, rearm};

/// A mechanism, and what was published about it.
pub struct Mechanism {
    /// The study's name.
    pub study: &'static str,
    /// The mechanism, in a line.
    pub mechanism: &'static str,
    /// Where it can be found.
    pub source: &'static str,
    /// What it was measured on.
    pub machine: &'static str,
    /// What it asked.
    pub asked: &'static str,
    /// What the two sides of its switch are called.
    pub sides: [&'static str; 2],
    /// The figure that stands for it.
    pub headline: Headline,
    /// The plots that show its point, by name.
    pub plots: [&'static str; 2],
    /// Its tables, with ours.
    pub tables: fn(&Results<'_>) -> Vec<Table>,
}

/// One figure of a mechanism, before and after.
pub struct Headline {
    /// What was published is counted in, and what is simulated.
    pub unit: &'static str,
    /// What was reported, if it was.
    pub published: Option<[f64; 2]>,
    /// The cells of the simulated study.
    pub simulated: [&'static str; 2],
    /// What is measured live is counted in: it may be something else.
    pub live_unit: &'static str,
    /// The cells of the live study; `*` stands for the number of CPUs here.
    pub live: [&'static str; 2],
}

/// The mechanisms in the order of the report.
pub const MECHANISMS: [Mechanism; 5] = [
    rearm::published::MECHANISM,
    clock::published::MECHANISM,
    cancel::published::MECHANISM,
    deferred::published::MECHANISM,
    phase::published::MECHANISM,
];

/// What there is of a study.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// Simulated.
    pub sim: Option<&'a Study>,
    /// Measured here.
    pub live: Option<&'a Study>,
    /// How many CPUs there are here.
    pub cpus: usize,
}

/// A table in the form of a published one.
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The columns, in groups.
    pub groups: Vec<Group>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// Columns that belong together.
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// Their names.
    pub columns: Vec<&'static str>,
}

/// A row.
pub struct Row {
    /// What it is.
    pub label: String,
    /// As many as there are columns.
    pub entries: Vec<Entry>,
}

/// What stands in a table.
pub enum Entry {
    /// Neither published nor measured.
    Nothing,
    /// The published one.
    Published(String),
    /// Ours.
    Ours(Box<Cell>),
    /// Words about ours.
    Word(&'static str),
}

/// The names of columns.
pub const PUBLISHED: &str = "published";
pub const SIMULATED: &str = "simulated";
pub const LIVE: &str = "live";

impl Mechanism {
    /// That of this study.
    pub fn of(study: &str) -> Option<&'static Mechanism> {
        MECHANISMS.iter().find(|mechanism| mechanism.study == study)
    }
}

impl Results<'_> {
    /// A simulated figure.
    pub fn sim(&self, id: &str) -> Entry {
        entry(self.sim, id)
    }

    /// A live figure; `*` stands for the number of CPUs here.
    pub fn live(&self, id: &str) -> Entry {
        entry(self.live, &self.here(id))
    }

    /// The name of a live cell.
    pub fn here(&self, id: &str) -> String {
        id.replace('*', &self.cpus.to_string())
    }
}

fn entry(study: Option<&Study>, id: &str) -> Entry {
    match study.and_then(|study| study.cell(id)) {
        Some(cell) => Entry::Ours(Box::new(cell.clone())),
        None => Entry::Nothing,
    }
}

pub fn published(what: impl Into<String>) -> Entry {
    Entry::Published(what.into())
}

pub fn group(name: impl Into<String>, columns: &[&'static str]) -> Group {
    Group { name: name.into(), columns: columns.to_vec() }
}

pub fn row(label: impl Into<String>, entries: impl IntoIterator<Item = Entry>) -> Row {
    Row { label: label.into(), entries: entries.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Hidden;
    use crate::studies::{Effort, OFFERS, Request, World};
    use std::sync::OnceLock;

    /// All simulated studies, in the order of the offers.
    fn simulated() -> &'static [Study] {
        static DONE: OnceLock<Vec<Study>> = OnceLock::new();
        let (world, effort) = (World::Sim, Effort::Quick);
        let request = Request::new(world, effort, 0);
        let run = || OFFERS.iter().map(|offer| offer.run(&request, &Hidden).unwrap());
        DONE.get_or_init(|| run().collect())
    }

    /// Goal: every study has its mechanism; every row has an entry for each column; and every
    /// simulated cell that a table or a headline names exists.
    #[test]
    fn tables_are_whole() {
        for (offer, sim) in OFFERS.iter().zip(simulated()) {
            let mechanism = Mechanism::of(offer.name).unwrap();
            let results = Results { sim: Some(sim), live: None, cpus: 2 };
            for id in mechanism.headline.simulated {
                assert!(sim.cell(id).is_some(), "{}: {id}", offer.name);
            }
            let mut ours = 0;
            for table in (mechanism.tables)(&results) {
                let columns: usize = table.groups.iter().map(|group| group.columns.len()).sum();
                for row in &table.rows {
                    assert_eq!(row.entries.len(), columns, "{}: {}", offer.name, row.label);
                    ours += row.entries.iter().filter(|e| matches!(e, Entry::Ours(_))).count();
                }
            }
            assert!(ours >= 4, "{} has only {ours} of our figures", offer.name);
        }
    }

    /// Goal: every simulated cell with a published figure is in its published table: ours stands
    /// beside each of them.
    #[test]
    fn every_published_figure_has_ours_beside_it() {
        for (offer, sim) in OFFERS.iter().zip(simulated()) {
            let results = Results { sim: Some(sim), live: None, cpus: 2 };
            let tables = (Mechanism::of(offer.name).unwrap().tables)(&results);
            let entries = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.entries);
            let shown: Vec<&str> = entries
                .filter_map(|entry| match entry {
                    Entry::Ours(cell) => Some(cell.id.as_str()),
                    _ => None,
                })
                .collect();
            for cell in sim.cells.iter().filter(|cell| cell.published.is_some()) {
                assert!(shown.contains(&cell.id.as_str()), "{}: {}", offer.name, cell.id);
            }
        }
    }
}
