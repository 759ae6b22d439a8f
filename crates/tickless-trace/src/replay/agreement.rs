//! The policy that the kernel has, against what the kernel did.

use super::engine::Outcome;
use super::policy::ReplayPolicy;
use super::script::{Interrupts, Script};
use crate::read::Trace;
use serde::Serialize;

/// How far the replay may be off, in percent of what was recorded.
pub const AGREEMENT_PERCENT: f64 = 5.0;

/// The first kernel, major and minor, that judges a restart of the first timer as a whole:
/// T. Gleixner, "hrtimer: Avoid double reprogramming in __hrtimer_start_range_ns()", 2021.
const RESTART_AWARE_SINCE: (u32, u32) = (5, 15);

/// The first kernel whose slice timer is lazy and whose interrupts put the rearm off.
const LAZY_TIMERS_SINCE: (u32, u32) = (7, 1);

/// How near the replay comes to the recorded register writes.
#[derive(Debug, Serialize)]
pub struct Agreement {
    /// The policy of the kernel that recorded.
    pub policy: &'static str,
    /// Recorded writes.
    pub recorded: u64,
    /// Writes of the replay under that policy.
    pub replayed: u64,
    /// By how much they differ, in percent of the recorded.
    pub off_percent: f64,
    /// Within 5 %?
    pub inside: bool,
    /// Everything that the trace recorded and the replay counts, under the kernel's policy.
    pub measures: Vec<Measure>,
    /// Operations of which the trace does not say what they wrote to the device: counts that
    /// differ by no more than this tell nothing.
    pub uncertain: u64,
    /// Whether the trace can tell each other policy from the kernel's.
    pub others: Vec<Comparison>,
    /// What makes the trace one that cannot have happened like that.
    pub damage: Vec<String>,
    /// Whether the replay did what the kernel did: every measure within 5 %, no policy fits
    /// better than the kernel's, and the trace is sound.
    pub agrees: bool,
    /// What the difference may come from.
    pub why: Vec<String>,
}

/// Something that the trace recorded and the replay counts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Measure {
    /// `device_writes`, `wakeups`, `spurious_wakeups` or `expirations`.
    pub measure: &'static str,
    /// As often as the trace says.
    pub recorded: u64,
    /// As often as in the replay.
    pub replayed: u64,
    /// Within 5 % of all that could be counted?
    pub inside: bool,
}

/// What a trace says of a policy that its kernel should not have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The policy.
    pub policy: &'static str,
    /// By how much its device writes are off those recorded, in percent.
    pub off_percent: f64,
    /// The count in which it differs most from the kernel's policy, and by how much.
    pub differs_in: &'static str,
    /// By how much.
    pub differs_by: u64,
    /// Can the trace tell the two apart, and which of them fits?
    pub verdict: Told,
}

/// Whether a trace can tell a policy from that of its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The recorded counts are not those of this policy.
    RuledOut,
    /// Both come to the same, as far as the trace tells.
    CannotTell,
    /// This policy is nearer to what was recorded than that of the kernel.
    FitsBetter,
}

impl Measure {
    fn new(measure: &'static str, recorded: u64, replayed: u64, of: u64) -> Measure {
        let most = of.max(1) as f64 * AGREEMENT_PERCENT / 100.0;
        let inside = recorded.abs_diff(replayed) as f64 <= most;
        Measure { measure, recorded, replayed, inside }
    }

    fn off(&self) -> u64 {
        self.recorded.abs_diff(self.replayed)
    }
}

/// What a trace recorded that can be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) writes: u64,
    /// Interrupts, and how many of them expired nothing.
    pub(super) interrupts: Option<(u64, u64)>,
    pub(super) expirations: u64,
}

impl Counted {
    fn measures(&self, outcome: &Outcome) -> Vec<Measure> {
        let mut measures =
            vec![Measure::new("device_writes", self.writes, outcome.device.writes, self.writes)];
        if let Some((interrupts, spurious)) = self.interrupts {
            let new = |name, recorded, replayed| Measure::new(name, recorded, replayed, interrupts);
            measures.push(new("wakeups", interrupts, outcome.device.events));
            measures.push(new("spurious_wakeups", spurious, outcome.device.spurious));
        }
        let fired = outcome.expirations;
        measures.push(Measure::new("expirations", self.expirations, fired, self.expirations));
        measures
    }
}

