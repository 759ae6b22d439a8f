//! What came of a replay, beside what the trace recorded.

use super::engine::{self, Outcome};
use super::script::{self, Counts, Family, Script};
use crate::trace::{EventKind, Trace};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::HashMap;
use tickless_core::rearm::Policy;
use tickless_core::tick::Tick;

/// A replay's results. Serialises to the JSON that is documented in `docs/replay.md`.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The trace.
    pub trace: TraceFacts,
    /// One for each policy.
    pub policies: Vec<PolicyResult>,
    /// What the trace's kernel did.
    pub operations: OperationCounts,
    /// Of all armings, how many were cancelled or moved before they fired, in percent.
    pub cancelled_percent: f64,
    /// The functions that were armed most.
    pub top_functions: Vec<FunctionStarts>,
    /// How near the replay comes to the recorded register writes; null without any.
    pub agreement: Option<Agreement>,
    /// Lines that may have been events and could not be used.
    pub skipped_lines: u64,
    /// Events that were lost while recording.
    pub dropped_events: u64,
    /// Timers that were pending when the recording began and expired in it.
    pub pending_at_start: usize,
    /// Cancels of timers that were armed before the recording began.
    pub unknown_cancels: u64,
}

/// What the trace says about itself.
#[derive(Debug, Serialize)]
pub struct TraceFacts {
    /// Its file.
    pub file: String,
    /// How many CPUs it has.
    pub cpus: u16,
    /// How long it is.
    pub seconds: f64,
    /// The kernel's tick rate; null if the trace does not tell.
    pub hz: Option<u32>,
    /// What it recorded of the event devices.
    pub recorded: Recorded,
}

/// What a trace recorded of the event devices. Role: published.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recorded {
    /// Writes to the deadline register; null if they were not recorded.
    pub device_writes: Option<u64>,
    /// Timer interrupts; null if they were not recorded.
    pub timer_interrupts: Option<u64>,
}

/// What came of the trace under one policy.
#[derive(Debug, Serialize)]
pub struct PolicyResult {
    /// `eager`, `lazy` or `restart-aware`.
    pub policy: &'static str,
    /// How often an event device was programmed.
    pub device_writes: u64,
    /// How many events the devices delivered.
    pub wakeups: u64,
    /// How many timers fired.
    pub expirations: u64,
    /// Events that found nothing to do.
    pub spurious_wakeups: u64,
    /// Timers that fired early: 0.
    pub early: u64,
    /// Lateness of everything that fired, against its hard expiry.
    pub lateness_ns: Quantiles,
    /// The same of wheel timers, which includes the wheel's granularity.
    pub wheel_lateness_ns: Quantiles,
    /// The same of high-resolution timers.
    pub queue_lateness_ns: Quantiles,
}

/// Some quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// One in a hundred is later.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

/// How often the trace did what.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OperationCounts {
    /// Arming, anew or first.
    pub start: u64,
    /// Cancels.
    pub cancel: u64,
    /// Expiries.
    pub expire: u64,
    /// The share of the wheel.
    pub wheel: FamilyCounts,
    /// The share of the queue.
    pub queue: FamilyCounts,
}

/// How often the trace did what with one family.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FamilyCounts {
    /// Arming, anew or first.
    pub start: u64,
    /// How many of these found the timer pending.
    pub restart: u64,
    /// Cancels.
    pub cancel: u64,
    /// Expiries.
    pub expire: u64,
}

/// A function and how often timers with it were armed.
#[derive(Debug, Serialize)]
pub struct FunctionStarts {
    /// The kernel's name for it.
    pub function: String,
    /// `wheel` or `queue`.
    pub family: &'static str,
    /// How often.
    pub starts: u64,
}

/// The policy that the kernel has, against what the kernel did.
#[derive(Debug, Serialize)]
pub struct Agreement {
    /// Which policy that is.
    pub policy: &'static str,
    /// Recorded writes.
    pub recorded: u64,
    /// Writes of the replay.
    pub replayed: u64,
    /// By how much they differ, in percent of the recorded.
    pub off_percent: f64,
    /// Within 5 %?
    pub inside: bool,
    /// What the difference may come from.
    pub why: Vec<String>,
}

/// How far the replay may be off, in percent of what was recorded.
pub const AGREEMENT_PERCENT: f64 = 5.0;

impl From<Counts> for FamilyCounts {
    fn from(counts: Counts) -> FamilyCounts {
        FamilyCounts {
            start: counts.starts,
            restart: counts.restarts,
            cancel: counts.cancels,
            expire: counts.expiries,
        }
    }
}

