//! What each CPU did at which time.

use crate::list::List;
use crate::read::{Cause, Event, EventKind, NameId, Record, Trace};
use rustc_hash::FxHashMap;
use tickless_core::time::{CpuId, Ns};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Activity {
    Thread(u32),
    Idle(u32),
    Softirq(u32),
    Irq(u32),
    TimerInterrupt,
    Callback(NameId),
}

/// For each CPU, the times at which its activity changed, each with the activity that began then.
#[derive(Debug)]
pub(super) struct Spans {
    cpus: Vec<List<(Ns, Activity)>>,
    /// The CPUs whose idle thread the kernel has not recorded.
    unseen: Vec<CpuId>,
    /// Whether the trace has writes to timer devices.
    pub(super) has_writes: bool,
    /// The priority of each thread that ran; `None` if it changed, or is not printed.
    priorities: FxHashMap<u32, Option<i16>>,
}

/// What a CPU has begun and not ended: it runs a thread or is idle, and handles interrupts and
/// callbacks on top of that. The innermost of these is last in `nested`.
#[derive(Clone, Debug, Default)]
struct Stack {
    thread: u32,
    idle: Option<u32>,
    nested: Vec<Activity>,
}

impl Stack {
    fn current(&self) -> Activity {
        let outermost = || self.idle.map_or(Activity::Thread(self.thread), Activity::Idle);
        self.nested.last().copied().unwrap_or_else(outermost)
    }

    fn begin(&mut self, activity: Activity) {
        // Deeper nesting means that the trace lacks the ends of activities, so all are dropped.
        const DEPTH_MAX: usize = 8;
        if self.nested.len() == DEPTH_MAX {
            self.nested.clear();
        }
        self.nested.push(activity);
    }

    /// Ends the innermost activity for which `is_it` holds, and the activities inside it, whose
    /// ends are missing in the trace.
    fn end(&mut self, is_it: impl Fn(&Activity) -> bool) {
        if let Some(at) = self.nested.iter().rposition(is_it) {
            self.nested.truncate(at);
        }
    }

    /// Follows an event. A switch to another thread ends all interrupts and callbacks.
    fn follow(&mut self, event: &Event) {
        match *event {
            Event::SchedSwitch { next_pid, .. } => {
                self.thread = next_pid;
                self.nested.clear();
                if next_pid != 0 {
                    self.idle = None;
                }
            }
            Event::CpuIdle { state, .. } => self.idle = state,
            Event::SoftirqEntry { vector } => self.begin(Activity::Softirq(vector)),
            Event::SoftirqExit { vector } => self.end(|of| *of == Activity::Softirq(vector)),
            Event::IrqEntry { irq } => self.begin(Activity::Irq(irq)),
            Event::IrqExit { irq } => self.end(|of| *of == Activity::Irq(irq)),
            Event::LocalTimerEntry => self.begin(Activity::TimerInterrupt),
            Event::LocalTimerExit => self.end(|of| *of == Activity::TimerInterrupt),
            Event::HrtimerExpireEntry { function, .. }
            | Event::TimerExpireEntry { function, .. } => self.begin(Activity::Callback(function)),
            Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => {
                self.end(|of| matches!(of, Activity::Callback(_)));
            }
            _ => {}
        }
    }
}

/// The events that begin an activity, each with the one that ends it.
const PAIRS: [(EventKind, EventKind); 5] = [
    (EventKind::SoftirqEntry, EventKind::SoftirqExit),
    (EventKind::IrqEntry, EventKind::IrqExit),
    (EventKind::LocalTimerEntry, EventKind::LocalTimerExit),
    (EventKind::HrtimerExpireEntry, EventKind::HrtimerExpireExit),
    (EventKind::TimerExpireEntry, EventKind::TimerExpireExit),
];

impl Spans {
    /// Finds when each CPU changed its activity. Calls `with` for every event, with what its CPU
    /// did just before.
    pub(super) fn of(trace: &Trace, mut with: impl FnMut(&Record, Activity)) -> Spans {
        let count = usize::from(trace.cpus);
        let mut cpus: Vec<_> = (0..count).map(|_| List::one_of(count)).collect();
        let mut stacks = vec![Stack::default(); count];
        let mut priorities = FxHashMap::default();
        let mut gaps = trace.gaps_in_order();
        for (place, record) in trace.records.iter().enumerate() {
            for gap in gaps(place) {
                stacks[gap.cpu.index()] = Stack { thread: record.pid, ..Stack::default() };
            }
            let cpu = match record.event {
                Event::CpuIdle { cpu, .. } => cpu,
                _ => record.cpu,
            };
            let (changes, stack) = (&mut cpus[cpu.index()], &mut stacks[cpu.index()]);
            if changes.is_empty() {
                stack.thread = record.pid;
            }
            with(record, stack.current());
            if let Event::SchedSwitch { next_pid, next_priority, .. } = record.event {
                let known = priorities.entry(next_pid).or_insert(next_priority);
                *known = known.filter(|known| Some(*known) == next_priority);
            }
            // An activity whose end is not recorded would seem to go on until the next switch.
            let kind = record.event.kind();
            if PAIRS.iter().all(|&(begin, end)| begin != kind || trace.count(end) > 0) {
                stack.follow(&record.event);
            }
            let activity = stack.current();
            if changes.last().is_none_or(|(_, last)| *last != activity) {
                changes.push((record.time, activity));
            }
        }
        let unseen = trace.problems.iter().filter_map(|problem| match problem.cause {
            Cause::IdleNotRecorded { cpu } => Some(cpu),
            _ => None,
        });
        let has_writes = trace.device_writes() > 0;
        Spans { cpus, unseen: unseen.collect(), has_writes, priorities }
    }

    /// Gives back the memory of what was looked up.
    pub(super) fn release(&self) {
        self.cpus.iter().for_each(|changes| changes.release(0..changes.len()));
    }

    /// Returns the kernel's priority of a thread, if it had only one while it was recorded.
    pub(super) fn priority(&self, pid: u32) -> Option<i16> {
        self.priorities.get(&pid).copied().flatten()
    }

    /// Returns the threads that CPUs run at this time, or that interrupts interrupt at this time.
    pub(super) fn running_at(&self, at: Ns) -> impl Iterator<Item = u32> {
        self.cpus.iter().filter_map(move |changes| {
            let before = &changes[..changes.partition_point(|(begin, _)| *begin < at)];
            before.iter().rev().find_map(|(_, activity)| match activity {
                Activity::Thread(pid) => Some(Some(*pid)),
                Activity::Idle(_) => Some(None),
                _ => None,
            })?
        })
    }

    pub(super) fn is_unseen(&self, cpu: CpuId) -> bool {
        self.unseen.contains(&cpu)
    }

    /// Returns the activity that took most of the time of a CPU between `from` and `to`.
    pub(super) fn longest(&self, cpu: CpuId, from: Ns, to: Ns) -> Option<Activity> {
        let changes = self.cpus.get(cpu.index())?;
        let first = changes.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let after = changes.partition_point(|(at, _)| *at < to).max(first);
        let mut times = std::collections::BTreeMap::new();
        for (at, &(begin, activity)) in (first..).zip(&changes[first..after]) {
            let end = changes.get(at + 1).map_or(to, |(next, _)| to.min(*next));
            let ns = end.since(begin.max(from)).0;
            if ns > 0 {
                *times.entry(activity).or_insert(0) += ns;
            }
        }
        times.into_iter().max_by_key(|&(_, ns)| ns).map(|(activity, _)| activity)
    }
}