impl Comparison {
    fn of(counted: &Counted, kernel: &Outcome, other: &Outcome, uncertain: u64) -> Comparison {
        let (ours, theirs) = (counted.measures(kernel), counted.measures(other));
        let apart =
            |(one, two): (&Measure, &Measure)| (one.replayed.abs_diff(two.replayed), one.measure);
        let (differs_by, differs_in) = ours
            .iter()
            .zip(&theirs)
            .rev()
            .map(apart)
            .max_by_key(|apart| apart.0)
            .unwrap_or((0, ""));
        let off = |measures: &[Measure]| measures.iter().map(Measure::off).sum::<u64>();
        let verdict = match (off(&ours), off(&theirs)) {
            _ if differs_by <= uncertain => Told::CannotTell,
            (ours, theirs) if theirs + uncertain < ours => Told::FitsBetter,
            (ours, theirs) if ours + uncertain < theirs => Told::RuledOut,
            _ => Told::CannotTell,
        };
        Comparison {
            policy: other.policy.name(),
            off_percent: off_percent(other.device.writes, counted.writes),
            differs_in,
            differs_by,
            verdict,
        }
    }
}

fn off_percent(replayed: u64, recorded: u64) -> f64 {
    (replayed as f64 - recorded as f64) / recorded as f64 * 100.0
}

impl Agreement {
    /// Which policy the kernel has that recorded a trace; that of 5.15 to 7.0 if the trace does not
    /// tell.
    pub(super) fn policy_of(trace: &Trace) -> ReplayPolicy {
        let release = trace.header.kernel.as_deref().unwrap_or_default();
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        match number().zip(number()) {
            Some(version) if version < RESTART_AWARE_SINCE => ReplayPolicy::Eager,
            Some(version) if version >= LAZY_TIMERS_SINCE => ReplayPolicy::Linux71,
            _ => ReplayPolicy::RestartAware,
        }
    }

    /// Of the outcomes under all policies; none without that of the kernel's.
    pub(super) fn new(
        trace: &Trace,
        script: &Script,
        counted: &Counted,
        outcomes: &[Outcome],
    ) -> Option<Agreement> {
        let policy = Agreement::policy_of(trace);
        let outcome = outcomes.iter().find(|outcome| outcome.policy == policy)?;
        let (recorded, replayed) = (counted.writes, outcome.device.writes);
        let off = off_percent(replayed, recorded);
        let mut why = reasons(trace, script);
        why.extend(differing_cpus(trace, outcome));
        let uncertain = outcome.inferred_writes + script.unknown_cancels + trace.dropped_events;
        let others: Vec<Comparison> = outcomes
            .iter()
            .filter(|other| other.policy != policy)
            .map(|other| Comparison::of(counted, outcome, other, uncertain))
            .collect();
        let measures = counted.measures(outcome);
        let damage: Vec<String> =
            trace.problems.damage().map(|problem| problem.message(&trace.path)).collect();
        let agrees = damage.is_empty()
            && measures.iter().all(|measure| measure.inside)
            && others.iter().all(|other| other.verdict != Told::FitsBetter);
        Some(Agreement {
            policy: policy.name(),
            recorded,
            replayed,
            off_percent: off,
            inside: off.abs() <= AGREEMENT_PERCENT,
            measures,
            uncertain,
            others,
            damage,
            agrees,
            why,
        })
    }
}

fn reasons(trace: &Trace, script: &Script) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut reason = |what: &str, count: u64, so: &str| {
        if count > 0 {
            reasons.push(format!("{what}: {count}{so}"));
        }
    };
    reason(
        "cancels of timers armed before the recording began",
        script.unknown_cancels,
        "; what those wrote is not known",
    );
    reason(
        "timers pending when the recording began",
        script.pending_at_start.len() as u64,
        "; each is taken to have been armed for the moment at which it expired",
    );
    reason("events lost while recording", trace.dropped_events, "");
    if script.interrupts == Interrupts::Implied {
        reasons.push("timer interrupts were not recorded".to_string());
    }
    reasons
}

fn differing_cpus(trace: &Trace, outcome: &Outcome) -> Vec<String> {
    const TOLD_MAX: usize = 8;
    let mut recorded = vec![0u64; outcome.per_cpu.len()];
    for record in trace.device_writes() {
        recorded[record.cpu.index()] += 1;
    }
    let pairs = recorded.iter().zip(&outcome.per_cpu).enumerate();
    let mut differing: Vec<_> = pairs
        .map(|(cpu, (&recorded, device))| (recorded.abs_diff(device.writes), cpu, recorded, device))
        .filter(|(difference, ..)| *difference > 0)
        .collect();
    differing.sort_by_key(|&(difference, cpu, ..)| (std::cmp::Reverse(difference), cpu));
    let told = differing.iter().take(TOLD_MAX).map(|(_, cpu, recorded, device)| {
        format!("CPU {cpu}: {recorded} writes recorded, {} replayed", device.writes)
    });
    let rest = differing.len().saturating_sub(TOLD_MAX);
    let rest = (rest > 0).then(|| format!("{rest} further CPUs differ by less"));
    told.chain(rest).collect()
}