/// Replays a trace under each of these policies.
pub fn summarise(trace: &Trace, policies: &[Policy]) -> Summary {
    let script = script::write(trace);
    let tick = trace.hz.and_then(|hz| Tick::new(hz.tick()).ok()).unwrap_or_default();
    let run = |policy: &Policy| engine::run(&script, trace.cpus, tick, *policy);
    let outcomes: Vec<Outcome> = policies.iter().map(run).collect();
    let recorded = recorded(trace);
    let operations = &script.operations;
    let (wheel, queue) =
        (FamilyCounts::from(operations.wheel), FamilyCounts::from(operations.queue));
    let operations = OperationCounts {
        start: wheel.start + queue.start,
        cancel: wheel.cancel + queue.cancel,
        expire: wheel.expire + queue.expire,
        wheel,
        queue,
    };
    let undone = operations.cancel + wheel.restart + queue.restart;
    Summary {
        trace: TraceFacts {
            file: trace.path.clone(),
            cpus: trace.cpus,
            seconds: trace.span().0 as f64 / 1e9,
            hz: trace.hz.map(|hz| hz.value),
            recorded,
        },
        agreement: agreement(trace, &script, recorded, &outcomes),
        policies: outcomes.iter().map(result).collect(),
        cancelled_percent: 100.0 * undone as f64 / operations.start.max(1) as f64,
        operations,
        top_functions: top_functions(trace, &script),
        skipped_lines: trace.skipped_lines,
        dropped_events: trace.dropped_events,
        pending_at_start: script.pending_at_start.len(),
        unknown_cancels: script.unknown_cancels,
    }
}

/// A policy's name in tables, JSON and on the command line.
pub fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Eager => "eager",
        Policy::Lazy => "lazy",
        Policy::RestartAware => "restart-aware",
    }
}

fn result(outcome: &Outcome) -> PolicyResult {
    let mut all = outcome.late_wheel.clone();
    // Both have the same bounds, so this cannot fail.
    let _ = all.add(&outcome.late_queue);
    PolicyResult {
        policy: policy_name(outcome.policy),
        device_writes: outcome.device.writes,
        wakeups: outcome.device.events,
        expirations: outcome.expirations,
        spurious_wakeups: outcome.device.spurious,
        early: outcome.early,
        lateness_ns: quantiles(&all),
        wheel_lateness_ns: quantiles(&outcome.late_wheel),
        queue_lateness_ns: quantiles(&outcome.late_queue),
    }
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    Quantiles {
        p50: histogram.value_at_quantile(0.5),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
    }
}

fn recorded(trace: &Trace) -> Recorded {
    let writes = trace.records.iter().filter(|record| record.event.is_device_write()).count();
    let interrupts = trace.count(EventKind::LocalTimerEntry);
    Recorded {
        device_writes: (writes > 0).then_some(writes as u64),
        timer_interrupts: (interrupts > 0).then_some(interrupts as u64),
    }
}

fn agreement(
    trace: &Trace,
    script: &Script,
    recorded: Recorded,
    outcomes: &[Outcome],
) -> Option<Agreement> {
    let recorded_writes = recorded.device_writes?;
    let outcome = outcomes.iter().find(|outcome| outcome.policy == Policy::RestartAware)?;
    let replayed = outcome.device.writes;
    let off = (replayed as f64 - recorded_writes as f64) / recorded_writes as f64 * 100.0;
    let mut why = Vec::new();
    let mut because = |holds: bool, reason: String| {
        if holds {
            why.push(reason);
        }
    };
    because(
        script.unknown_cancels > 0,
        format!(
            "{} cancels of timers armed before the recording began: what their removal wrote is \
             not known",
            script.unknown_cancels
        ),
    );
    because(
        !script.pending_at_start.is_empty(),
        format!(
            "{} timers were pending when the recording began and are taken to have been armed \
             for the moment at which they expired",
            script.pending_at_start.len()
        ),
    );
    because(
        script.unseen_moves > 0,
        format!(
            "{} timers were moved without a record, as happens to the tick of a CPU that goes \
             idle out of tracing's sight; neither side counts what that wrote",
            script.unseen_moves
        ),
    );
    because(
        trace.dropped_events > 0,
        format!("{} events were lost while recording", trace.dropped_events),
    );
    because(
        recorded.timer_interrupts.is_none(),
        "interrupts were not recorded, so restarts from callbacks count as starts".to_string(),
    );
    for (cpu, device) in outcome.per_cpu.iter().enumerate() {
        let of_cpu = trace
            .records
            .iter()
            .filter(|record| record.cpu.index() == cpu && record.event.is_device_write());
        let of_cpu = of_cpu.count() as u64;
        because(
            of_cpu != device.writes,
            format!("CPU {cpu}: {of_cpu} writes recorded, {} replayed", device.writes),
        );
    }
    Some(Agreement {
        policy: policy_name(Policy::RestartAware),
        recorded: recorded_writes,
        replayed,
        off_percent: off,
        inside: off.abs() <= AGREEMENT_PERCENT,
        why,
    })
}

fn top_functions(trace: &Trace, script: &Script) -> Vec<FunctionStarts> {
    const SHOWN: usize = 10;
    let mut by_function = HashMap::new();
    for timer in &script.timers {
        if let Some(function) = timer.function {
            *by_function.entry((function, timer.family)).or_insert(0) += timer.starts;
        }
    }
    let mut top: Vec<FunctionStarts> = by_function
        .into_iter()
        .filter(|&(_, starts)| starts > 0)
        .map(|((function, family), starts)| FunctionStarts {
            function: trace.names.name(function).to_string(),
            family: match family {
                Family::Wheel => "wheel",
                Family::Queue => "queue",
            },
            starts,
        })
        .collect();
    top.sort_by(|a, b| b.starts.cmp(&a.starts).then_with(|| a.function.cmp(&b.function)));
    top.truncate(SHOWN);
    top
}
