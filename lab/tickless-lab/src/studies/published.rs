//! Describes a published report, which is the text that introduced a mechanism with measurements:
//! its question, its most important figure, and its tables, which show our figures next to the
//! published ones.
//! The study's text (`report_text.rs`) has all of it.

use super::report_text::{part, parts};
use crate::studies::cell::Cell;
use crate::studies::result::StudyResult;
use crate::text::field;

/// In each pair, the first entry is without the mechanism and the second is with it. The figures
/// are the ones that show best what the mechanism changes.
#[derive(Debug)]
pub struct PublishedReport {
    pub mechanism: &'static str,
    pub source: &'static str,
    pub machine: &'static str,
    pub asked: &'static str,
    /// The names of the two compared settings.
    pub sides: [&'static str; 2],
    pub unit: &'static str,
    pub figures: Option<[f64; 2]>,
    /// The names of the two figures in the result of the simulated study.
    pub simulated: [&'static str; 2],
    pub live_unit: &'static str,
    /// The names of the two figures in the result of the live study, which measures on this
    /// machine. `*` is replaced by this machine's number of CPUs.
    pub live: [&'static str; 2],
    pub plots: [&'static str; 2],
    text: &'static str,
}

#[derive(Clone, Copy)]
pub struct Results<'a> {
    pub sim: Option<&'a StudyResult>,
    pub live: Option<&'a StudyResult>,
    pub cpus: usize,
}

/// A table of the published report: each row has a label and the texts of its entries.
pub struct Table {
    pub caption: &'static str,
    pub groups: Vec<(&'static str, Vec<&'static str>)>,
    pub rows: Vec<(&'static str, Vec<&'static str>)>,
}

pub enum Entry<'a> {
    Nothing,
    Published(&'static str),
    Ours(&'a Cell),
    Word(&'static str),
}

impl PublishedReport {
    /// Reads the part `published` of a study's text.
    pub fn of(text: &'static str) -> PublishedReport {
        let of = |key| field(part(text, "published"), key);
        let pair = |key| of(key).split_once(" | ").map(<[_; 2]>::from).unwrap_or_default();
        let [before, after] = pair("figures").map(|figure| figure.parse().ok());
        PublishedReport {
            mechanism: of("mechanism"),
            source: of("source"),
            machine: of("machine"),
            asked: of("asked"),
            sides: pair("sides"),
            unit: of("unit"),
            figures: before.zip(after).map(<[f64; 2]>::from),
            simulated: pair("simulated"),
            live_unit: of("live unit"),
            live: pair("live"),
            plots: pair("plots"),
            text,
        }
    }

    pub fn tables(&self) -> impl Iterator<Item = Table> {
        parts(part(self.text, "tables"), "\n## ").map(|(caption, lines)| {
            let lines = lines.lines().filter(|line| line.contains('|'));
            let mut lines = lines.map(|line| {
                let mut cells = line.split('|').map(str::trim);
                (cells.next().unwrap_or_default(), cells.collect::<Vec<_>>())
            });
            let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
            for heading in lines.next().unwrap_or_default().1 {
                match (heading.split_once(": "), groups.last_mut()) {
                    (Some((name, first)), _) => groups.push((name, vec![first])),
                    (None, Some((_, columns))) => columns.push(heading),
                    (None, None) => {}
                }
            }
            Table { caption, groups, rows: lines.collect() }
        })
    }
}

impl<'a> Results<'a> {
    /// Returns what a table's entry shows: our figure that `text` names, or `text` itself.
    pub fn entry(&self, text: &'static str) -> Entry<'a> {
        let ours = |study: Option<&'a StudyResult>, id: &str| {
            study.and_then(|study| study.cell(id)).map_or(Entry::Nothing, Entry::Ours)
        };
        match text.split_once(' ').unwrap_or((text, "")) {
            ("", _) => Entry::Nothing,
            ("sim", id) => ours(self.sim, id),
            ("live", id) => ours(self.live, &self.here(id)),
            ("word", word) => Entry::Word(word),
            _ => Entry::Published(text),
        }
    }

    pub fn here(&self, id: &str) -> String {
        id.replace('*', &self.cpus.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::Entry::{Nothing, Ours};
    use super::*;
    use crate::effort::Effort;
    use crate::progress::Hidden;
    use crate::studies::{Request, STUDIES, World};
    use std::sync::OnceLock;

    fn simulated() -> &'static [StudyResult] {
        static DONE: OnceLock<Vec<StudyResult>> = OnceLock::new();
        let (world, effort) = (World::Sim, Effort::Quick);
        let request = Request::new(world, effort, 0);
        let run = || STUDIES.iter().map(|study| study.run(&request, &Hidden).unwrap());
        DONE.get_or_init(|| run().collect())
    }

    /// Goal: every row of a published table has an entry for each column, every simulated figure
    /// that a headline names exists, each study's tables show at least four of our figures, and
    /// every published figure has ours beside it.
    #[test]
    fn tables_are_whole() {
        for (study, sim) in STUDIES.iter().zip(simulated()) {
            let report = study.published();
            let PublishedReport { source, machine, asked, live_unit, live, sides, .. } = report;
            let texts = [source, machine, asked, live_unit, live[0], live[1], sides[0], sides[1]];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}: {report:?}", study.name);
            let results = Results { sim: Some(sim), live: None, cpus: 2 };
            for id in report.simulated {
                assert!(sim.cell(id).is_some(), "{}: {id}", study.name);
            }
            let mut ours = Vec::new();
            for table in report.tables() {
                let columns: usize = table.groups.iter().map(|(_, columns)| columns.len()).sum();
                for (label, entries) in table.rows {
                    assert_eq!(entries.len(), columns, "{}: {label}", study.name);
                    ours.extend(entries.into_iter().filter_map(|text| match results.entry(text) {
                        Ours(cell) => Some(cell.id.as_str()),
                        Nothing if text.starts_with("sim ") => panic!("{}: {text}", study.name),
                        _ => None,
                    }));
                }
            }
            assert!(ours.len() >= 4, "{} has only {ours:?} of our figures", study.name);
            for cell in sim.cells.iter().filter(|cell| cell.published.is_some()) {
                assert!(ours.contains(&cell.id.as_str()), "{}: {}", study.name, cell.id);
            }
        }
    }
}
