//! What came of a replay, beside what the trace recorded.

use super::agreement::{Agreement, Counted};
use super::engine::{self, Outcome};
use super::family::Family;
use super::lateness::Quantiles;
use super::overlap::{self, Overlap, Periodic};
use super::policy::ReplayPolicy;
use super::script::{self, Counts, Inference, Interrupts, Script};
use crate::read::{Event, EventKind, Trace};
use serde::Serialize;
use std::collections::HashMap;
use std::thread;
use tickless_core::bases::WheelEvents;
use tickless_core::time::{CpuId, Tick};

/// A replay's results. Serialises to the JSON that is documented in `docs/book/src/replay.md`.
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
    /// Periodic timers of one function and one period, if there are several.
    pub overlap: Vec<Overlap>,
    /// What comes round at one interval, the most frequent first.
    pub periodic: Vec<Periodic>,
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
    /// Operations that have no record and must have happened; 0 without inference.
    pub inferred_operations: u64,
    /// Armings that could not be placed in time and were not performed.
    pub unplaced_starts: u64,
    /// Were operations without a record inferred?
    pub inference: bool,
    /// What was replayed in another way than it was recorded.
    pub notes: Vec<String>,
}

/// What the trace says about itself.
#[derive(Debug, Serialize)]
pub struct TraceFacts {
    /// Its file.
    pub file: String,
    /// The kernel that recorded it; null if the trace does not tell.
    pub kernel: Option<String>,
    /// How many CPUs it has.
    pub cpus: u16,
    /// How long it is.
    pub seconds: f64,
    /// The kernel's tick rate; null if the trace does not tell.
    pub hz: Option<u32>,
    /// What it recorded of the event devices.
    pub recorded: Recorded,
}

/// What a trace recorded of its event devices and its expiries. Role: live, at the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recorded {
    /// Writes to the deadline register; null if they were not recorded.
    pub device_writes: Option<u64>,
    /// Timer interrupts; null if they were not recorded.
    pub timer_interrupts: Option<u64>,
    /// Timers that expired.
    pub expirations: u64,
    /// Lateness of wheel timers that were armed within the recording; null if none expired.
    pub wheel_lateness_ns: Option<Quantiles>,
    /// The same of high-resolution timers, by the time that the kernel's handler went by.
    pub queue_lateness_ns: Option<Quantiles>,
}

/// What came of the trace under one policy.
#[derive(Debug, Serialize)]
pub struct PolicyResult {
    /// [`ReplayPolicy::name`].
    pub policy: &'static str,
    /// How often an event device was programmed.
    pub device_writes: u64,
    /// How often more by operations that are inferred: those writes are not in the trace either.
    pub inferred_writes: u64,
    /// How many events the devices delivered.
    pub wakeups: u64,
    /// How many timers fired.
    pub expirations: u64,
    /// Events that found nothing to do.
    pub spurious_wakeups: u64,
    /// Timers that fired early: 0.
    pub early: u64,
    /// Lateness of everything that fired, against its hard expiry; zeros if nothing did.
    pub lateness_ns: Quantiles,
    /// The same of wheel timers, which includes the wheel's granularity; null if none fired.
    pub wheel_lateness_ns: Option<Quantiles>,
    /// The same of high-resolution timers; null if none fired.
    pub queue_lateness_ns: Option<Quantiles>,
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

impl FamilyCounts {
    /// Of all armings, how many were cancelled or moved before they fired, in percent.
    pub fn cancelled_percent(&self) -> f64 {
        100.0 * (self.cancel + self.restart) as f64 / self.start.max(1) as f64
    }
}

/// Replays a trace under each of these policies, each on a thread of its own.
pub fn summarise(trace: &Trace, policies: &[ReplayPolicy], inference: Inference) -> Summary {
    let script = script::write(trace, inference);
    let recorded = recorded(trace, &script);
    // To say which policies the trace can tell apart, all that kernels had are replayed.
    let judged = match recorded.device_writes {
        Some(_) => [&ReplayPolicy::USUAL[..], &[Agreement::policy_of(trace)]].concat(),
        None => Vec::new(),
    };
    let wanted = |policy: &ReplayPolicy| policies.contains(policy) || judged.contains(policy);
    let replayed: Vec<_> = ReplayPolicy::ALL.into_iter().filter(wanted).collect();
    let outcomes = replay(trace, &script, &replayed);
    let counted = recorded.device_writes.map(|writes| Counted {
        writes,
        interrupts: recorded.timer_interrupts.zip(spurious(trace)),
        expirations: recorded.expirations,
    });
    let wheel = FamilyCounts::from(script.operations.wheel);
    let queue = FamilyCounts::from(script.operations.queue);
    let asked = outcomes.iter().filter(|outcome| policies.contains(&outcome.policy));
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
            kernel: trace.header.kernel.clone(),
            cpus: trace.cpus,
            seconds: trace.span().0 as f64 / 1e9,
            hz: trace.hz.map(|hz| hz.value),
            recorded,
        },
        agreement: counted.and_then(|counted| Agreement::new(trace, &script, &counted, &outcomes)),
        policies: asked.map(result).collect(),
        cancelled_percent: 100.0 * undone as f64 / operations.start.max(1) as f64,
        operations,
        top_functions: top_functions(trace, &script),
        overlap: overlap::find(trace),
        periodic: overlap::periodic(trace),
        skipped_lines: trace.skipped_lines,
        dropped_events: trace.dropped_events,
        pending_at_start: script.pending_at_start.len(),
        unknown_cancels: script.unknown_cancels,
        inferred_operations: script.inferred,
        unplaced_starts: script.unplaced,
        inference: inference == Inference::On,
        notes: notes(&script, &outcomes),
    }
}

