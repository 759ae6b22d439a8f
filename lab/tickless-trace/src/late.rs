//! Explains why threads that slept until a deadline ran late, step by step; why threads that could
//! run waited for a CPU; and what ended the sleeps of threads.
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
mod waits;

pub use cause::Cause;

use crate::list::List;
use crate::read::{Event, EventKind, Limited, Record, Trace};
use cause::Waiting;
use follow::{HopKind, Sleep};
use serde::Serialize;
use spans::Spans;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tickless_core::time::Ns;
use waits::{Wait, Waits};

/// The events to record in addition to the timers, so that late sleeps can be explained.
pub const EVENTS: [&str; 9] = [
    "sched:sched_switch",
    "sched:sched_migrate_task",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "power:cpu_idle",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
];

/// How many sleeps are listed, and how many waits: the longest.
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

    /// Returns whether all threads are selected.
    pub fn is_any(&self) -> bool {
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
    /// How many threads are selected, of those that the trace names.
    pub threads: u64,
    /// Whether threads are selected and the trace shows none of them running.
    pub never_ran: bool,
    pub sleeps: u64,
    pub late: u64,
    pub folded: Folded,
    pub causes: Vec<CauseShare>,
    pub is_partial: bool,
    pub worst: Vec<LateSleep>,
    pub waits: RunWaits,
    /// What ended the sleeps of the selected threads, of every kind.
    pub woken_by: Vec<Share>,
    /// How much time the hypervisor took of all CPUs; `None` if that was not recorded.
    pub steal_ns: Option<u64>,
    /// What else is to know about the causes.
    pub notes: Vec<String>,
    pub missing: Vec<String>,
}

/// How often the selected threads could run and waited for a CPU, and why.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RunWaits {
    /// All waits whose beginning and end the trace shows, and how long they were in all.
    pub waits: u64,
    pub ns: u64,
    /// Those longer than the threshold, without those of the kernel's threads if these are folded.
    pub late: u64,
    pub late_ns: u64,
    pub causes: Vec<Share>,
    /// How many of the causes are threads.
    #[serde(skip)]
    pub threads: usize,
    /// The programs whose threads kept the CPU, each with the sum of its threads.
    pub programs: Vec<Share>,
    pub worst: Vec<LongWait>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LongWait {
    pub thread: String,
    pub pid: u32,
    /// When the thread could run, on the trace's clock.
    pub ready_ns: u64,
    pub waited_ns: u64,
    /// Whether the thread lost its CPU; otherwise it was woken.
    pub is_preempted: bool,
    pub hops: Vec<Hop>,
}

/// How often something happened, and how long it took in all.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    pub cause: String,
    pub times: u64,
    pub ns: u64,
    pub percent: f64,
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
    pub cause: Cause,
}

