//! The timer slack of threads, and the measured lateness of their sleeps.

use super::{Check, Need};
use crate::doctor::facts::{Facts, Sleeps};
use crate::doctor::finding::{Judged, Judgement, Verdict};
use crate::text::time;

pub(super) const CHECKS: [Check; 2] = [SLACK, DEADLINES];

const SLACK: Check = Check {
    name: "timer-slack",
    about: "sleeps that may end much later than asked",
    study: "deferred",
    unit: "ns",
    needs: &[Need::Slack],
    judge: slack,
};

const DEADLINES: Check = Check {
    name: "missed-deadlines",
    about: "wakeups that come after the next one was due",
    study: "deferred",
    unit: "% of deadlines",
    needs: &[Need::Sleeps],
    judge: deadlines,
};

/// The kernel's default timer slack, by which it may delay the end of a sleep.
const SLACK_DEFAULT_NS: f64 = 50_000.0;

/// With a slack of a millisecond, which is the shortest usual tick, sleeps are no more exact than
/// timers that expire on ticks.
const SLACK_BAD_NS: f64 = 1_000_000.0;

fn slack(facts: &Facts) -> Judged<'_> {
    let slack_ns = *facts.slack_ns.as_ref()? as f64;
    // The limit is one above the default, so that the default does not cause a warning.
    let verdict = Verdict::from_limits(slack_ns, SLACK_DEFAULT_NS + 1.0, SLACK_BAD_NS);
    Judgement::figure(
        verdict,
        slack_ns,
        "/proc/self/timerslack_ns: what this process was started with, and so will others be \
         from here; 50000 is usual",
        "whoever started this shell allowed sleeps to end that much later: set it back \
         (prctl PR_SET_TIMERSLACK, or TimerSlackNSec= of the service)",
    )
}

/// Percentage of missed deadlines from which to warn. A few are missed on any virtual machine, when
/// the hypervisor runs another machine on the CPU.
const MISSED_WARN: f64 = 2.0;
/// Percentage of missed deadlines that is bad: one in ten.
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
    Judgement::figure(
        Verdict::from_limits(percent, MISSED_WARN, MISSED_BAD),
        percent,
        how,
        "threads wake after their next deadline: see `tickless latency -S` and what else runs; \
         give what must be on time a real-time priority (chrt) or CPUs of its own",
    )
}
