//! Finds the cause of each step (hop) between a sleep's deadline and the running thread. Steps with
//! the same cause get the same text, so that their times can be added up.

use super::follow::{HopKind, Sleep};
use super::spans::{Activity, Spans};
use crate::read::{Event, Trace};
use tickless_core::time::{CpuId, Ns};

/// No CPU takes longer than this to leave an idle state.
const IDLE_EXIT_MAX: Ns = Ns(1_000_000);

/// The timer callbacks that give new CPU time to groups of threads that used up their quota.
const QUOTA_FUNCTIONS: [&str; 2] = ["sched_cfs_period_timer", "sched_cfs_slack_timer"];

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
    let on_thread_cpu = || spans.longest(sleep.ran_on, from, to);
    match hop {
        HopKind::Slack => "timer slack: the sleeper allowed it".to_string(),
        HopKind::Wheel if to.since(from) <= granularity(trace, sleep) => {
            "timer wheel: far deadlines are rounded up".to_string()
        }
        HopKind::Wheel | HopKind::Interrupt if spans.is_unseen(sleep.cpu) => unseen(sleep.cpu),
        HopKind::Run | HopKind::After if spans.is_unseen(sleep.ran_on) => unseen(sleep.ran_on),
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
        HopKind::Run => run(trace, spans, on_thread_cpu(), sleep, from, to),
        HopKind::After => match on_thread_cpu() {
            Some(Activity::Thread(pid)) if pid == sleep.pid => "the thread itself".to_string(),
            activity => run(trace, spans, activity, sleep, from, to),
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
        Some(Activity::Thread(pid)) if pid != 0 => {
            format!("interrupts off in {}", thread(trace, pid))
        }
        Some(Activity::Softirq(vector)) => format!("interrupts off in softirq {}", softirq(vector)),
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

/// Describes why a woken thread did not run, by what its CPU did for most of that time.
fn run(
    trace: &Trace,
    spans: &Spans,
    activity: Option<Activity>,
    sleep: &Sleep,
    from: Ns,
    to: Ns,
) -> String {
    let is_long = to.since(from) > IDLE_EXIT_MAX;
    match activity {
        // The thread waited for long, until its group's quota of CPU time was refilled. So the
        // scheduler had not allowed the thread to run before the refill.
        _ if is_long && stood_still(trace, spans, sleep, activity, from, to) => {
            "CPU limit: the group's quota was used up".to_string()
        }
        Some(Activity::Idle(_) | Activity::Thread(0)) if is_long => {
            "the CPU was idle and left the thread waiting".to_string()
        }
        Some(Activity::Thread(pid)) if pid == sleep.pid => "the scheduler".to_string(),
        Some(Activity::Thread(pid)) if pid != 0 => {
            format!("thread {} kept the CPU", thread(trace, pid))
        }
        Some(Activity::Softirq(vector)) => format!("softirq {} kept the CPU", softirq(vector)),
        Some(Activity::TimerInterrupt | Activity::Callback(_)) => "the timer interrupt".to_string(),
        activity => idle_or_irq(activity),
    }
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

/// Returns whether a thread waited from `from` until `to` mostly because its group had used up its
/// quota of CPU time.
///
/// If the trace lists the group's threads, the quota must have been refilled in the second half of
/// the wait, while no thread of the group ran. Otherwise, it must have been refilled just before
/// the thread ran, and no thread of the process must have begun to run before the refill. An idle
/// CPU runs the thread at once after the refill. A busy CPU runs it with one of its next ticks,
/// because a refill does not preempt the running thread.
fn stood_still(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    activity: Option<Activity>,
    from: Ns,
    to: Ns,
) -> bool {
    let group = trace.processes.limited_group(sleep.pid);
    let is_busy = matches!(activity, Some(Activity::Thread(pid)) if pid != 0 && pid != sleep.pid);
    let tick = trace.tick_or_default();
    let within = match (group, is_busy) {
        (Some(_), _) => Ns(to.since(from).0 / 2),
        (None, true) if trace.processes.has_limits() => return false,
        (None, true) => Ns(2 * tick.0),
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
        let is_of_group = |pid: u32| trace.processes.limited_group(pid) == Some(group);
        return refills.any(|refill| !spans.running_at(refill.time).any(is_of_group));
    }
    let Some(refill) = refills.next() else { return false };
    if refill.time.since(from) <= IDLE_EXIT_MAX {
        return false;
    }
    let process = trace.processes.of(sleep.pid);
    let begin = trace.records.partition_point(|record| record.time <= from);
    let mut waited = trace.records[begin..end].iter().take_while(|it| it.time < refill.time);
    !waited.any(|record| match record.event {
        Event::SchedSwitch { next_pid, .. } => trace.processes.of(next_pid) == process,
        _ => false,
    })
}

fn unseen(cpu: CpuId) -> String {
    format!("unknown: nothing was recorded of CPU {}'s idle thread", cpu.0)
}

fn thread(trace: &Trace, pid: u32) -> String {
    format!("{}-{pid}", trace.tasks.get(&pid).map_or("?", |name| name))
}

fn softirq(vector: u32) -> String {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vector as usize).map_or_else(|| vector.to_string(), |name| (*name).to_string())
}
