//! Compares a replay under the kernel's own policy with what the kernel did.

use super::engine::PolicyResult;
use super::lateness::Quantiles;
use super::policy::ReplayPolicy;
use super::script::Script;
use crate::read::Trace;
use serde::Serialize;

/// By how many percent a count of the replay is allowed to differ from the recorded count.
pub const AGREEMENT_PERCENT: f64 = 5.0;

/// The first kernel, major and minor, that programs the device only once when the first timer is
/// restarted: T. Gleixner, "hrtimer: Avoid double reprogramming in __hrtimer_start_range_ns()",
/// 2021.
const RESTART_AWARE_SINCE: (u32, u32) = (5, 15);

/// The first kernel, major and minor, that has what [`ReplayPolicy::Linux71`] describes: a lazy
/// timer for time slices, and device programming that is deferred at the end of interrupts.
const LAZY_TIMERS_SINCE: (u32, u32) = (7, 1);

#[derive(Debug, Serialize)]
pub struct Agreement {
    pub policy: &'static str,
    pub recorded: u64,
    pub replayed: u64,
    pub off_percent: f64,
    pub inside: bool,
    pub measures: Vec<Measure>,
    /// The number of operations for which the trace lacks the operation itself or its device
    /// writes. Policies whose counts differ by no more than this cannot be distinguished.
    pub uncertain: u64,
    pub others: Vec<Comparison>,
    pub damage: Vec<String>,
    /// Whether the replay did what the kernel did: each of `measures` is within 5 %, no policy fits
    /// better than the kernel's, and the trace has no damage.
    pub agrees: bool,
    pub why: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Measure {
    pub measure: &'static str,
    pub recorded: u64,
    pub replayed: u64,
    pub inside: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    pub policy: &'static str,
    pub off_percent: f64,
    pub differs_in: &'static str,
    pub differs_by: u64,
    pub verdict: Verdict,
}

/// Whether a trace distinguishes a policy from its kernel's, and which of the two fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The recorded counts fit the kernel's policy, and do not fit this policy.
    RuledOut,
    /// Both policies fit the recorded counts equally well.
    CannotTell,
    /// This policy is nearer to the recorded counts than the kernel's.
    FitsBetter,
}

impl Measure {
    /// Two counts agree if they differ by at most [`AGREEMENT_PERCENT`] percent of `of`.
    fn new(measure: &'static str, recorded: u64, replayed: u64, of: u64) -> Measure {
        let most = of.max(1) as f64 * AGREEMENT_PERCENT / 100.0;
        let inside = recorded.abs_diff(replayed) as f64 <= most;
        Measure { measure, recorded, replayed, inside }
    }

