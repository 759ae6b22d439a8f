//! The policy that the kernel has, against what the kernel did.

use super::engine::Outcome;
use super::script::{Interrupts, Script};
use super::summary::policy_name;
use crate::read::Trace;
use serde::Serialize;
use tickless_core::rearm::Policy;

/// How far the replay may be off, in percent of what was recorded.
pub const AGREEMENT_PERCENT: f64 = 5.0;

/// The first kernel, major and minor, that judges a restart of the first timer as a whole:
/// T. Gleixner, "hrtimer: Avoid double reprogramming in __hrtimer_start_range_ns()", 2021.
const RESTART_AWARE_SINCE: (u32, u32) = (5, 15);

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
    /// What the difference may come from.
    pub why: Vec<String>,
}

impl Agreement {
    /// Which policy the kernel has that recorded a trace; today's, if the trace does not tell.
    pub(super) fn policy_of(trace: &Trace) -> Policy {
        let release = trace.header.kernel.as_deref().unwrap_or_default();
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        match number().zip(number()) {
            Some(version) if version < RESTART_AWARE_SINCE => Policy::Eager,
            _ => Policy::RestartAware,
        }
    }

    pub(super) fn new(
        trace: &Trace,
        script: &Script,
        recorded: u64,
        outcome: &Outcome,
    ) -> Agreement {
        let replayed = outcome.device.writes;
        let off = (replayed as f64 - recorded as f64) / recorded as f64 * 100.0;
        let mut why = reasons(trace, script);
        why.extend(differing_cpus(trace, outcome));
        Agreement {
            policy: policy_name(outcome.policy),
            recorded,
            replayed,
            off_percent: off,
            inside: off.abs() <= AGREEMENT_PERCENT,
            why,
        }
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
    for record in trace.records.iter().filter(|record| record.event.is_device_write()) {
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
