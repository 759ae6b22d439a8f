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

/// The timer callbacks that give new CPU time to groups of threads that used up their quota.
const QUOTA_FUNCTIONS: [&str; 2] = ["sched_cfs_period_timer", "sched_cfs_slack_timer"];

/// What the CPUs did.
#[derive(Debug)]
pub(super) struct Spans {
    cpus: Vec<Changes>,
    /// When the quotas of groups were refilled.
    pub(super) refills: Vec<Ns>,
    /// The CPUs whose idle thread the kernel has not recorded.
    unseen: Vec<CpuId>,
    /// Whether the trace has writes to timer devices.
    pub(super) has_writes: bool,
    /// The priority of each thread that ran; `None` if it changed, or is not printed.
    priorities: FxHashMap<u32, Option<i16>>,
}

/// The times at which the activity of a CPU changed, each with the activity that began then.
#[derive(Debug)]
struct Changes {
    all: List<(Ns, Activity)>,
    /// The time of the first of each [`BLOCK`] changes: searches in these use less memory.
    blocks: Vec<Ns>,
}

const BLOCK: usize = 256;

impl Changes {
    fn push(&mut self, at: Ns, activity: Activity) {
        if self.all.len().is_multiple_of(BLOCK) {
            self.blocks.push(at);
        }
        self.all.push((at, activity));
    }

    /// Returns how many of the changes are before a time.
    fn before(&self, time: Ns) -> usize {
        let begin = self.blocks.partition_point(|at| *at < time).saturating_sub(1) * BLOCK;
        let block = &self.all[begin..self.all.len().min(begin + BLOCK)];
        begin + block.partition_point(|(at, _)| *at < time)
    }
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
        let changes = |_| Changes { all: List::one_of(count), blocks: Vec::new() };
        let mut cpus: Vec<_> = (0..count).map(changes).collect();
        let quota_functions = QUOTA_FUNCTIONS.map(|name| trace.names.find(name));
        let mut refills = Vec::new();
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
            if changes.all.is_empty() {
                stack.thread = record.pid;
            }
            with(record, stack.current());
            if let Event::SchedSwitch { next_pid, next_priority, .. } = record.event {
                let known = priorities.entry(next_pid).or_insert(next_priority);
                *known = known.filter(|known| Some(*known) == next_priority);
            }
            if let Event::HrtimerExpireEntry { function, .. } = record.event
                && quota_functions.contains(&Some(function))
            {
                refills.push(record.time);
            }
            // An activity whose end is not recorded would seem to go on until the next switch.
            let kind = record.event.kind();
            if PAIRS.iter().all(|&(begin, end)| begin != kind || trace.count(end) > 0) {
                stack.follow(&record.event);
            }
            let activity = stack.current();
            if changes.all.last().is_none_or(|(_, last)| *last != activity) {
                changes.push(record.time, activity);
            }
        }
        let unseen = trace.problems.iter().filter_map(|problem| match problem.cause {
            Cause::IdleNotRecorded { cpu } => Some(cpu),
            _ => None,
        });
        let has_writes = trace.device_writes() > 0;
        Spans { cpus, refills, unseen: unseen.collect(), has_writes, priorities }
    }

    /// Gives back the memory of what was looked up.
    pub(super) fn release(&self) {
        self.cpus.iter().for_each(|changes| changes.all.release(0..changes.all.len()));
    }

    /// Returns the kernel's priority of a thread, if it had only one while it was recorded.
    pub(super) fn priority(&self, pid: u32) -> Option<i16> {
        self.priorities.get(&pid).copied().flatten()
    }

    /// Returns the threads that CPUs run at this time, or that interrupts interrupt at this time.
    pub(super) fn running_at(&self, at: Ns) -> impl Iterator<Item = u32> {
        self.cpus.iter().filter_map(move |changes| {
            let before = &changes.all[..changes.before(at)];
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
        let first = changes.before(from.after(Ns(1))).saturating_sub(1);
        let mut times: Vec<(Activity, u64)> = Vec::new();
        let mut spans = changes.all[first..].iter().peekable();
        while let Some(&(begin, activity)) = spans.next_if(|(begin, _)| *begin < to) {
            let end = spans.peek().map_or(to, |(next, _)| to.min(*next));
            let ns = end.since(begin.max(from)).0;
            match times.iter_mut().find(|(known, _)| *known == activity) {
                Some((_, sum)) => *sum += ns,
                None => times.push((activity, ns)),
            }
        }
        times.retain(|(_, ns)| *ns > 0);
        times.into_iter().max_by_key(|&(activity, ns)| (ns, activity)).map(|(activity, _)| activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_their_times() {
        let mut changes = Changes { all: List::default(), blocks: Vec::new() };
        // Some hundreds at one time, others alone or in groups.
        let times: Vec<u64> = (0..2_000).map(|at: u64| at.min(300).max(at / 3 * 2)).collect();
        times.iter().for_each(|at| changes.push(Ns(*at), Activity::Idle(0)));
        for time in 0..1_400 {
            let before = times.partition_point(|at| *at < time);
            assert_eq!(changes.before(Ns(time)), before, "before {time}");
        }
    }
}
