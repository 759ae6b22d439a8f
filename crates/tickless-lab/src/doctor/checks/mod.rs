//! The checks of `tickless doctor`: which problem each one looks for, by which figure, with which
//! limits.
//!
//! The checks for the problem that a study's mechanism solves are in the study's folder
//! (`studies/NAME/doctor.rs`). `sleep` has the checks of how exactly threads may sleep, and how
//! exactly they do.

mod sleep;

use super::facts::Facts;
use super::finding::{Finding, Judged, Judgement, Verdict};
use crate::studies::STUDIES;
use std::borrow::Cow;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    ClockSource,
    ClockRead,
    Log,
    Counted,
    Recorded,
    Quotas,
    Slack,
    Sleeps,
}

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub about: &'static str,
    pub study: &'static str,
    pub unit: &'static str,
    pub needs: &'static [Need],
    pub(crate) judge: fn(&Facts) -> Judged<'_>,
}

/// Returns all checks: first the checks of each study, then the checks of how sleeping threads
/// wake.
pub fn checks() -> Vec<&'static Check> {
    STUDIES.iter().flat_map(|study| study.checks).chain(&sleep::CHECKS).collect()
}

impl Check {
    pub fn named(name: &str) -> Option<&'static Check> {
        checks().into_iter().find(|check| check.name == name)
    }

    /// Returns whether the check's figure is a time. Other work on the machine disturbs measured
    /// times, but not counts.
    fn is_timed(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::ClockRead | Need::Sleeps))
    }

    /// Judges the gathered facts. On a busy machine the verdict of a check that measures times is
    /// "unknown".
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
