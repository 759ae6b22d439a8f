//! The checks: what is judged, by which figure, with which limits.
//!
//! The checks for a study's mechanism are in the study's folder (`studies/NAME/doctor.rs`). `sleep`
//! has the checks of how exactly threads may sleep, and do.

mod sleep;

use super::facts::Facts;
use super::finding::{Finding, Judged, Judgement, Verdict};
use crate::studies::STUDIES;
use std::borrow::Cow;

/// What has to be looked at for a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The clock that the kernel uses.
    ClockSource,
    /// What it takes to read it.
    ClockRead,
    /// The kernel's messages.
    Log,
    /// What the kernel counts.
    Counted,
    /// A recording.
    Recorded,
    /// Groups with a quota.
    Quotas,
    /// The timer slack.
    Slack,
    /// Sleeping threads.
    Sleeps,
}

/// A check.
#[derive(Debug)]
pub struct Check {
    /// As the command line and the results name it.
    pub name: &'static str,
    /// What it looks for, in a line.
    pub about: &'static str,
    /// The study that explains it.
    pub study: &'static str,
    /// What its figure is counted in.
    pub unit: &'static str,
    /// What has to be looked at.
    pub needs: &'static [Need],
    pub(crate) judge: fn(&Facts) -> Judged<'_>,
}

/// All checks: those of each study, then those of sleeping threads.
pub fn checks() -> Vec<&'static Check> {
    STUDIES.iter().flat_map(|study| study.checks).chain(&sleep::CHECKS).collect()
}

impl Check {
    /// The check of this name.
    pub fn named(name: &str) -> Option<&'static Check> {
        checks().into_iter().find(|check| check.name == name)
    }

    /// Whether its figure is a time, which other work on the machine disturbs.
    fn is_timed(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::ClockRead | Need::Sleeps))
    }

    /// Judges what was seen.
    pub fn judge(&self, facts: &Facts) -> Finding {
        let unknown = |why: Cow<'_, str>| {
            let (how, advice) = (why.into_owned(), String::new());
            Judgement { verdict: Verdict::Unknown, figure: None, how, advice }
        };
        let Judgement { mut verdict, figure, mut how, mut advice } =
            (self.judge)(facts).unwrap_or_else(unknown);
        if let Some(busy) =
            facts.busy.as_ref().filter(|_| self.is_timed() && verdict > Verdict::Unknown)
        {
            verdict = Verdict::Unknown;
            how = format!("busy: look again. {busy}. Then: {how}");
            advice.clear();
        }
        let figure = figure.filter(|figure| figure.is_finite());
        Finding {
            check: self.name,
            verdict,
            figure,
            unit: self.unit,
            how,
            advice,
            study: self.study,
        }
    }
}
