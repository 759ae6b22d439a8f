//! Finds the cause of each step (hop) between a sleep's deadline and the running thread.

use super::follow::{HopKind, Sleep};
use super::spans::{Activity, Spans};
use crate::read::{Event, Limited, Trace};
use serde::{Serialize, Serializer};
use std::{fmt, ptr};
use tickless_core::time::{CpuId, Ns};

/// No CPU takes longer than this to leave an idle state.
const IDLE_EXIT_MAX: Ns = Ns(1_000_000);

/// An interrupt that comes within this time was not held off: programs cannot turn interrupts off,
/// and the clock's event and the processor take some microseconds themselves.
const INTERRUPT_MIN: Ns = Ns(10_000);

/// What the time of a hop was spent on. The times of hops with the same cause are added up. JSON
/// has its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// A thread of a program kept the CPU. `class` is a remark on the thread's priority.
    Thread {
        thread: String,
        class: String,
        program: String,
    },
    /// This control group had used up its quota.
    Limit(String),
    Other(String),
}

impl Cause {
    /// Returns the program whose thread kept the CPU; empty for other causes.
    pub(super) fn program(&self) -> &str {
        match self {
            Cause::Thread { program, .. } => program,
            _ => "",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Thread { thread, class, .. } => write!(f, "thread {thread}{class} kept the CPU"),
            Cause::Limit(group) => write!(f, "CPU limit: {group} had used up its quota"),
            Cause::Other(text) => f.write_str(text),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<T: AsRef<str>> From<T> for Cause {
    fn from(text: T) -> Cause {
        Cause::Other(text.as_ref().to_string())
    }
}

/// Returns what caused a hop, which is one step of a late wakeup.
pub(super) fn of(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    hop: HopKind,
    from: Ns,
    to: Ns,
) -> Cause {
    let on_timer_cpu = || spans.longest(sleep.cpu, from, to);
    match hop {
        HopKind::Slack => "timer slack: the sleeper allowed it".into(),
        HopKind::Wheel if to.since(from) <= granularity(trace, sleep) => {
            "timer wheel: far deadlines are rounded up".into()
        }
        HopKind::Wheel | HopKind::Interrupt if spans.is_unseen(sleep.cpu) => unseen(sleep.cpu),
        HopKind::After if spans.is_unseen(sleep.ran_on) => unseen(sleep.ran_on),
        HopKind::Wheel | HopKind::Interrupt => {
            interrupt(trace, spans, on_timer_cpu(), sleep, from, to)
        }
        HopKind::Callback => match on_timer_cpu() {
            Some(Activity::Callback(function)) => {
                format!("callback {} ran before it", trace.names.name(function)).into()
            }
            _ => "the timer interrupt itself".into(),
        },
        HopKind::Wakeup => "waking the thread".into(),
        HopKind::Run => run(trace, spans, &Waiting::after(sleep, from, to)),
        HopKind::After => match spans.longest(sleep.ran_on, from, to) {
            Some(Activity::Thread(pid)) if pid == sleep.pid => "the thread itself".into(),
            _ => run(trace, spans, &Waiting::after(sleep, from, to)),
        },
    }
}

/// Describes why a timer interrupt came late, by what its CPU did for most of that time.
fn interrupt(
    trace: &Trace,
    spans: &Spans,
    activity: Option<Activity>,
    sleep: &Sleep,
    from: Ns,
    to: Ns,
) -> Cause {
    match activity {
        Some(Activity::Idle(_) | Activity::Thread(0)) if to.since(from) > IDLE_EXIT_MAX => {
            match spans.has_writes && !is_programmed(trace, sleep, from) {
                true => "the timer device was not programmed for it".into(),
                false => "the timer device's event was lost".into(),
            }
        }
        Some(Activity::Thread(pid)) if pid != 0 && to.since(from) < INTERRUPT_MIN => {
            "taking the interrupt".into()
        }
        Some(Activity::Thread(pid)) if pid != 0 => {
            format!("no interrupt while {} ran", thread(trace, pid)).into()
        }
        Some(Activity::Softirq(it)) => {
            format!("no interrupt while softirq {} ran", softirq(it)).into()
        }
        Some(Activity::TimerInterrupt) => "the timer interrupt before it".into(),
        Some(Activity::Callback(function)) => {
            format!("callback {} in the timer interrupt before it", trace.names.name(function))
                .into()
        }
        activity => idle_or_irq(activity),
    }
}

/// Returns whether the timer device of a sleep's CPU was programmed between the arming of the
/// sleep's timer and `until`.
fn is_programmed(trace: &Trace, sleep: &Sleep, until: Ns) -> bool {
    let end = trace.records.partition_point(|record| record.time <= until);
    let start = trace.records.partition_point(|record| record.time < sleep.armed).min(end);
    let mut records = trace.records[start..end].iter();
    records.any(|record| record.event.is_device_write() && record.cpu == sleep.cpu)
}

/// A time in which a thread could run on a CPU, and did not.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) pid: u32,
    pub(super) cpu: CpuId,
    pub(super) from: Ns,
    pub(super) to: Ns,
}

impl Waiting {
    pub(super) fn after(sleep: &Sleep, from: Ns, to: Ns) -> Waiting {
        Waiting { pid: sleep.pid, cpu: sleep.ran_on, from, to }
    }

    fn is_long(&self) -> bool {
        self.to.since(self.from) > IDLE_EXIT_MAX
    }
}

/// Describes why a thread that could run did not, by what its CPU did for most of that time.
pub(super) fn run(trace: &Trace, spans: &Spans, wait: &Waiting) -> Cause {
    if spans.is_unseen(wait.cpu) {
        return unseen(wait.cpu);
    }
    if awaited_refill(trace, spans, wait).is_some() {
        let group = trace.processes.limited_group(wait.pid);
        return Cause::Limit(group.map_or("the group", |group| &group.path).to_string());
    }
    match spans.longest(wait.cpu, wait.from, wait.to) {
        Some(Activity::Idle(_) | Activity::Thread(0)) if wait.is_long() => {
            "the CPU was idle and left the thread waiting".into()
        }
        Some(Activity::Thread(pid)) if pid == wait.pid => "the scheduler".into(),
        Some(Activity::Thread(pid)) if pid != 0 => competitor(trace, spans, wait, pid),
        Some(Activity::Softirq(vector)) => {
            format!("softirq {} kept the CPU", softirq(vector)).into()
        }
        Some(Activity::TimerInterrupt | Activity::Callback(_)) => "the timer interrupt".into(),
        activity => idle_or_irq(activity),
    }
}

/// Returns until when a CPU limit held up a thread that could run; `from` if none did. What keeps
/// the CPU for long after the quota was refilled is another cause.
pub(super) fn limited_until(trace: &Trace, spans: &Spans, wait: &Waiting) -> Ns {
    match awaited_refill(trace, spans, wait) {
        Some(refill) if wait.to.since(refill) > IDLE_EXIT_MAX => refill,
        Some(_) => wait.to,
        None => wait.from,
    }
}

/// Describes the thread that kept a CPU while another one waited there.
fn competitor(trace: &Trace, spans: &Spans, wait: &Waiting, pid: u32) -> Cause {
    const REAL_TIME: std::ops::Range<i16> = 0..100;
    let priority = spans.priority(pid);
    let is_real_time = spans.priority(wait.pid).is_some_and(|it| REAL_TIME.contains(&it));
    let during = || {
        let begin = trace.records.partition_point(|record| record.time < wait.from);
        trace.records[begin..].iter().take_while(|record| record.time < wait.to)
    };
    // The scheduler takes a thread of a lower class only if the class of the waiting one is
    // throttled, by its own limit or for the share of the other threads.
    let is_throttled = is_real_time
        && wait.is_long()
        && during().any(|it| match it.event {
            Event::SchedSwitch { next_pid, next_priority: Some(priority), .. } => {
                it.cpu == wait.cpu && next_pid != 0 && priority >= REAL_TIME.end
            }
            _ => false,
        });
    let name = thread(trace, pid);
    if is_throttled {
        return format!("real-time class throttled: thread {name} ran instead").into();
    }
    if name.starts_with("migration/") {
        return format!("migration: {name} moved threads").into();
    }
    let class = match priority {
        None => String::new(),
        Some(..0) => " (deadline class)".to_string(),
        Some(real_time @ 0..100) => format!(" (real-time priority {})", 99 - real_time),
        Some(normal) => format!(" (nice {})", normal - 120),
    };
    let program = trace.processes.name(trace.processes.of(pid));
    let program = program.unwrap_or_else(|| trace.task_name(pid)).to_string();
    Cause::Thread { thread: name, class, program }
}

/// Describes an activity that delays every kind of hop alike: idle, or an interrupt.
fn idle_or_irq(activity: Option<Activity>) -> Cause {
    match activity {
        Some(Activity::Idle(state)) => format!("leaving idle state {state}").into(),
        Some(Activity::Thread(_)) => "leaving idle".into(),
        Some(Activity::Irq(irq)) => format!("interrupt {irq} was handled").into(),
        _ => "unknown".into(),
    }
}

/// Returns by how much the timer wheel can be late: the width of the timer's bucket (at most an
/// eighth of the timer's duration), one tick because the kernel rounds the time of the arming up,
/// and one because the bucket expires with the first tick after its end.
pub(super) fn granularity(trace: &Trace, sleep: &Sleep) -> Ns {
    let tick = trace.tick().unwrap_or(Ns(0));
    Ns(sleep.due.since(sleep.armed).0 / 8 + 2 * tick.0)
}

/// Returns the last refill of the quota of CPU time for which a thread waited, if it waited for
/// long, and mostly because its group had used up its quota.
///
/// If the trace lists the group's threads, the quota must have been refilled in the second half of
/// the wait, while no thread of the group ran. Otherwise, it must have been refilled just before
/// the thread ran, and no thread of the process must have begun to run before the refill. An idle
/// CPU runs the thread at once after the refill. A busy CPU runs it with one of its next ticks,
/// because a refill does not preempt the running thread.
fn awaited_refill(trace: &Trace, spans: &Spans, wait: &Waiting) -> Option<Ns> {
    if !wait.is_long() {
        return None;
    }
    let Waiting { pid, cpu, from, to } = *wait;
    let group = trace.processes.limited_group(pid);
    let is_busy = matches!(spans.longest(cpu, from, to),
        Some(Activity::Thread(other)) if other != 0 && other != pid);
    // At least half of the wait is before the refill: that cannot be longer than all of the time
    // for which the kernel stopped the group.
    let can_be =
        |limited: &Limited| limited.is_often() && to.since(from).0 / 2 <= limited.counters.stood_ns;
    let within = match (group, is_busy) {
        (Some(group), _) if !can_be(group) => return None,
        (Some(_), _) => Ns(to.since(from).0 / 2),
        (None, _) if trace.processes.knows_limits => return None,
        (None, true) => Ns(2 * trace.tick_or_default().0),
        (None, false) => IDLE_EXIT_MAX,
    };
    let before = &spans.refills[..spans.refills.partition_point(|at| *at <= to)];
    let mut refills = before.iter().rev().copied().take_while(|at| to.since(*at) <= within);
    if let Some(group) = group {
        let is_its = |pid| trace.processes.limited_group(pid).is_some_and(|it| ptr::eq(it, group));
        return refills.find(|refill| !spans.running_at(*refill).any(is_its));
    }
    let refill = refills.next()?;
    let process = trace.processes.of(pid);
    let begin = trace.records.partition_point(|record| record.time <= from);
    let mut waited = trace.records[begin..].iter().take_while(|it| it.time < refill);
    let has_run = waited.any(|record| match record.event {
        Event::SchedSwitch { next_pid, .. } => trace.processes.of(next_pid) == process,
        _ => false,
    });
    (refill.since(from) > IDLE_EXIT_MAX && !has_run).then_some(refill)
}

fn unseen(cpu: CpuId) -> Cause {
    format!("unknown: nothing was recorded of CPU {}'s idle thread", cpu.0).into()
}

pub(super) fn thread(trace: &Trace, pid: u32) -> String {
    format!("{}-{pid}", trace.task_name(pid))
}

pub(super) fn softirq(vector: u32) -> String {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vector as usize).map_or_else(|| vector.to_string(), |name| (*name).to_string())
}
