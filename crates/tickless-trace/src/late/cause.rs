//! What a hop was spent on.

use super::follow::{HopKind, Sleep};
use super::spans::{Doing, Spans};
use crate::read::{Event, Record, Trace};
use std::collections::BTreeMap;
use tickless_core::time::{CpuId, Ns};

/// Longer than this no CPU takes to leave an idle state.
const IDLE_EXIT_MAX: Ns = Ns(1_000_000);

/// The callbacks by which the kernel lets groups run again that had used up their quota.
const QUOTA_FUNCTIONS: [&str; 2] = ["sched_cfs_period_timer", "sched_cfs_slack_timer"];

/// What a hop was spent on, in words that are the same for all hops with one cause.
pub(super) fn of(
    trace: &Trace,
    spans: &Spans,
    sleep: &Sleep,
    hop: HopKind,
    from: Ns,
    to: Ns,
) -> String {
    match hop {
        HopKind::Slack => "timer slack: the sleeper allowed it".to_string(),
        HopKind::Wheel => wheel(trace, spans, sleep, from, to),
        HopKind::Interrupt => interrupt(trace, spans, sleep, from, to),
        HopKind::Callback => match most(spans, sleep.cpu, from, to) {
            Some(Doing::Callback(function)) => {
                format!("callback {} ran before it", trace.names.name(function))
            }
            _ => "the timer interrupt itself".to_string(),
        },
        HopKind::Wakeup => "waking the thread".to_string(),
        HopKind::Run => run(trace, spans, sleep, from, to),
        HopKind::After => match most(spans, sleep.ran_on, from, to) {
            Some(Doing::Thread(pid)) if pid == sleep.pid => "the thread itself".to_string(),
            _ => run(trace, spans, sleep, from, to),
        },
    }
}

/// The timer was due and no interrupt came.
fn interrupt(trace: &Trace, spans: &Spans, sleep: &Sleep, from: Ns, to: Ns) -> String {
    match most(spans, sleep.cpu, from, to) {
        Some(Doing::Idle(_) | Doing::Thread(0)) if to.since(from) > IDLE_EXIT_MAX => {
            let is_written = |record: &Record| {
                record.event.is_device_write()
                    && record.cpu == sleep.cpu
                    && record.time >= sleep.armed
            };
            let until = trace.records.partition_point(|record| record.time <= from);
            let armed =
                trace.records.partition_point(|record| record.time < sleep.armed).min(until);
            let writes = trace.device_writes().next().is_some();
            match writes && !trace.records.range(armed..until).any(|record| is_written(&record)) {
                true => "the timer device was not programmed for it".to_string(),
                false => "the timer device's event was lost".to_string(),
            }
        }
        Some(Doing::Idle(state)) => format!("leaving idle state {state}"),
        Some(Doing::Thread(0)) => "leaving idle".to_string(),
        Some(Doing::Thread(pid)) => format!("interrupts off in {}", thread(trace, pid)),
        Some(Doing::Softirq(vector)) => format!("interrupts off in softirq {}", softirq(vector)),
        Some(Doing::Irq(irq)) => format!("interrupt {irq} was handled"),
        Some(Doing::TimerInterrupt) => "the timer interrupt before it".to_string(),
        Some(Doing::Callback(function)) => {
            format!("callback {} in the timer interrupt before it", trace.names.name(function))
        }
        None => "unknown".to_string(),
    }
}

/// The thread could run and did not.
fn run(trace: &Trace, spans: &Spans, sleep: &Sleep, from: Ns, to: Ns) -> String {
    let most = most(spans, sleep.ran_on, from, to);
    let is_long = to.since(from) > IDLE_EXIT_MAX;
    let is_idle = matches!(most, Some(Doing::Idle(_) | Doing::Thread(0)));
    if is_long && (is_idle || most == Some(Doing::Thread(sleep.pid))) {
        // A CPU that is idle runs whoever may run: it may not.
        return match is_refilled(trace, to) {
            true => "CPU limit: the group's quota was used up".to_string(),
            false => "the CPU was idle and left the thread waiting".to_string(),
        };
    }
    match most {
        Some(Doing::Idle(state)) => format!("leaving idle state {state}"),
        Some(Doing::Thread(0)) => "leaving idle".to_string(),
        Some(Doing::Thread(pid)) if pid == sleep.pid => "the scheduler".to_string(),
        Some(Doing::Thread(pid)) => format!("thread {} kept the CPU", thread(trace, pid)),
        Some(Doing::Softirq(vector)) => format!("softirq {} kept the CPU", softirq(vector)),
        Some(Doing::Irq(irq)) => format!("interrupt {irq} was handled"),
        Some(Doing::TimerInterrupt | Doing::Callback(_)) => "the timer interrupt".to_string(),
        None => "unknown".to_string(),
    }
}

/// A wheel timer was due, and the wheel had not come to it.
fn wheel(trace: &Trace, spans: &Spans, sleep: &Sleep, from: Ns, to: Ns) -> String {
    let tick = trace.hz.map_or(Ns(0), |hz| hz.tick());
    let ahead = sleep.due.since(sleep.armed);
    // A bucket is as wide as an eighth of how far ahead it is; and the next tick looks at it.
    let granularity = Ns(ahead.0 / 8 + 2 * tick.0);
    match to.since(from) <= granularity {
        true => "timer wheel: far deadlines are rounded up".to_string(),
        false => interrupt(trace, spans, sleep, from, to),
    }
}

/// Whether a group had its quota refilled just before.
fn is_refilled(trace: &Trace, before: Ns) -> bool {
    let functions = QUOTA_FUNCTIONS.map(|name| trace.names.find(name));
    let end = trace.records.partition_point(|record| record.time <= before);
    let near = trace.records.range(0..end).rev();
    let near = near.take_while(|record| before.since(record.time) <= IDLE_EXIT_MAX);
    near.into_iter().any(|record| match record.event {
        Event::HrtimerExpireEntry { function, .. } => functions.contains(&Some(function)),
        _ => false,
    })
}

/// What a CPU did most of this time.
fn most(spans: &Spans, cpu: CpuId, from: Ns, to: Ns) -> Option<Doing> {
    let mut times: BTreeMap<Doing, u64> = BTreeMap::new();
    spans.during(cpu, from, to).for_each(|(doing, ns)| *times.entry(doing).or_default() += ns);
    times.into_iter().max_by_key(|&(_, ns)| ns).map(|(doing, _)| doing)
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
