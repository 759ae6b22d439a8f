//! Explains why threads that slept until a deadline ran late, step by step.
//!
//! A sleep ends in steps, called hops: the timer is due, its CPU takes the timer interrupt, the
//! timer's callback begins, the callback wakes the thread, the thread runs. The cause of a hop is
//! what the CPU did during it.
//!
//! # Required events
//!
//! In addition to the events that a replay needs, the trace must have `sched_switch` and
//! `sched_wakeup`, without which it is unknown when threads run. The causes also need `cpu_idle`,
//! `softirq_entry` and `softirq_exit`, `irq_handler_entry` and `irq_handler_exit`. [`EVENTS`] lists
//! all of these, and [`Late::missing`] lists those that a trace lacks.

mod cause;
mod follow;
mod spans;

use crate::read::{EventKind, Trace};
use follow::{HopKind, Sleep};
use serde::Serialize;
use spans::Spans;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tickless_core::time::Ns;

/// The events to record in addition to the timers, so that late sleeps can be explained.
pub const EVENTS: [&str; 8] = [
    "sched:sched_switch",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "power:cpu_idle",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
];

/// How many sleeps are listed: those that ended longest after their deadlines.
const WORST_MAX: usize = 10;

/// Which sleeps are explained: all by default.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Select only sleeps of processes whose name contains this text.
    pub process: Option<String>,
    /// Select only sleeps of the process or thread with this number.
    pub pid: Option<u32>,
    /// Select only sleeps of threads whose name contains this text.
    pub thread: Option<String>,
    /// Whether to only count the sleeps that few users care about, and not to explain them: those
    /// of kernel threads, if no threads are selected, and those that were late because the timer
    /// wheel rounded their deadline up.
    pub folds: bool,
}

impl Selection {
    /// Returns whether a thread has the wanted name, process name and number, as far as these are
    /// set.
    pub(crate) fn has(&self, trace: &Trace, thread: u32) -> bool {
        let process = trace.processes.of(thread);
        let task = |number: u32| trace.tasks.get(&number).map(|name| &**name);
        let contains = |name: Option<&str>, part: &Option<String>| {
            let Some(part) = part else { return true };
            name.is_some_and(|name| name.contains(part.as_str()))
        };
        contains(task(thread), &self.thread)
            && contains(trace.processes.name(process).or_else(|| task(process)), &self.process)
            && self.pid.is_none_or(|pid| [thread, process].contains(&pid))
    }

    pub(crate) fn is_any(&self) -> bool {
        self.process.is_none() && self.pid.is_none() && self.thread.is_none()
    }
}

/// The late sleeps that were counted and not explained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Folded {
    pub kernel_threads: u64,
    pub wheel: u64,
}