/// Explains the selected sleeps that ended more than `threshold` after their deadlines. O(n log n)
/// in the number of events, on two threads; takes 16 bytes, in memory or in a temporary file, for
/// every change of what a CPU does.
pub fn explain(trace: &Trace, threshold: Ns, selection: &Selection) -> Late {
    let folds_kernel = selection.folds && selection.is_any();
    let is_selected = |pid: u32| selection.has(trace, pid);
    let is_followed =
        |pid: u32| is_selected(pid) && !(folds_kernel && trace.processes.kernel.contains(&pid));
    let followed = || {
        let mut waits = Waits::new(trace, threshold, is_followed);
        let spans = Spans::of(trace, |record, activity| waits.follow(record, activity));
        (waits, spans)
    };
    let ((waits, spans), (sleeps, late)) =
        rayon::join(followed, || late_sleeps(trace, threshold, is_selected));
    let mut folded = Folded::default();
    let mut is_explained = |sleep: &&Sleep| {
        // The wheel's rounding only delays the callback: the time after the callback must be short.
        let is_rounded = sleep.is_wheel
            && sleep.callback.since(sleep.due) <= cause::granularity(trace, sleep)
            && sleep.ran.since(sleep.callback) <= threshold;
        if folds_kernel && trace.processes.kernel.contains(&sleep.pid) {
            folded.kernel_threads += 1;
        } else if selection.folds && is_rounded {
            folded.wheel += 1;
        } else {
            return true;
        }
        false
    };
    let mut worst =
        Worst { all: Vec::new(), count: 0, key: |it: &LateSleep| (it.late_ns, it.due_ns) };
    let explain_sleeps = || {
        let hops = late.iter().filter(|sleep| is_explained(sleep)).flat_map(|sleep| {
            let sleep = explained(trace, &spans, sleep, sleep.hops());
            let hops = sleep.hops.clone();
            worst.add(sleep, || release(trace, &spans));
            hops
        });
        shares(sums(hops.map(|hop| (hop.cause, 1, hop.ns))))
    };
    let (causes, run_waits) =
        rayon::join(explain_sleeps, || explained_waits(trace, &spans, &waits));
    let share =
        |Share { cause, times: sleeps, ns, percent }| CauseShare { cause, sleeps, ns, percent };
    let selected: BTreeSet<u32> =
        threads(trace).into_iter().filter(|pid| is_selected(*pid)).collect();
    let ran = |record: &Record| match record.event {
        Event::SchedSwitch { next_pid, .. } if selected.contains(&next_pid) => true,
        _ => selected.contains(&record.pid),
    };
    let is_unknown = sleeps + waits.count == 0 && !selected.is_empty();
    let never_ran = is_unknown && !trace.records.iter().any(ran);
    let threads = selected.len() as u64;
    let never = format!(
        "none of the {threads} selected threads ran in this trace: were they under load while it \
         was recorded?"
    );
    Late {
        file: trace.path.clone(),
        threshold_ns: threshold.0,
        seen_percent: trace.seen_percent(),
        threads,
        never_ran,
        sleeps,
        late: worst.count,
        folded,
        causes: causes.into_iter().map(share).collect(),
        is_partial: false,
        worst: worst.finish(),
        woken_by: shares(sums(
            waits.wakers.iter().map(|(waker, &(times, ns))| (waits.describe(*waker), times, ns)),
        )),
        waits: run_waits,
        notes: never_ran.then_some(never).into_iter().chain(seldom_throttled(trace)).collect(),
        steal_ns: trace.processes.steal.map(|steal| steal.0),
        missing: missing(trace),
    }
}

/// Returns how many sleeps the selected threads had, and those that were late.
fn late_sleeps(
    trace: &Trace,
    threshold: Ns,
    is_selected: impl Fn(u32) -> bool,
) -> (u64, List<Sleep>) {
    let (mut sleeps, mut late) = (0, List::default());
    follow::sleeps(trace, |sleep| {
        if is_selected(sleep.pid) {
            sleeps += 1;
            if sleep.late() > threshold {
                late.push(sleep);
            }
        }
    });
    (sleeps, late)
}

/// The longest sleeps or waits of many, the longest first.
struct Worst<T> {
    all: Vec<T>,
    count: u64,
    /// Returns how long one was, and when it began.
    key: fn(&T) -> (u64, u64),
}

impl<T> Worst<T> {
    /// Adds one. Calls `often` after each thousand.
    fn add(&mut self, one: T, often: impl Fn()) {
        self.count += 1;
        self.all.push(one);
        if self.count.is_multiple_of(1_000) {
            self.cut();
            often();
        }
    }

    fn cut(&mut self) {
        let key = self.key;
        self.all.sort_by_key(|it| (Reverse(key(it).0), key(it).1));
        self.all.truncate(WORST_MAX);
    }

    fn finish(mut self) -> Vec<T> {
        self.cut();
        self.all
    }
}

/// Gives back the memory of what was looked up.
fn release(trace: &Trace, spans: &Spans) {
    spans.release();
    trace.records.release(0..trace.records.len());
}

/// Returns the numbers of the threads that a trace names, without the idle threads.
fn threads(trace: &Trace) -> BTreeSet<u32> {
    let named = trace.tasks.keys().copied().chain(trace.processes.threads());
    named.filter(|pid| *pid != 0).collect()
}

