//! The sleeps of a trace, with the times of their hops.

use crate::read::{Event, Record, TimerAddr, Trace};
use std::collections::HashMap;
use tickless_core::time::{CpuId, Ns};

/// A sleep, from its deadline until its thread ran. Times are on the trace's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sleep {
    /// Who slept.
    pub(super) pid: u32,
    /// Whose timer it was, and where the thread ran.
    pub(super) cpu: CpuId,
    pub(super) ran_on: CpuId,
    /// When the timer was armed.
    pub(super) armed: Ns,
    /// From when on it was to fire.
    pub(super) due: Ns,
    /// Until when it had to: the end of its slack. As `due` for wheel timers.
    pub(super) hard: Ns,
    /// When the interrupt began in which it fired.
    pub(super) interrupt: Ns,
    /// When its callback began.
    pub(super) callback: Ns,
    /// When that woke the thread.
    pub(super) woken: Ns,
    /// When the thread ran.
    pub(super) ran: Ns,
    /// Whether it is a timer of the wheel.
    pub(super) is_wheel: bool,
}

/// A part of the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HopKind {
    Slack,
    Wheel,
    Interrupt,
    Callback,
    Wakeup,
    Run,
    After,
}

impl HopKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            HopKind::Slack => "slack",
            HopKind::Wheel => "wheel",
            HopKind::Interrupt => "interrupt",
            HopKind::Callback => "callback",
            HopKind::Wakeup => "wakeup",
            HopKind::Run => "run",
            HopKind::After => "after",
        }
    }
}

impl Sleep {
    /// How much later than its deadline the thread ran.
    pub(super) fn late(&self) -> Ns {
        self.ran.since(self.due)
    }

    /// Its hops in order, each from when to when; some take no time.
    pub(super) fn hops(&self) -> Vec<(HopKind, Ns, Ns)> {
        let mut hops = if self.is_wheel {
            vec![(HopKind::Wheel, self.due, self.callback)]
        } else {
            let hard = self.hard.min(self.interrupt).max(self.due);
            vec![
                (HopKind::Slack, self.due, hard),
                (HopKind::Interrupt, hard, self.interrupt),
                (HopKind::Callback, self.interrupt, self.callback),
            ]
        };
        hops.push((HopKind::Wakeup, self.callback, self.woken));
        hops.push((HopKind::Run, self.woken, self.ran));
        hops
    }
}

/// What a timer was armed for.
#[derive(Clone, Copy)]
enum Armed {
    Queue { at: Ns, soft: Ns, hard: Ns },
    Wheel { at: Ns, due: Ns },
}

/// Where a CPU is.
#[derive(Clone, Copy, Default)]
struct Cpu {
    /// When the timer interrupt began that it is in.
    interrupt: Option<Ns>,
    /// The sleep whose callback runs, but for the thread that it wakes.
    callback: Option<Sleep>,
}

/// All sleeps that begin and end in the trace, in the order in which threads ran.
pub(super) fn sleeps(trace: &Trace) -> Vec<Sleep> {
    let mut armed: HashMap<TimerAddr, Armed> = HashMap::new();
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    let mut woken: HashMap<u32, Sleep> = HashMap::new();
    let mut sleeps = Vec::new();
    for record in &trace.records {
        let cpu = &mut cpus[record.cpu.index()];
        match record.event {
            Event::HrtimerStart { timer, expires, soft_expires, .. } => {
                let start = Armed::Queue { at: record.time, soft: soft_expires, hard: expires };
                armed.insert(timer, start);
            }
            Event::TimerStart { timer, expires, .. } => {
                if let Some(jiffies) = trace.jiffies {
                    let start = Armed::Wheel { at: record.time, due: jiffies.time(expires) };
                    armed.insert(timer, start);
                }
            }
            Event::LocalTimerEntry => cpu.interrupt = Some(record.time),
            Event::LocalTimerExit => *cpu = Cpu::default(),
            Event::HrtimerExpireEntry { timer, now, .. } => {
                let interrupt = cpu.interrupt.unwrap_or(record.time);
                cpu.callback = armed.remove(&timer).map(|of| begun(&record, of, now, interrupt));
            }
            Event::TimerExpireEntry { timer, .. } => {
                let (now, interrupt) = (Ns::ZERO, record.time);
                cpu.callback = armed.remove(&timer).map(|of| begun(&record, of, now, interrupt));
            }
            Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => cpu.callback = None,
            Event::SchedWakeup { pid, target } => {
                if let Some(sleep) = cpu.callback.take() {
                    let sleep = Sleep { pid, ran_on: target, woken: record.time, ..sleep };
                    woken.insert(pid, sleep);
                }
            }
            Event::SchedSwitch { next_pid, .. } => {
                if let Some(sleep) = woken.remove(&next_pid) {
                    sleeps.push(Sleep { ran: record.time, ran_on: record.cpu, ..sleep });
                }
            }
            _ => {}
        }
    }
    sleeps
}

/// A sleep whose callback begins. `now` is what the timer's clock showed when the interrupt began.
fn begun(record: &Record, armed: Armed, now: Ns, interrupt: Ns) -> Sleep {
    let (at, due, hard, is_wheel) = match armed {
        Armed::Wheel { at, due } => (at, due, due, true),
        // The deadlines are on the timer's clock, of which this is one moment on both.
        Armed::Queue { at, soft, hard } => {
            let on_trace = |deadline: Ns| match now >= deadline {
                true => Ns(interrupt.0.saturating_sub(now.since(deadline).0)),
                false => interrupt.after(deadline.since(now)),
            };
            (at, on_trace(soft), on_trace(hard), false)
        }
    };
    // Nothing is late before it was asked for: programs arm timers for times that have passed.
    let (due, hard) = (due.max(at), hard.max(at));
    Sleep {
        pid: 0,
        cpu: record.cpu,
        ran_on: record.cpu,
        armed: at,
        due,
        hard,
        interrupt,
        callback: record.time,
        woken: record.time,
        ran: record.time,
        is_wheel,
    }
}
