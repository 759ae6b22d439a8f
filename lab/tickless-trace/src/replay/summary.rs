//! All results of a replay, and what the trace recorded.

use super::agreement::{Agreement, Recorded};
use super::engine::{self, Changes, PolicyResult};
use super::overlap::{self, Overlap};
use super::policy::ReplayPolicy;
use super::script::{self, FamilyCounts, Inference, Script};
use super::ticks::TickResult;
use super::upgrade::UpgradeResult;
use crate::read::{EventKind, Family, Trace};
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Reverse;
use tickless_core::bases::WheelEvents;

/// A replay's results. `docs/book/src/replay.md` documents its JSON.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub trace: TraceFacts,
    pub policies: Vec<PolicyResult>,
    /// What ticks of other rates cost; empty until [`other_ticks`](super::other_ticks) computes it.
    pub ticks: Vec<TickResult>,
    /// What Linux 7.2 would have done; empty until [`upgraded`](super::upgraded) computes it.
    pub upgrade: Vec<UpgradeResult>,
    pub operations: OperationCounts,
    pub cancelled_percent: f64,
    pub top_functions: Vec<FunctionStarts>,
    pub overlap: Vec<Overlap>,
    pub agreement: Option<Agreement>,
    pub skipped_lines: u64,
    pub dropped_events: u64,
    pub pending_at_start: usize,
    pub unknown_cancels: u64,
    pub inferred_operations: u64,
    pub unplaced_starts: u64,
    pub inference: bool,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct TraceFacts {
    pub file: String,
    pub kernel: Option<String>,
    pub cpus: u16,
    pub seconds: f64,
    /// How much of the time of all CPUs the trace shows.
    pub seen_percent: f64,
    pub hz: Option<u32>,
    pub recorded: Recorded,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct OperationCounts {
    pub start: u64,
    pub cancel: u64,
    pub expire: u64,
    pub wheel: FamilyCounts,
    pub queue: FamilyCounts,
}

impl OperationCounts {
    pub fn all(&self) -> FamilyCounts {
        let OperationCounts { start, cancel, expire, wheel, queue } = *self;
        let restart = wheel.restart + queue.restart;
        let not_to_fire = wheel.not_to_fire + queue.not_to_fire;
        FamilyCounts { start, cancel, expire, restart, not_to_fire }
    }
}

#[derive(Debug, Serialize)]
pub struct FunctionStarts {
    pub function: String,
    pub family: &'static str,
    pub starts: u64,
}

/// Replays a trace under each of these policies, on all CPUs, and returns all results.
pub fn summarise(trace: &Trace, policies: &[ReplayPolicy], inference: Inference) -> Summary {
    let writes = trace.device_writes() as u64;
    let (seconds, seen_percent) = (trace.span().0 as f64 / 1e9, trace.seen_percent());
    let shows_spurious = [EventKind::HrtimerExpireEntry, EventKind::LocalTimerExit];
    let shows_spurious = shows_spurious.iter().all(|kind| trace.count(*kind) > 0);
    let interrupts = trace.count(EventKind::LocalTimerEntry) as u64;
    // If device writes were recorded, the recording kernel's own policy is compared with the
    // default ones, so replay these too.
    let compared = match writes {
        0 => Vec::new(),
        _ => [&ReplayPolicy::DEFAULT[..], &[Agreement::policy_of(trace)]].concat(),
    };
    let wanted = |policy: &ReplayPolicy| policies.contains(policy) || compared.contains(policy);
    let replayed: Vec<_> = ReplayPolicy::ALL.into_iter().filter(wanted).collect();
    let replay = || {
        let script = script::writer(trace, inference).write(trace);
        let results = replay(trace, &script, &replayed);
        (script, results)
    };
    let (overlap, (script, mut results)) = rayon::join(|| overlap::find(trace), replay);
    let recorded = Recorded {
        device_writes: (writes > 0).then_some(writes),
        timer_interrupts: (interrupts > 0).then_some(interrupts),
        expirations: script.counts.iter().map(|family| family.expire).sum(),
        wheel_lateness_ns: script.late.of(Family::Wheel),
        queue_lateness_ns: script.late.of(Family::Queue),
        spurious_interrupts: shows_spurious.then_some(script.spurious),
    };
    let [wheel, queue] = script.counts;
    let operations = OperationCounts {
        start: wheel.start + queue.start,
        cancel: wheel.cancel + queue.cancel,
        expire: wheel.expire + queue.expire,
        wheel,
        queue,
    };
    let agreement = Agreement::new(trace, &script, &recorded, &results);
    let notes = notes(&script, &results);
    results.retain(|result| policies.iter().any(|policy| policy.name() == result.policy));
    Summary {
        agreement,
        trace: TraceFacts {
            file: trace.path.clone(),
            kernel: trace.header.kernel.clone(),
            cpus: trace.cpus,
            seconds,
            seen_percent,
            hz: trace.hz,
            recorded,
        },
        policies: results,
        ticks: Vec::new(),
        upgrade: Vec::new(),
        cancelled_percent: operations.all().cancelled_percent(),
        operations,
        top_functions: top_functions(trace, &script),
        overlap,
        skipped_lines: trace.skipped_lines,
        dropped_events: trace.dropped_events,
        pending_at_start: script.pending_at_start.len(),
        unknown_cancels: script.unknown_cancels,
        inferred_operations: script.inferred,
        unplaced_starts: script.unplaced,
        inference: inference == Inference::On,
        notes,
    }
}

/// Replays a script under each policy.
fn replay(trace: &Trace, script: &Script, policies: &[ReplayPolicy]) -> Vec<PolicyResult> {
    let run = |&policy| engine::run(script, trace, policy, Changes::default());
    policies.par_iter().map(run).collect()
}

fn notes(script: &Script, results: &[PolicyResult]) -> Vec<String> {
    let mut notes = Vec::new();
    if script.inferred > 0 {
        let writes =
            |result: &PolicyResult| format!("{} under {}", result.inferred_writes, result.policy);
        notes.push(format!(
            "operations without a record, inferred where the record contradicts itself without \
             them: {} (--no-inference replays without). What they write is not counted: {}",
            script.inferred,
            results.iter().map(writes).collect::<Vec<_>>().join(", ")
        ));
    }
    if !script.has_interrupts {
        notes.push(
            "timer interrupts were not recorded (irq_vectors:local_timer_*): each is taken to \
             begin with its first expiry, and those that expired nothing are missing"
                .to_string(),
        );
    }
    if script.wheel == WheelEvents::Device {
        notes.push(
            "there is no hrtimer event in the trace, so nothing is known of the tick: the wheel \
             is given an event device of its own"
                .to_string(),
        );
    }
    if script.unplaced > 0 {
        notes.push(format!(
            "armings left out, since nothing in the trace tells where their clock is: {}",
            script.unplaced
        ));
    }
    notes
}

fn top_functions(trace: &Trace, script: &Script) -> Vec<FunctionStarts> {
    const SHOWN: usize = 10;
    let mut top: Vec<FunctionStarts> = Vec::new();
    for (name, [wheel, queue]) in trace.names.iter().zip(&script.starts_by_function) {
        for (family, starts) in [("wheel", *wheel), ("queue", *queue)] {
            if starts > 0 {
                top.push(FunctionStarts { function: name.to_string(), family, starts });
            }
        }
    }
    top.sort_by_key(|top| (Reverse(top.starts), top.function.clone(), top.family));
    top.truncate(SHOWN);
    top
}
