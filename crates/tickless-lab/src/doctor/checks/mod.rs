//! The checks: what is judged, by which figure, with which borders.
//!
//! | file | its study | what |
//! |---|---|---|
//! | `clock` | clock | which clock, what reading it takes, alone and together, its watchdog |
//! | `rearm` | rearm | how often the timer device is written, and for removals |
//! | `cancel` | cancel | timers that are cancelled |
//! | `deferred` | deferred | softirqs, ticks and wakeups for nothing |
//! | `phase` | phase | timers of one period that expire together |
//! | `sleep` | deferred | how exactly threads may sleep, and do |

mod sleep;

use super::facts::Facts;
use super::finding::{Finding, Says, Verdict};
use crate::studies::cancel::doctor as cancel;
use crate::studies::clock::doctor as clock;
use crate::studies::deferred::doctor as deferred;
use crate::studies::phase::doctor as phase;
use crate::studies::rearm::doctor as rearm;

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
    pub(crate) judge: fn(&Facts) -> Says,
}

/// All checks, in the order of their studies.
pub const CHECKS: &[Check] = &[
    clock::SOURCE,
    clock::CONTENTION,
    clock::WATCHDOG,
    rearm::WRITES,
    rearm::REMOVALS,
    cancel::CANCELS,
    deferred::SOFTIRQ,
    deferred::EMPTY_SOFTIRQS,
    deferred::IDLE_TICKS,
    deferred::TICK_WAKERS,
    phase::QUOTAS,
    phase::ALIGNED,
    sleep::SLACK,
    sleep::DEADLINES,
];

impl Check {
    /// The check of this name.
    pub fn named(name: &str) -> Option<&'static Check> {
        CHECKS.iter().find(|check| check.name == name)
    }

    /// Whether its figure is a time, which other work on the machine disturbs.
    fn is_timed(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::ClockRead | Need::Sleeps))
    }

    /// Judges what was seen.
    pub fn judge(&self, facts: &Facts) -> Finding {
        let Says { mut verdict, figure, mut how, mut advice } = (self.judge)(facts);
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