/// Returns the names of the eight processes with the most events in a trace.
pub fn busiest(trace: &Trace) -> Vec<String> {
    let name = |process| trace.processes.name(process).unwrap_or_else(|| trace.task_name(process));
    let pids = trace.records.iter().map(|record| record.pid).filter(|pid| *pid != 0);
    let all = shares(sums(pids.map(|pid| (name(trace.processes.of(pid)), 1, 1))));
    all.into_iter().take(8).map(|it| it.cause).collect()
}

/// Adds up how often each cause occurred, and its time.
fn sums<C: Ord>(of: impl Iterator<Item = (C, u64, u64)>) -> BTreeMap<C, (u64, u64)> {
    let mut sums: BTreeMap<C, (u64, u64)> = BTreeMap::new();
    for (cause, times, ns) in of {
        let sum = sums.entry(cause).or_default();
        *sum = (sum.0 + times, sum.1 + ns);
    }
    sums
}

/// Returns the share of each sum, those with the most time first.
fn shares<C: ToString>(sums: BTreeMap<C, (u64, u64)>) -> Vec<Share> {
    let all: u64 = sums.values().map(|&(_, ns)| ns).sum();
    let share = |(cause, (times, ns)): (C, (u64, u64))| {
        let percent = 100.0 * ns as f64 / all.max(1) as f64;
        Share { cause: cause.to_string(), times, ns, percent }
    };
    let mut shares: Vec<Share> = sums.into_iter().map(share).collect();
    shares.sort_by(|one, other| other.ns.cmp(&one.ns).then_with(|| one.cause.cmp(&other.cause)));
    shares
}

/// Explains the waits that were longer than the threshold.
fn explained_waits(trace: &Trace, spans: &Spans, waits: &Waits<'_>) -> RunWaits {
    let is_limit = |hop: &Hop| matches!(hop.cause, Cause::Limit(_));
    // For each thread, how long a CPU limit seems to have held it up in all.
    let mut limited: BTreeMap<u32, u64> = BTreeMap::new();
    if !trace.processes.limits.is_empty() {
        for wait in waits.long.iter() {
            let ns = hops(trace, spans, waits, wait).into_iter().filter(is_limit).map(|it| it.ns);
            *limited.entry(wait.pid).or_default() += ns.sum::<u64>();
        }
    }
    // A thread waits for its group's quota no longer than the kernel says that the group was
    // stopped, and the first half of such a wait can have other causes.
    let is_doubted = |pid| {
        let group = trace.processes.limited_group(pid).zip(limited.get(&pid));
        group.is_some_and(|(group, ns)| ns / 2 > group.counters.stood_ns)
    };
    let mut late_ns = 0;
    let mut worst =
        Worst { all: Vec::new(), count: 0, key: |it: &LongWait| (it.waited_ns, it.ready_ns) };
    let hops = waits.long.iter().flat_map(|wait| {
        let mut hops = hops(trace, spans, waits, wait);
        if is_doubted(wait.pid) {
            hops.iter_mut().filter(|hop| is_limit(hop)).for_each(|hop| {
                hop.cause = "unknown: a CPU limit or other threads; the kernel counts less time \
                             for the limit"
                    .into();
            });
        }
        late_ns += wait.time().0;
        let long = LongWait {
            thread: trace.task_name(wait.pid).to_string(),
            pid: wait.pid,
            ready_ns: wait.ready.0,
            waited_ns: wait.time().0,
            is_preempted: wait.is_preempted,
            hops: hops.clone(),
        };
        worst.add(long, || release(trace, spans));
        hops
    });
    let causes = sums(hops.map(|hop| (hop.cause, 1, hop.ns)));
    // What no program caused counts for the percentages only.
    let programs = causes.iter().map(|(cause, &(times, ns))| (cause.program(), times, ns));
    let mut programs = shares(sums(programs));
    programs.retain(|it| !it.cause.is_empty());
    let threads = causes.keys().filter(|cause| matches!(cause, Cause::Thread { .. })).count();
    RunWaits {
        waits: waits.count,
        ns: waits.time.0,
        late: worst.count,
        late_ns,
        causes: shares(causes),
        threads,
        programs,
        worst: worst.finish(),
    }
}

