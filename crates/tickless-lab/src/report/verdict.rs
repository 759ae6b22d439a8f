//! Each mechanism in one figure, before and after: published, simulated, live.

use super::run::{Done, Part};
use crate::studies::{Role, Study, StudyResult};
use crate::text::figure;
use serde::Serialize;

/// A mechanism in one figure.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Its study.
    pub study: &'static str,
    /// The mechanism, in a line.
    pub mechanism: &'static str,
    /// What the two sides of its switch are called.
    pub sides: [&'static str; 2],
    /// What was reported; null if no figure was given.
    pub published: Option<Figures>,
    /// What came out of the simulated machine; null if that was left out or failed.
    pub simulated: Option<Figures>,
    /// What was measured here; null if that was left out or failed.
    pub live: Option<Figures>,
}

/// A figure before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// What it is counted in.
    pub unit: &'static str,
    /// Before, and where it comes from; no role if it was published.
    pub before: (f64, Option<Role>),
    /// After.
    pub after: (f64, Option<Role>),
    /// How many figures of the study should lie in a band.
    pub checked: usize,
    /// The names of the figures outside their band.
    pub outside: Vec<String>,
}

impl Verdict {
    /// Of a study that has a published report.
    pub fn of(done: &Done, cpus: usize) -> Option<Verdict> {
        let mechanism = &Study::named(done.study)?.published;
        let headline = &mechanism.headline;
        let published = headline.published.map(|[before, after]| Figures {
            unit: headline.unit,
            before: (before, None),
            after: (after, None),
            checked: 0,
            outside: Vec::new(),
        });
        let live = headline.live.map(|id| id.replace('*', &cpus.to_string()));
        Some(Verdict {
            study: done.study,
            mechanism: mechanism.mechanism,
            sides: mechanism.sides,
            published,
            simulated: figures(&done.sim, headline.unit, headline.simulated),
            live: figures(&done.live, headline.live_unit, [&live[0], &live[1]]),
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
    /// How many lie in their bands, in words.
    pub fn checks(&self) -> String {
        let inside = self.checked - self.outside.len().min(self.checked);
        format!("{inside} of {} checks hold", self.checked)
    }

    /// Before and after, for a line of text.
    pub fn line(&self) -> String {
        format!("{} -> {}", figure(self.before.0), figure(self.after.0))
    }
}
