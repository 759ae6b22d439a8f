//! Finds the cause of each step (hop) between a sleep's deadline and the running thread. Steps with
//! the same cause get the same text, so that their times can be added up.

use super::follow::{HopKind, Sleep};
use super::spans::{Activity, Spans};
use crate::read::{Event, Limited, Trace};
use std::ptr;
use tickless_core::time::{CpuId, Ns};

/// No CPU takes longer than this to leave an idle state.
const IDLE_EXIT_MAX: Ns = Ns(1_000_000);

/// An interrupt that comes within this time was not held off: programs cannot turn interrupts off,
/// and the clock's event and the processor take some microseconds themselves.
const INTERRUPT_MIN: Ns = Ns(10_000);

/// The timer callbacks that give new CPU time to groups of threads that used up their quota.
const QUOTA_FUNCTIONS: [&str; 2] = ["sched_cfs_period_timer", "sched_cfs_slack_timer"];

/// The beginning of the cause that names a CPU limit.
pub(super) const LIMIT: &str = "CPU limit: ";

/// Describes what caused a hop, which is one step of a late wakeup.
pub(super) fn of(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    hop: HopKind,
    from: Ns,
    to: Ns,
) -> String {
    let on_timer_cpu = || spans.longest(sleep.cpu, from, to);
    match hop {
        HopKind::Slack => "timer slack: the sleeper allowed it".to_string(),
        HopKind::Wheel if to.since(from) <= granularity(trace, sleep) => {
            "timer wheel: far deadlines are rounded up".to_string()
        }
        HopKind::Wheel | HopKind::Interrupt if spans.is_unseen(sleep.cpu) => unseen(sleep.cpu),
        HopKind::After if spans.is_unseen(sleep.ran_on) => unseen(sleep.ran_on),
        HopKind::Wheel | HopKind::Interrupt => {
            interrupt(trace, spans, on_timer_cpu(), sleep, from, to)
        }
        HopKind::Callback => match on_timer_cpu() {
            Some(Activity::Callback(function)) => {
                format!("callback {} ran before it", trace.names.name(function))
            }
            _ => "the timer interrupt itself".to_string(),
        },
        HopKind::Wakeup => "waking the thread".to_string(),
        HopKind::Run => run(trace, spans, &Waiting::after(sleep, from, to)),
        HopKind::After => match spans.longest(sleep.ran_on, from, to) {
            Some(Activity::Thread(pid)) if pid == sleep.pid => "the thread itself".to_string(),
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
) -> String {
    match activity {
        Some(Activity::Idle(_) | Activity::Thread(0)) if to.since(from) > IDLE_EXIT_MAX => {
            match spans.has_writes && !is_programmed(trace, sleep, from) {
                true => "the timer device was not programmed for it".to_string(),
                false => "the timer device's event was lost".to_string(),
            }
        }
        Some(Activity::Thread(pid)) if pid != 0 && to.since(from) < INTERRUPT_MIN => {
            "taking the interrupt".to_string()
        }
        Some(Activity::Thread(pid)) if pid != 0 => {
            format!("no interrupt while {} ran", thread(trace, pid))
        }
        Some(Activity::Softirq(it)) => format!("no interrupt while softirq {} ran", softirq(it)),
        Some(Activity::TimerInterrupt) => "the timer interrupt before it".to_string(),
        Some(Activity::Callback(function)) => {
            format!("callback {} in the timer interrupt before it", trace.names.name(function))
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
pub(super) fn run(trace: &Trace, spans: &Spans, wait: &Waiting) -> String {
    if spans.is_unseen(wait.cpu) {
        return unseen(wait.cpu);
    }
    if awaited_refill(trace, spans, wait).is_some() {
        let group = trace.processes.limited_group(wait.pid).and_then(|it| it.path.as_deref());
        return format!("{LIMIT}{} had used up its quota", group.unwrap_or("the group"));
    }
    match spans.longest(wait.cpu, wait.from, wait.to) {
        Some(Activity::Idle(_) | Activity::Thread(0)) if wait.is_long() => {
            "the CPU was idle and left the thread waiting".to_string()
        }
        Some(Activity::Thread(pid)) if pid == wait.pid => "the scheduler".to_string(),
        Some(Activity::Thread(pid)) if pid != 0 => competitor(trace, spans, wait, pid),
        Some(Activity::Softirq(vector)) => format!("softirq {} kept the CPU", softirq(vector)),
        Some(Activity::TimerInterrupt | Activity::Callback(_)) => "the timer interrupt".to_string(),
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
fn competitor(trace: &Trace, spans: &Spans, wait: &Waiting, pid: u32) -> String {
    const REAL_TIME: std::ops::Range<i16> = 0..100;
    let priority = spans.priority(pid);
    let is_real_time = spans.priority(wait.pid).is_some_and(|it| REAL_TIME.contains(&it));
    let begin = trace.records.partition_point(|record| record.time < wait.from);
    let mut during = trace.records[begin..].iter().take_while(|record| record.time < wait.to);
    // The scheduler takes a thread of a lower class only if the class of the waiting one is
    // throttled, by its own limit or for the share of the other threads.
    let is_throttled = is_real_time
        && wait.is_long()
        && during.any(|it| match it.event {
            Event::SchedSwitch { next_pid, next_priority: Some(priority), .. } => {
                it.cpu == wait.cpu && next_pid != 0 && priority >= REAL_TIME.end
            }
            _ => false,
        });
    let name = thread(trace, pid);
    if is_throttled {
        return format!("real-time class throttled: thread {name} ran instead");
    }
    if name.starts_with("migration/") {
        return format!("migration: {name} moved threads");
    }
    let class = match priority {
        None => return format!("thread {name} kept the CPU"),
        Some(..0) => "deadline class".to_string(),
        Some(real_time @ 0..100) => format!("real-time priority {}", 99 - real_time),
        Some(normal) => format!("nice {}", normal - 120),
    };
    format!("thread {name} ({class}) kept the CPU")
}

/// Describes an activity that delays every kind of hop alike: idle, or an interrupt.
fn idle_or_irq(activity: Option<Activity>) -> String {
    match activity {
        Some(Activity::Idle(state)) => format!("leaving idle state {state}"),
        Some(Activity::Thread(_)) => "leaving idle".to_string(),
        Some(Activity::Irq(irq)) => format!("interrupt {irq} was handled"),
        _ => "unknown".to_string(),
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
    let Waiting { pid, cpu, from, to } = *wait;
    let group = trace.processes.limited_group(pid);
    let is_busy = matches!(spans.longest(cpu, from, to),
        Some(Activity::Thread(other)) if other != 0 && other != pid);
    // At least half of the wait is before the refill: that cannot be longer than all of the time
    // for which the kernel stopped the group.
    let can_be = |limited: &Limited| {
        let stood = limited.counters.map_or(u64::MAX, |counters| counters.stood_ns);
        limited.is_often() && to.since(from).0 / 2 <= stood
    };
    let within = match (group, is_busy) {
        _ if !wait.is_long() => return None,
        (Some(group), _) if !can_be(group) => return None,
        (Some(_), _) => Ns(to.since(from).0 / 2),
        (None, _) if trace.processes.knows_limits => return None,
        (None, true) => Ns(2 * trace.tick_or_default().0),
        (None, false) => IDLE_EXIT_MAX,
    };
    let functions = QUOTA_FUNCTIONS.map(|name| trace.names.find(name));
    let end = trace.records.partition_point(|record| record.time <= to);
    let near = trace.records[..end].iter().rev();
    let mut refills = near.take_while(|record| to.since(record.time) <= within).filter(|record| {
        matches!(record.event, Event::HrtimerExpireEntry { function, .. }
            if functions.contains(&Some(function)))
    });
    if let Some(group) = group {
        let is_its = |pid| trace.processes.limited_group(pid).is_some_and(|it| ptr::eq(it, group));
        let refill = refills.find(|refill| !spans.running_at(refill.time).any(is_its));
        return refill.map(|refill| refill.time);
    }
    let refill = refills.next()?.time;
    let process = trace.processes.of(pid);
    let begin = trace.records.partition_point(|record| record.time <= from);
    let mut waited = trace.records[begin..end].iter().take_while(|it| it.time < refill);
    let has_run = waited.any(|record| match record.event {
        Event::SchedSwitch { next_pid, .. } => trace.processes.of(next_pid) == process,
        _ => false,
    });
    (refill.since(from) > IDLE_EXIT_MAX && !has_run).then_some(refill)
}

fn unseen(cpu: CpuId) -> String {
    format!("unknown: nothing was recorded of CPU {}'s idle thread", cpu.0)
}

pub(super) fn thread(trace: &Trace, pid: u32) -> String {
    format!("{}-{pid}", trace.task_name(pid))
}

/// Returns the name of the program whose thread kept the CPU, if that is the cause.
pub(super) fn program(trace: &Trace, cause: &str) -> Option<String> {
    let kept = cause.strip_prefix("thread ")?.strip_suffix(" kept the CPU")?;
    let thread = kept.rsplit_once(" (").map_or(kept, |(thread, _)| thread);
    let pid = thread.rsplit_once('-')?.1.parse().ok()?;
    let name = trace.processes.name(trace.processes.of(pid));
    Some(name.unwrap_or_else(|| trace.task_name(pid)).to_string())
}

pub(super) fn softirq(vector: u32) -> String {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vector as usize).map_or_else(|| vector.to_string(), |name| (*name).to_string())
}
