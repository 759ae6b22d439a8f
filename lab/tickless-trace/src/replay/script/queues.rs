//! Follows who waits for each CPU, to find when a scheduler with slice timers starts them.
//!
//! This follows how Linux chooses among tasks of equal weight (eligibility and lag since 6.6,
//! delayed dequeueing since 6.12, the slice timer of 7.2), as its documentation describes it and
//! recordings show it:
//! - A task's virtual time is the time that it has run. Its lag is the mean of its queue minus its
//!   virtual time, at most a slice. A task that is woken, or moves, has the lag that it left with.
//! - A task that blocks with a negative lag stays in its queue until its lag is zero or a task that
//!   is behind it is chosen.
//! - When a CPU switches to a task while others are in its queue, the slice timer starts, for what
//!   is left of the task's slice. A new slice begins when the old one is used up, or at a wakeup.
//!
//! Real-time tasks, weights and bandwidth limits are not followed.

use super::clocks::Clocks;
use crate::read::{Event, EventKind, Trace};
use std::collections::HashMap;
use tickless_core::time::{CpuId, Ns};

/// What a scheduler with slice timers knows when it has chosen a task, or when the number of
/// waiting tasks has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::replay) struct Choice {
    pub(in crate::replay) at: Ns,
    pub(in crate::replay) cpu: CpuId,
    /// The slice timer is started for this time from now.
    pub(in crate::replay) starts: Option<Ns>,
    /// For how long it is started when it expires; `None` if no task waits then.
    pub(in crate::replay) next: Option<Ns>,
}

/// Linux: 0.7 ms, times one more than the logarithm of the number of CPUs, of eight at most.
fn slice(cpus: u16) -> i64 {
    700_000 * i64::from(1 + cpus.clamp(1, 8).ilog2())
}

/// The shortest time for which Linux starts the slice timer.
const STARTS_MIN: i64 = 10_000;

#[derive(Default)]
struct Task {
    cpu: Option<CpuId>,
    ran: i64,
    lag: i64,
    /// What is left of the slice.
    left: i64,
    /// Whether the task has blocked, and is still in its queue.
    is_delayed: bool,
}

#[derive(Clone, Default)]
struct Queue {
    tasks: Vec<u32>,
    current: u32,
    since: i64,
    waits: bool,
}

/// The task that a CPU leaves.
struct Last {
    pid: u32,
    blocks: bool,
}

struct Queues {
    slice: i64,
    tasks: HashMap<u32, Task>,
    cpus: Vec<Queue>,
}

/// Returns the scheduler's choices; `None` if the trace lacks the scheduler's events.
pub(super) fn find(trace: &Trace, clocks: &Clocks) -> Option<Vec<Choice>> {
    let needed = [EventKind::SchedSwitch, EventKind::SchedWakeup];
    if needed.iter().any(|kind| trace.count(*kind) == 0) {
        return None;
    }
    let slice = slice(trace.cpus);
    let cpus = vec![Queue::default(); usize::from(trace.cpus)];
    let mut queues = Queues { slice, tasks: HashMap::new(), cpus };
    let mut choices = Vec::new();
    for record in trace.records.iter() {
        let at = clocks.replay_time(record.time);
        let (cpu, starts) = match record.event {
            Event::SchedWakeup { target, pid } => {
                queues.wake(pid, target, at);
                (target, None)
            }
            Event::SchedSwitch { next_pid, still_runs, .. } => {
                let last = Last { pid: record.pid, blocks: !still_runs? };
                (record.cpu, queues.switch(record.cpu, last, next_pid, at))
            }
            _ => continue,
        };
        let Some(queue) = queues.cpus.get(cpu.index()) else { continue };
        let can_run = |task: &&u32| !queues.tasks[*task].is_delayed;
        let waits = queue.tasks.iter().filter(can_run).count() > 1;
        if starts.is_some() || waits != queue.waits {
            queues.cpus[cpu.index()].waits = waits;
            choices.push(Choice { at, cpu, starts, next: waits.then_some(Ns(slice as u64)) });
        }
    }
    Some(choices)
}

impl Queues {
    fn mean(&self, cpu: CpuId) -> i64 {
        let tasks = &self.cpus[cpu.index()].tasks;
        let sum: i128 = tasks.iter().map(|task| i128::from(self.tasks[task].ran)).sum();
        (sum / tasks.len().max(1) as i128) as i64
    }

