//! The most important figure of each mechanism, without the mechanism and with it: as published,
//! simulated and measured live.

use super::run::{Done, Part};
use crate::studies::{Role, Study, StudyResult};
use crate::text::figure;
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub study: &'static str,
    pub mechanism: &'static str,
    pub sides: [&'static str; 2],
    pub published: Option<Figures>,
    pub simulated: Option<Figures>,
    pub live: Option<Figures>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub unit: &'static str,
    /// The figure without the mechanism, and its origin: `None` if the figure was published.
    pub before: (f64, Option<Role>),
    pub after: (f64, Option<Role>),
    pub checked: usize,
    pub outside: Vec<String>,
}

impl Verdict {
    /// Makes the verdict of a study. `cpus` is the number of CPUs of this machine, which is part of
    /// the names of some live figures.
    pub fn of(done: &Done, cpus: usize) -> Option<Verdict> {
        let report = Study::named(done.study)?.published();
        let published = report.figures.map(|[before, after]| Figures {
            unit: report.unit,
            before: (before, None),
            after: (after, None),
            checked: 0,
            outside: Vec::new(),
        });
        let live = report.live.map(|id| id.replace('*', &cpus.to_string()));
        Some(Verdict {
            study: done.study,
            mechanism: report.mechanism,
            sides: report.sides,
            published,
            simulated: figures(&done.sim, report.unit, report.simulated),
            live: figures(&done.live, report.live_unit, [&live[0], &live[1]]),
        })
    }
}

fn figures(part: &Option<Part>, unit: &'static str, ids: [&str; 2]) -> Option<Figures> {
    let study: &StudyResult = part.as_ref()?.result.as_ref()?;
    let value = |id| study.cell(id).map(|cell| (cell.value, Some(cell.role)));
    let checked = study.cells.iter().filter(|cell| cell.inside.is_some());
    Some(Figures {
        unit,
        before: value(ids[0])?,
        after: value(ids[1])?,
        checked: checked.count(),
        outside: study.outside().map(|cell| cell.id.clone()).collect(),
    })
}

impl Figures {
    /// Describes how many figures lie in their bands (expected ranges). A simulated figure outside
    /// means that the prediction was wrong. A live figure outside is perhaps a fault.
    pub fn checks(&self, world: &str) -> String {
        let what =
            if world == "live" { "checks hold" } else { "predictions meet what was published" };
        format!("{} of {} {what}", self.inside(), self.checked)
    }

    pub fn inside(&self) -> usize {
        self.checked - self.outside.len().min(self.checked)
    }

    pub fn line(&self) -> String {
        format!("{} -> {}", figure(self.before.0), figure(self.after.0))
    }
}