    fn off_percent(&self) -> f64 {
        (self.replayed as f64 - self.recorded as f64) / self.recorded as f64 * 100.0
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recorded {
    pub device_writes: Option<u64>,
    pub timer_interrupts: Option<u64>,
    pub expirations: u64,
    pub wheel_lateness_ns: Option<Quantiles>,
    pub queue_lateness_ns: Option<Quantiles>,
    /// How many timer interrupts expired no timer; `None` if the trace does not show it.
    #[serde(skip)]
    pub(super) spurious_interrupts: Option<u64>,
}

impl Recorded {
    /// Returns each recorded count beside that of a replay. The last argument of `Measure::new` is
    /// the count of which a difference is given as a percentage.
    fn measures(&self, writes: u64, replayed: &PolicyResult) -> Vec<Measure> {
        let mut measures =
            vec![Measure::new("device_writes", writes, replayed.device_writes, writes)];
        if let Some((interrupts, spurious)) = self.timer_interrupts.zip(self.spurious_interrupts) {
            let new = |name, recorded, replayed| Measure::new(name, recorded, replayed, interrupts);
            measures.push(new("wakeups", interrupts, replayed.wakeups));
            measures.push(new("spurious_wakeups", spurious, replayed.spurious_wakeups));
        }
        let (expired, fired) = (self.expirations, replayed.expirations);
        measures.push(Measure::new("expirations", expired, fired, expired));
        measures
    }
}

impl Comparison {
    /// Judges whether another policy fits the recording better than the kernel's policy does.
    fn new(
        policy: &'static str,
        kernel: &[Measure],
        others: &[Measure],
        uncertain: u64,
    ) -> Comparison {
        let (mut differs_by, mut differs_in) = (0, kernel[0].measure);
        for (one, two) in kernel.iter().zip(others) {
            let apart = one.replayed.abs_diff(two.replayed);
            if apart > differs_by {
                (differs_by, differs_in) = (apart, one.measure);
            }
        }
        let off = |measures: &[Measure]| -> u64 {
            measures.iter().map(|measure| measure.recorded.abs_diff(measure.replayed)).sum()
        };
        let verdict = match (off(kernel), off(others)) {
            _ if differs_by <= uncertain => Verdict::CannotTell,
            (kernel, other) if other + uncertain < kernel => Verdict::FitsBetter,
            (kernel, other) if kernel + uncertain < other => Verdict::RuledOut,
            _ => Verdict::CannotTell,
        };
        let off_percent = others[0].off_percent();
        Comparison { policy, off_percent, differs_in, differs_by, verdict }
    }
}

impl Agreement {
    /// Returns the policy of the kernel that recorded a trace. If the trace does not name its
    /// kernel, returns the policy of Linux 5.15 to 7.0.
    pub fn policy_of(trace: &Trace) -> ReplayPolicy {
        match trace.header.version() {
            Some(version) if version < RESTART_AWARE_SINCE => ReplayPolicy::Eager,
            Some(version) if version >= LAZY_TIMERS_SINCE => ReplayPolicy::Linux71,
            _ => ReplayPolicy::RestartAware,
        }
    }

    /// Compares the results under all policies with what was recorded; `None` if no device writes
    /// were recorded, or the kernel's policy was not replayed.
    pub(super) fn new(
        trace: &Trace,
        script: &Script,
        recorded: &Recorded,
        results: &[PolicyResult],
    ) -> Option<Agreement> {
        let writes = recorded.device_writes?;
        let policy = Agreement::policy_of(trace).name();
        let result = results.iter().find(|result| result.policy == policy)?;
        let uncertain = result.inferred_writes + script.unknown_cancels + trace.dropped_events;
        let measures = recorded.measures(writes, result);
        let off_percent = measures[0].off_percent();
        let compare = |other: &PolicyResult| {
            let others = recorded.measures(writes, other);
            Comparison::new(other.policy, &measures, &others, uncertain)
        };
        let others: Vec<Comparison> =
            results.iter().filter(|other| other.policy != policy).map(compare).collect();
        let damage: Vec<String> =
            trace.problems.damage().map(|problem| problem.message(&trace.path)).collect();
        let agrees = damage.is_empty()
            && measures.iter().all(|measure| measure.inside)
            && others.iter().all(|other| other.verdict != Verdict::FitsBetter);
        Some(Agreement {
            policy,
            recorded: writes,
            replayed: result.device_writes,
            off_percent,
            inside: off_percent.abs() <= AGREEMENT_PERCENT,
            measures,
            uncertain,
            others,
            damage,
            agrees,
            why: reasons(trace, script),
        })
    }
}

fn reasons(trace: &Trace, script: &Script) -> Vec<String> {
    let reasons = [
        (
            "cancels of timers armed before the recording began",
            script.unknown_cancels,
            "; what those wrote is not known",
        ),
        (
            "timers pending when the recording began",
            script.pending_at_start.len() as u64,
            "; each is taken to have been armed for the moment at which it expired",
        ),
        ("events lost while recording", trace.dropped_events, ""),
    ];
    let reasons = reasons.into_iter().filter(|(_, count, _)| *count > 0);
    let mut reasons: Vec<String> =
        reasons.map(|(what, count, so)| format!("{what}: {count}{so}")).collect();
    if !script.has_interrupts {
        reasons.push("timer interrupts were not recorded".to_string());
    }
    reasons
}
