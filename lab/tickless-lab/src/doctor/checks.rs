//! The checks of `tickless doctor`. Each check looks for one problem: it takes a figure from the
//! gathered data and compares it with two limits, one for a warning and one for the verdict "bad".
//!
//! A study compares a timer mechanism with the behaviour that it replaced. The checks for the
//! problem that the mechanism solves are in the study's folder (`studies/NAME/doctor.rs`). The
//! checks in this file are about sleeping threads: how late the kernel is allowed to wake them, and
//! whether they wake before their next deadline.

use super::facts::{Facts, Sleeps};
use crate::text::{field, time};
use serde::Serialize;
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
    Governors,
    IdleStates,
    RtLimit,
    Interrupts,
}

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub needs: &'static [Need],
    pub(crate) judge: fn(&Facts) -> Judged<'_>,
}

pub fn judge(checks: &[&Check], facts: &Facts) -> Vec<Finding> {
    checks.iter().map(|check| check.judge(facts)).collect()
}

/// The texts of all checks, in sections that begin with a check's name.
const TEXTS: &str = include_str!("checks.txt");

impl Check {
    /// Returns a text of the check: its `about`, `study`, `unit` or `advice`. Empty if it has none.
    pub fn text(&self, key: &str) -> &'static str {
        let mut sections = TEXTS.split("\n## ");
        let own = sections.find(|section| section.lines().next() == Some(self.name));
        own.map_or("", |own| field(own, key))
    }

    /// Returns whether other work on the machine can make the figure longer.
    fn is_timed(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::ClockRead | Need::Sleeps))
    }

    /// Judges the gathered facts. On a busy machine a measured time is judged as it was, which is
    /// what programs there meet, and the finding says how busy the machine was.
    pub fn judge(&self, facts: &Facts) -> Finding {
        let unknown = |why: Cow<'_, str>| {
            let how = why.into_owned();
            Judgement { verdict: Verdict::Unknown, figure: None, how, advice: None }
        };
        let Judgement { verdict, figure, mut how, advice } =
            (self.judge)(facts).unwrap_or_else(unknown);
        if let Some(busy) =
            facts.busy.as_ref().filter(|_| self.is_timed() && verdict > Verdict::Unknown)
        {
            how = format!("{how}. Then {busy}");
        }
        let advice = match verdict {
            Verdict::Ok | Verdict::Unknown => String::new(),
            Verdict::Warn | Verdict::Bad => advice.unwrap_or_else(|| self.text("advice").into()),
        };
        let figure = figure.filter(|figure| figure.is_finite());
        Finding {
            check: self.name,
            verdict,
            figure,
            unit: self.text("unit"),
            how,
            advice,
            study: self.text("study"),
        }
    }
}

pub const CHECKS: [Check; 2] = [SLACK, DEADLINES];

const SLACK: Check = Check { name: "timer-slack", needs: &[Need::Slack], judge: slack };

const DEADLINES: Check =
    Check { name: "missed-deadlines", needs: &[Need::Sleeps], judge: deadlines };

/// The default timer slack: how much later than requested the kernel is allowed to end a sleep.
const SLACK_DEFAULT_NS: f64 = 50_000.0;

/// From this timer slack on the verdict is "bad". A millisecond is the shortest usual tick, so with
/// such a slack sleeps are no more exact than timers that expire on ticks.
const SLACK_BAD_NS: f64 = 1_000_000.0;

fn slack(facts: &Facts) -> Judged<'_> {
    let slack_ns = *facts.slack_ns.as_ref()? as f64;
    // Warn from one nanosecond above the default slack on, so that the default causes no warning.
    let verdict = Verdict::from_limits(slack_ns, SLACK_DEFAULT_NS + 1.0, SLACK_BAD_NS);
    Judgement::figure(
        verdict,
        slack_ns,
        "/proc/self/timerslack_ns: what this process was started with, and so will others be \
         from here; 50000 is usual",
    )
}

/// From this percentage of missed deadlines on there is a warning. A thread misses a deadline if it
/// has not woken by the next one. That happens now and then on any virtual machine, when the
/// hypervisor runs another machine on the CPU.
const MISSED_WARN: f64 = 2.0;
/// From this percentage of missed deadlines on the verdict is "bad": one in ten.
const MISSED_BAD: f64 = 10.0;

fn deadlines(facts: &Facts) -> Judged<'_> {
    let sleeps = facts.sleeps.as_ref()?;
    let Sleeps { interval_us, wakeups, missed, p99_ns, max_ns } = *sleeps;
    let percent = 100.0 * missed as f64 / (wakeups + missed).max(1) as f64;
    let how = format!(
        "a thread slept {wakeups} times until the next {}; late by at most {} in 99 of 100, at \
         worst {}",
        time(interval_us * 1_000),
        time(p99_ns),
        time(max_ns)
    );
    Judgement::figure(Verdict::from_limits(percent, MISSED_WARN, MISSED_BAD), percent, how)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// The figure could not be obtained, so there is no judgement.
    Unknown,
    Warn,
    Bad,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unknown => "unknown",
            Verdict::Warn => "warn",
            Verdict::Bad => "bad",
        }
    }

    pub fn from_limits(figure: f64, warn: f64, bad: f64) -> Verdict {
        match figure {
            figure if figure >= bad => Verdict::Bad,
            figure if figure >= warn => Verdict::Warn,
            _ => Verdict::Ok,
        }
    }
}

/// The result of a check. The JSON keys are stable and documented in `docs/book/src/doctor.md`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    pub figure: Option<f64>,
    pub unit: &'static str,
    /// How the figure was obtained, or why it could not be obtained.
    pub how: String,
    /// What the user can do; empty if there is nothing to do.
    pub advice: String,
    pub study: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    pub verdict: Verdict,
    pub figure: Option<f64>,
    pub how: String,
    /// Advice for this case, shown instead of the check's general advice. `None`: the general one.
    pub advice: Option<String>,
}

/// A judgement, or an error text: why there is no judgement, and what the user can do about that.
pub type Judged<'a> = Result<Judgement, Cow<'a, str>>;

impl Judgement {
    pub fn figure(verdict: Verdict, figure: f64, how: impl Into<String>) -> Judged<'static> {
        Ok(Judgement { verdict, figure: Some(figure), how: how.into(), advice: None })
    }
}