/// Returns a remark about each group that was throttled too seldom to be named as a cause.
fn seldom_throttled(trace: &Trace) -> Vec<String> {
    let seldom = trace.processes.limits.iter().filter(|limited| !limited.is_often());
    let remark = |limited: &Limited| {
        let Limited { path, counters } = limited;
        format!(
            "{path} used up its quota in {} of {} periods, and was stopped for {:.3} ms in all: \
             too seldom to be told from the causes below, which can have this time in them",
            counters.throttled,
            counters.periods,
            counters.stood_ns as f64 / 1e6
        )
    };
    seldom.map(remark).collect()
}

/// Explains a wait to run: a step for a CPU limit, then one for each CPU for which it waited.
fn hops(trace: &Trace, spans: &Spans, waits: &Waits<'_>, wait: &Wait) -> Vec<Hop> {
    let moves = waits.moves(wait);
    let hop = |from: Ns, to: Ns, cause| Hop { hop: "run", ns: to.since(from).0, cause };
    let on = |cpu, from, to| Waiting { pid: wait.pid, cpu, from, to };
    let since = cause::limited_until(trace, spans, &on(wait.ran_on, wait.ready, wait.ran));
    let begins = [(wait.cpu, wait.ready)].into_iter().chain(moves.iter().copied());
    let ends = moves.iter().map(|(_, at)| *at).chain([wait.ran]);
    let legs = begins.zip(ends).map(|((cpu, from), to)| (cpu, from.max(since), to));
    let legs = [(wait.ran_on, wait.ready, since)].into_iter().chain(legs);
    let legs = legs.filter(|(_, from, to)| to > from);
    let last = moves.last().map_or(wait.cpu, |(cpu, _)| *cpu);
    let leg = |(cpu, from, to)| {
        let cause = match to == since || last == wait.ran_on {
            true => cause::run(trace, spans, &on(cpu, from, to)),
            false => "migration: the trace does not show when the thread was moved".into(),
        };
        hop(from, to, cause)
    };
    legs.map(leg).collect()
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
    let mut last: Option<Sleep> = None;
    follow::sleeps(trace, |sleep| {
        let is_its = sleep.pid == thread && sleep.ran <= seen;
        if is_its && last.is_none_or(|last| last.ran <= sleep.ran) {
            last = Some(sleep);
        }
    });
    let sleep = last?;
    let mut hops = sleep.hops();
    hops.push((HopKind::After, sleep.ran, seen));
    for (_, from, to) in &mut hops {
        (*from, *to) = ((*from).max(deadline), (*to).max(deadline));
    }
    let explained = explained(trace, &Spans::of(trace, |_, _| ()), &sleep, hops);
    Some(LateSleep { due_ns: deadline.0, late_ns: seen.since(deadline).0, ..explained })
}

/// Describes a late sleep, with the cause of each hop that took time.
fn explained(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    hops: Vec<(HopKind, Ns, Ns)>,
) -> LateSleep {
    let hops = hops.into_iter().flat_map(|(hop, from, to)| {
        let until = match hop {
            HopKind::Run => cause::limited_until(trace, spans, &Waiting::after(sleep, from, to)),
            _ => from,
        };
        [(hop, from, until), (hop, until, to)]
    });
    let hops = hops.filter(|(_, from, to)| to > from);
    let hop = |(hop, from, to): (HopKind, Ns, Ns)| Hop {
        hop: hop.name(),
        ns: to.since(from).0,
        cause: cause::of(trace, spans, sleep, hop, from, to),
    };
    LateSleep {
        thread: trace.task_name(sleep.pid).to_string(),
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
        (EventKind::SchedSwitch, "when threads ran is unknown: no sleep, no wait is explained"),
        (EventKind::SchedWakeup, "which thread a timer woke cannot be told"),
        (EventKind::CpuIdle, "whether a CPU was idle is taken from the idle task"),
        (EventKind::SoftirqEntry, "softirqs look like the threads that they interrupt"),
        (EventKind::LocalTimerEntry, "an interrupt is taken to begin with its first callback"),
    ];
    let is_missing = |(kind, _): &&(EventKind, &str)| trace.count(*kind) == 0;
    let missing = WANTED.iter().filter(is_missing);
    missing.map(|(kind, so)| format!("no {}: {so}", kind.name())).collect()
}