/// Replays under these policies.
fn replay(trace: &Trace, script: &Script, policies: &[ReplayPolicy]) -> Vec<Outcome> {
    let tick = trace.hz.and_then(|hz| Tick::new(hz.tick().to_duration()).ok()).unwrap_or_default();
    thread::scope(|scope| {
        let start = |policy: &ReplayPolicy| {
            let policy = *policy;
            scope.spawn(move || engine::run(script, trace.cpus, tick, policy))
        };
        let threads: Vec<_> = policies.iter().map(start).collect();
        let outcome = |thread: thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(outcome).collect()
    })
}

fn result(outcome: &Outcome) -> PolicyResult {
    PolicyResult {
        policy: outcome.policy.name(),
        device_writes: outcome.device.writes,
        inferred_writes: outcome.inferred_writes,
        wakeups: outcome.device.events,
        expirations: outcome.expirations,
        spurious_wakeups: outcome.device.spurious,
        early: outcome.early,
        lateness_ns: outcome.late.of_all().unwrap_or_default(),
        wheel_lateness_ns: outcome.late.of(Family::Wheel),
        queue_lateness_ns: outcome.late.of(Family::Queue),
    }
}

/// How many timer interrupts of the trace expired nothing; none if that cannot be seen.
fn spurious(trace: &Trace) -> Option<u64> {
    if trace.count(EventKind::LocalTimerExit) == 0
        || trace.count(EventKind::HrtimerExpireEntry) == 0
    {
        return None;
    }
    let mut spurious = 0;
    let mut is_idle: HashMap<CpuId, bool> = HashMap::new();
    let kinds =
        [EventKind::LocalTimerEntry, EventKind::HrtimerExpireEntry, EventKind::LocalTimerExit];
    for record in trace.records.of_kinds(&kinds) {
        match record.event {
            Event::LocalTimerEntry => drop(is_idle.insert(record.cpu, true)),
            Event::HrtimerExpireEntry { .. } => drop(is_idle.insert(record.cpu, false)),
            Event::LocalTimerExit => {
                spurious += u64::from(is_idle.insert(record.cpu, false) == Some(true));
            }
            _ => {}
        }
    }
    Some(spurious)
}

fn recorded(trace: &Trace, script: &Script) -> Recorded {
    let writes = trace.device_writes().count();
    let interrupts = trace.count(EventKind::LocalTimerEntry);
    Recorded {
        device_writes: (writes > 0).then_some(writes as u64),
        timer_interrupts: (interrupts > 0).then_some(interrupts as u64),
        expirations: script.operations.wheel.expiries + script.operations.queue.expiries,
        wheel_lateness_ns: script.late.of(Family::Wheel),
        queue_lateness_ns: script.late.of(Family::Queue),
    }
}

fn notes(script: &Script, outcomes: &[Outcome]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |holds: bool, text: String| {
        if holds {
            notes.push(text);
        }
    };
    note(
        script.inferred > 0,
        format!(
            "operations without a record, inferred where the record contradicts itself without \
             them: {} (--no-inference replays without). What they write is not counted: {}",
            script.inferred,
            inferred_writes(outcomes)
        ),
    );
    note(
        script.interrupts == Interrupts::Implied,
        "timer interrupts were not recorded (irq_vectors:local_timer_*): each is taken to begin \
         with its first expiry, and those that expired nothing are missing"
            .to_string(),
    );
    note(
        script.wheel == WheelEvents::Device,
        "there is no hrtimer event in the trace, so nothing is known of the tick: the wheel is \
         given an event device of its own"
            .to_string(),
    );
    note(
        script.unplaced > 0,
        format!(
            "armings left out, since nothing in the trace tells where their clock is: {}",
            script.unplaced
        ),
    );
    notes
}

fn inferred_writes(outcomes: &[Outcome]) -> String {
    let of_policy =
        |outcome: &Outcome| format!("{} under {}", outcome.inferred_writes, outcome.policy.name());
    outcomes.iter().map(of_policy).collect::<Vec<_>>().join(", ")
}

fn top_functions(trace: &Trace, script: &Script) -> Vec<FunctionStarts> {
    const SHOWN: usize = 10;
    let mut top: Vec<FunctionStarts> = script
        .starts_by_function
        .iter()
        .flat_map(|&(name, [wheel, queue])| [(name, "wheel", wheel), (name, "queue", queue)])
        .filter(|(.., starts)| *starts > 0)
        .map(|(name, family, starts)| {
            let function = trace.names.name(name).to_string();
            FunctionStarts { function, family, starts }
        })
        .collect();
    top.sort_by(|a, b| {
        b.starts.cmp(&a.starts).then_with(|| (&a.function, a.family).cmp(&(&b.function, b.family)))
    });
    top.truncate(SHOWN);
    top
}