    /// Adds what the CPU's current task has run.
    fn account(&mut self, cpu: CpuId, at: Ns) {
        let queue = &mut self.cpus[cpu.index()];
        let ran = at.0 as i64 - std::mem::replace(&mut queue.since, at.0 as i64);
        if let Some(task) = self.tasks.get_mut(&queue.current).filter(|it| it.cpu == Some(cpu)) {
            task.ran += ran;
            task.left -= ran;
            if task.left <= 0 {
                task.left = self.slice;
            }
        }
    }

    /// Puts a task into a queue, with the lag that it left its last one with.
    fn put(&mut self, pid: u32, cpu: CpuId) {
        self.take(pid);
        let mean = self.mean(cpu);
        let others = self.cpus[cpu.index()].tasks.len() as i64;
        let task = self.tasks.entry(pid).or_default();
        // The task changes the mean, so that its lag would be smaller without this factor.
        let lag = task.lag * (others + 1) / others.max(1);
        if others > 0 {
            task.ran = mean - lag;
        }
        (task.cpu, task.left) = (Some(cpu), self.slice);
        self.cpus[cpu.index()].tasks.push(pid);
    }

    /// Takes a task from its queue, and keeps its lag.
    fn take(&mut self, pid: u32) {
        let Some(cpu) = self.tasks.get(&pid).and_then(|task| task.cpu) else { return };
        let (mean, slice) = (self.mean(cpu), self.slice);
        self.cpus[cpu.index()].tasks.retain(|task| *task != pid);
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.lag = (mean - task.ran).clamp(-slice, slice);
            (task.cpu, task.is_delayed) = (None, false);
        }
    }

    fn wake(&mut self, pid: u32, cpu: CpuId, at: Ns) {
        if cpu.index() >= self.cpus.len() {
            return;
        }
        self.account(cpu, at);
        match self.tasks.get_mut(&pid) {
            Some(task) if task.cpu == Some(cpu) => {
                if std::mem::take(&mut task.is_delayed) {
                    task.left = self.slice;
                }
            }
            _ => self.put(pid, cpu),
        }
    }

    /// Switches a CPU from one task to another. Returns for how long the slice timer is started.
    fn switch(&mut self, cpu: CpuId, last: Last, next: u32, at: Ns) -> Option<Ns> {
        let Last { pid: last, blocks } = last;
        if cpu.index() >= self.cpus.len() {
            return None;
        }
        self.follow(cpu, last, at);
        self.account(cpu, at);
        if last != 0 && blocks {
            let is_ahead = self.tasks[&last].ran > self.mean(cpu);
            match self.tasks.get_mut(&last).filter(|_| is_ahead) {
                Some(task) => task.is_delayed = true,
                None => self.take(last),
            }
        }
        self.follow(cpu, next, at);
        // Choosing a task takes out those that have blocked and are eligible, or all at idle.
        let (mean, ran) = (self.mean(cpu), self.tasks.get(&next).map(|task| task.ran));
        for pid in self.cpus[cpu.index()].tasks.clone() {
            let task = &self.tasks[&pid];
            let is_first = ran.is_none_or(|ran| task.ran <= mean && task.ran < ran);
            if task.is_delayed && is_first && (pid != last || next == 0) {
                self.take(pid);
            }
        }
        let others = self.cpus[cpu.index()].tasks.len();
        let left = self.tasks.get(&next)?.left.max(STARTS_MIN);
        (others > 1).then_some(Ns(left as u64))
    }

    /// Makes a task the CPU's current one, and puts it into the queue if it is not there: it was
    /// there before the recording began, or has moved.
    fn follow(&mut self, cpu: CpuId, pid: u32, at: Ns) {
        if pid != 0 && self.tasks.get(&pid).and_then(|task| task.cpu) != Some(cpu) {
            self.put(pid, cpu);
        }
        if let Some(task) = self.tasks.get_mut(&pid).filter(|_| pid != 0) {
            task.is_delayed = false;
        }
        let queue = &mut self.cpus[cpu.index()];
        if queue.current != pid {
            (queue.current, queue.since) = (pid, at.0 as i64);
        }
    }
}