/// Why the sleeps of a trace ended late. `docs/book/src/late.md` documents its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Late {
    pub file: String,
    pub threshold_ns: u64,
    /// How much of the time of all CPUs the trace shows.
    pub seen_percent: f64,
    pub sleeps: u64,
    pub late: u64,
    pub folded: Folded,
    pub causes: Vec<CauseShare>,
    pub is_partial: bool,
    pub worst: Vec<LateSleep>,
    pub missing: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CauseShare {
    pub cause: String,
    pub sleeps: u64,
    pub ns: u64,
    pub percent: f64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LateSleep {
    pub thread: String,
    pub pid: u32,
    pub cpu: u16,
    pub due_ns: u64,
    pub late_ns: u64,
    pub hops: Vec<Hop>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hop {
    pub hop: &'static str,
    pub ns: u64,
    pub cause: String,
}

/// Explains the selected sleeps that ended more than `threshold` after their deadlines. O(n log n)
/// in the number of events; takes 32 bytes of memory for every change of what a CPU does.
pub fn explain(trace: &Trace, threshold: Ns, selection: &Selection) -> Late {
    let spans = Spans::of(trace);
    let mut sleeps = follow::sleeps(trace);
    sleeps.retain(|sleep| selection.has(trace, sleep.pid));
    let mut folded = Folded::default();
    let mut is_explained = |sleep: &&Sleep| {
        // The wheel's rounding only delays the callback: the time after the callback must be short.
        let is_rounded = sleep.is_wheel
            && sleep.callback.since(sleep.due) <= cause::granularity(trace, sleep)
            && sleep.ran.since(sleep.callback) <= threshold;
        if selection.folds && selection.is_any() && trace.processes.is_kernel(sleep.pid) {
            folded.kernel_threads += 1;
        } else if selection.folds && is_rounded {
            folded.wheel += 1;
        } else {
            return true;
        }
        false
    };
    let mut found: Vec<LateSleep> = sleeps
        .iter()
        .filter(|sleep| sleep.late() > threshold)
        .filter(|sleep| is_explained(sleep))
        .map(|sleep| explained(trace, &spans, sleep, sleep.hops()))
        .collect();
    let mut causes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for hop in found.iter().flat_map(|sleep| &sleep.hops) {
        let (sleeps, ns) = causes.entry(&hop.cause).or_default();
        *sleeps += 1;
        *ns += hop.ns;
    }
    let all: u64 = causes.values().map(|&(_, ns)| ns).sum();
    let share = |(cause, (sleeps, ns)): (&str, (u64, u64))| CauseShare {
        cause: cause.to_string(),
        sleeps,
        ns,
        percent: 100.0 * ns as f64 / all.max(1) as f64,
    };
    let mut causes: Vec<CauseShare> = causes.into_iter().map(share).collect();
    causes.sort_by_key(|share| Reverse(share.ns));
    let count = found.len() as u64;
    found.sort_by_key(|sleep| (Reverse(sleep.late_ns), sleep.due_ns));
    found.truncate(WORST_MAX);
    Late {
        file: trace.path.clone(),
        threshold_ns: threshold.0,
        seen_percent: trace.seen_percent(),
        sleeps: sleeps.len() as u64,
        late: count,
        folded,
        causes,
        is_partial: false,
        worst: found,
        missing: missing(trace),
    }
}

/// A late wakeup, as the thread that woke measured it. Times are on the trace's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenWakeup {
    pub thread: u32,
    pub deadline: Ns,
    pub seen: Ns,
}

/// Explains one wakeup: the time from the deadline until the thread read the clock. The wakeup
/// ended the last sleep of the thread before that reading; returns `None` if the trace does not
/// have this sleep. Costs as much as [`explain`].
///
/// The last step is `after`: the time from when the thread ran until it read the clock. This is the
/// only step if the thread woke early, to spin until the deadline, and was interrupted.
pub fn explain_wakeup(trace: &Trace, wakeup: SeenWakeup) -> Option<LateSleep> {
    let SeenWakeup { thread, deadline, seen } = wakeup;
    let sleeps = follow::sleeps(trace);
    let is_its = |sleep: &&Sleep| sleep.pid == thread && sleep.ran <= seen;
    let sleep = sleeps.iter().filter(is_its).max_by_key(|sleep| sleep.ran)?;
    let mut hops = sleep.hops();
    hops.push((HopKind::After, sleep.ran, seen));
    for (_, from, to) in &mut hops {
        (*from, *to) = ((*from).max(deadline), (*to).max(deadline));
    }
    let explained = explained(trace, &Spans::of(trace), sleep, hops);
    Some(LateSleep { due_ns: deadline.0, late_ns: seen.since(deadline).0, ..explained })
}

/// Describes a late sleep, with the cause of each hop that took time.
fn explained(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    hops: Vec<(HopKind, Ns, Ns)>,
) -> LateSleep {
    let hops = hops.into_iter().filter(|(_, from, to)| to > from);
    let hop = |(hop, from, to): (HopKind, Ns, Ns)| Hop {
        hop: hop.name(),
        ns: to.since(from).0,
        cause: cause::of(trace, spans, sleep, hop, from, to),
    };
    LateSleep {
        thread: trace.tasks.get(&sleep.pid).map_or("?", |name| name).to_string(),
        pid: sleep.pid,
        cpu: sleep.cpu.0,
        due_ns: sleep.due.0,
        late_ns: sleep.late().0,
        hops: hops.map(hop).collect(),
    }
}

/// Describes which useful events the trace lacks, and what that means for the result.
fn missing(trace: &Trace) -> Vec<String> {
    const WANTED: [(EventKind, &str); 5] = [
        (EventKind::SchedSwitch, "when a thread ran cannot be told, so no sleep can be explained"),
        (EventKind::SchedWakeup, "which thread a timer woke cannot be told"),
        (EventKind::CpuIdle, "whether a CPU was idle is taken from the idle task"),
        (EventKind::SoftirqEntry, "softirqs look like the threads that they interrupt"),
        (EventKind::LocalTimerEntry, "an interrupt is taken to begin with its first callback"),
    ];
    let is_missing = |(kind, _): &&(EventKind, &str)| trace.count(*kind) == 0;
    let missing = WANTED.iter().filter(is_missing);
    missing.map(|(kind, so)| format!("no {}: {so}", kind.name())).collect()
}
