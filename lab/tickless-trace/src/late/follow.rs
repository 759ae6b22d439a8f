//! Finds the sleeps of a trace, and the times of the steps (hops) from deadline to running thread.

use crate::read::{Event, Record, TimerAddr, Trace};
use rustc_hash::FxHashMap;
use tickless_core::time::{CpuId, Ns};

/// One sleep of a thread, from the arming of its timer until the thread ran, on the trace's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sleep {
    pub(super) pid: u32,
    pub(super) cpu: CpuId,
    pub(super) ran_on: CpuId,
    pub(super) armed: Ns,
    /// The deadline: the earliest time at which the timer is allowed to expire.
    pub(super) due: Ns,
    /// The deadline plus the slack that the sleeper allows. Equals `due` for wheel timers.
    pub(super) hard: Ns,
    pub(super) interrupt: Ns,
    pub(super) callback: Ns,
    pub(super) woken: Ns,
    pub(super) ran: Ns,
    /// When the thread first ran, if it was stopped at once and ran again later. Since Linux 6.18,
    /// a thread whose group has used up its quota of CPU time begins to run, but stops before it
    /// returns to the program.
    pub(super) stopped: Option<Ns>,
    pub(super) is_wheel: bool,
}

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
    pub(super) fn late(&self) -> Ns {
        self.ran.since(self.due)
    }

    /// Returns the steps from the deadline to the running thread in order, each with its beginning
    /// and its end. Some take no time.
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
        let first_ran = self.stopped.unwrap_or(self.ran);
        hops.push((HopKind::Run, self.woken, first_ran));
        hops.push((HopKind::Run, first_ran, self.ran));
        hops
    }
}

#[derive(Clone, Copy)]
struct Armed {
    at: Ns,
    /// The earliest and the latest time at which the timer should expire, on the timer's clock.
    soft: Ns,
    hard: Ns,
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    interrupt: Option<Ns>,
    callback: Option<Sleep>,
}

/// Calls `found` with each sleep that the trace shows from its arming to its end. O(n log g) in the
/// numbers of records and gaps.
pub(super) fn sleeps(trace: &Trace, mut found: impl FnMut(Sleep)) {
    let mut armed: FxHashMap<TimerAddr, Armed> = FxHashMap::default();
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    // The threads that a timer has woken and that have not run yet.
    let mut woken: FxHashMap<u32, Sleep> = FxHashMap::default();
    // The threads with a CPU limit that have begun to run, and are perhaps stopped again at once.
    let mut begun: FxHashMap<u32, Sleep> = FxHashMap::default();
    // A sleep with a gap in it was perhaps another sleep: what armed its timer or ran its thread
    // can be among the missing events.
    let unseen = trace.unseen();
    let mut ended = |sleep: Sleep| {
        let next = unseen.partition_point(|(_, to)| *to <= sleep.armed);
        if unseen.get(next).is_none_or(|(from, _)| *from >= sleep.ran) {
            found(sleep);
        }
    };
    for record in trace.records.iter() {
        let (at, cpu) = (record.time, &mut cpus[record.cpu.index()]);
        end_or_stop(&mut begun, record).into_iter().for_each(&mut ended);
        match record.event {
            Event::HrtimerStart { timer, expires, soft_expires, .. } => {
                armed.insert(timer, Armed { at, soft: soft_expires, hard: expires });
            }
            // The timer was not queued: the sleeper does not sleep.
            Event::HrtimerStartExpired { timer } => drop(armed.remove(&timer)),
            Event::TimerStart { timer, expires, .. } => {
                if let Some(jiffies) = trace.jiffies {
                    let due = jiffies.time(expires);
                    armed.insert(timer, Armed { at, soft: due, hard: due });
                }
            }
            Event::LocalTimerEntry => cpu.interrupt = Some(at),
            Event::LocalTimerExit => *cpu = Cpu::default(),
            Event::HrtimerExpireEntry { timer, now, .. } => {
                let interrupt = cpu.interrupt.unwrap_or(at);
                // The interrupt began at `interrupt` on the trace's clock, and at `now` on the
                // timer's clock. The difference converts deadlines to the trace's clock.
                let on_trace = |deadline: Ns| match now >= deadline {
                    true => Ns(interrupt.0.saturating_sub(now.since(deadline).0)),
                    false => interrupt.after(deadline.since(now)),
                };
                cpu.callback = armed.remove(&timer).map(|Armed { at, soft, hard }| {
                    let armed = Armed { at, soft: on_trace(soft), hard: on_trace(hard) };
                    begin(record, armed, interrupt)
                });
            }
            Event::TimerExpireEntry { timer, .. } => {
                let begin = |armed| Sleep { is_wheel: true, ..begin(record, armed, at) };
                cpu.callback = armed.remove(&timer).map(begin);
            }
            Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => cpu.callback = None,
            Event::SchedWakeup { pid, target } => {
                if let Some(sleep) = cpu.callback.take() {
                    woken.insert(pid, Sleep { pid, ran_on: target, woken: at, ..sleep });
                }
            }
            Event::SchedSwitch { next_pid, .. } => {
                let is_limited = trace.processes.limited_group(next_pid).is_some();
                if let Some(sleep) = woken.remove(&next_pid) {
                    let sleep = Sleep { ran: at, ran_on: record.cpu, ..sleep };
                    if is_limited {
                        begun.insert(next_pid, sleep);
                    } else {
                        ended(sleep);
                    }
                } else if let Some(sleep) = begun.remove(&next_pid) {
                    ended(Sleep { ran: at, ran_on: record.cpu, ..sleep });
                }
            }
            _ => {}
        }
    }
    begun.into_values().filter(|sleep| sleep.stopped.is_none()).for_each(ended);
}

/// Finds out from an event whether a thread that has begun to run was stopped. Returns the thread's
/// sleep if the thread was not stopped.
fn end_or_stop(begun: &mut FxHashMap<u32, Sleep>, record: &Record) -> Option<Sleep> {
    match record.event {
        // It is about to sleep again.
        Event::HrtimerStart { .. } | Event::TimerStart { .. } => begun.remove(&record.pid),
        // It had gone to sleep.
        Event::SchedWakeup { pid, .. } => begun.remove(&pid).map(|sleep| {
            let ran = sleep.stopped.unwrap_or(sleep.ran);
            Sleep { ran, stopped: None, ..sleep }
        }),
        Event::SchedSwitch { .. } => {
            let sleep = begun.get_mut(&record.pid)?;
            if record.time.since(sleep.ran) > STOPPED_AT_ONCE {
                return begun.remove(&record.pid);
            }
            sleep.stopped = Some(sleep.ran);
            None
        }
        _ => None,
    }
}

/// A thread that stops within this time after it began to run has not returned to its program.
const STOPPED_AT_ONCE: Ns = Ns(100_000);

/// Returns a sleep whose timer's callback begins. Later events add the thread and the times at
/// which it is woken and runs. The deadlines of `armed` are on the trace's clock.
fn begin(record: &Record, armed: Armed, interrupt: Ns) -> Sleep {
    let Armed { at, soft, hard } = armed;
    Sleep {
        pid: 0,
        cpu: record.cpu,
        ran_on: record.cpu,
        armed: at,
        // Programs also arm timers for past times. Then lateness counts from the arming.
        due: soft.max(at),
        hard: hard.max(at),
        interrupt,
        callback: record.time,
        woken: record.time,
        ran: record.time,
        stopped: None,
        is_wheel: false,
    }
}
