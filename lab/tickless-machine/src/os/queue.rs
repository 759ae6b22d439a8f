//! The run queue of a CPU.
//!
//! Real-time tasks run by priority, and in order of arrival if their priorities are equal. Fair
//! tasks, all of equal weight, share the time that is left, as in Linux 6.12 to 7.3
//! (`kernel/sched/fair.c`), whose algorithm is *earliest eligible virtual deadline first* (Stoica
//! and Abdel-Wahab, Old Dominion University, TR-95-22, 1995):
//!
//! - A task's virtual time is how long it has run. Its *lag* is the mean of its queue minus its
//!   virtual time. A task that has run more than the mean is not eligible.
//! - A task requests one slice after another. Its deadline is the virtual time at which it will
//!   have run for its request. Of the eligible tasks, that with the earliest deadline is chosen.
//! - The running task keeps its CPU until its request ends or it is no longer eligible
//!   (`RUN_TO_PARITY`).
//! - A task that blocks while it is not eligible stays in the queue: a short sleep is no way to
//!   shed the debt. It leaves when it would be chosen (`DELAY_DEQUEUE`, since 6.12).
//! - A woken task gets the lag that it had when it left (`PLACE_LAG`). It preempts the running task
//!   if it would be chosen now.

use super::Config;
use crate::ps::Ps;
use tickless_core::time::Ns;

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct TaskId(pub(super) u32);

impl TaskId {
    pub(super) const NONE: TaskId = TaskId(u32::MAX);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Default)]
pub enum Class {
    #[default]
    Idle,
    Fair,
    /// Real-time: runs before all fair tasks, and before real-time tasks with a lower number.
    Fifo(u8),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    class: Class,
    /// Whether the task has blocked, and stays until it would be chosen.
    is_delayed: bool,
    /// Virtual times in ps, comparable within one queue.
    ran: i64,
    deadline: i64,
}

/// The tasks that can run on a CPU, with the one that runs. Its size decides how many cache lines
/// an access takes: it fits on one.
#[derive(Debug)]
pub(super) struct RunQueue {
    /// In order of arrival.
    entries: Vec<Entry>,
    running: Option<TaskId>,
    /// How long the running task has run since it was chosen.
    served: i64,
    /// Whether the running task has completed a request since it was chosen.
    has_completed: bool,
    /// Until when the time of the running task is accounted.
    accounted: Ps,
    slice: i64,
    lag_max_ns: u32,
    is_since_7_1: bool,
}

/// The shortest time for which Linux starts a slice's timer.
const STARTS_MIN: i64 = 10_000_000;

impl RunQueue {
    pub(super) fn new(cpus: u16, config: &Config) -> RunQueue {
        // Linux: 0.7 ms, times one more than the logarithm of the number of CPUs, of eight at most.
        let slice = 700_000_000 * i64::from(1 + cpus.clamp(1, 8).ilog2());
        RunQueue {
            entries: Vec::new(),
            running: None,
            served: 0,
            has_completed: false,
            accounted: Ps::ZERO,
            slice,
            lag_max_ns: config.tick.0.max(2 * slice as u64 / 1_000) as u32,
            is_since_7_1: config.is_since_7_1(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn fair(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.entries.iter().filter(|entry| entry.class == Class::Fair)
    }

    fn mean(&self) -> i64 {
        let sum: i64 = self.fair().map(|entry| entry.ran).sum();
        sum.div_euclid(self.fair().count().max(1) as i64)
    }

    fn find(&mut self, task: Option<TaskId>) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| Some(entry.task) == task)
    }

    /// Adds the running task's time until `now`. Returns whether it must share the CPU, because it
    /// completes a request now (since 6.17, too, if it has completed one before) and others wait.
    pub(super) fn account(&mut self, now: Ps) -> bool {
        let ran = now.since(self.accounted).0 as i64;
        self.accounted = self.accounted.max(now);
        self.served += ran;
        let slice = self.slice;
        let mut must_share = self.is_since_7_1 && self.has_completed;
        if let Some(entry) = self.find(self.running) {
            entry.ran += ran;
            if entry.ran >= entry.deadline {
                entry.deadline = entry.ran + slice;
                must_share = true;
                self.has_completed = true;
            }
        }
        must_share && self.entries.len() > 1
    }

    /// Adds a task that was woken, with the lag that it left a queue with. If it is still in this
    /// queue, it stays where it is, or at the mean if it was behind that, and false is returned.
    pub(super) fn add(&mut self, task: TaskId, class: Class, lag: i64) -> bool {
        let mean = self.mean();
        let (lag, is_new) = match self.find(Some(task)) {
            None => (lag, true),
            Some(entry) if entry.is_delayed && entry.ran < mean => {
                self.take(task);
                (0, false)
            }
            Some(entry) => {
                entry.is_delayed = false;
                return false;
            }
        };
        // The task changes the mean, so that its lag would be smaller without this factor.
        let others = self.fair().count() as i64;
        let ran = self.mean() - lag * (others + 1) / others.max(1);
        let deadline = ran + self.slice;
        self.entries.push(Entry { task, class, is_delayed: false, ran, deadline });
        is_new
    }

    /// Takes a task out. Returns its lag.
    fn take(&mut self, task: TaskId) -> i64 {
        let mean = self.mean();
        let place = self.entries.iter().position(|entry| entry.task == task);
        let ran = place.map_or(mean, |place| self.entries.remove(place).ran);
        let lag_max = 1_000 * i64::from(self.lag_max_ns);
        (mean - ran).clamp(-lag_max, lag_max)
    }

    /// The entry that is chosen now: of a task, or of one that has blocked and leaves at last.
    fn first(&self) -> Option<Entry> {
        let class = self.entries.iter().map(|entry| entry.class).max()?;
        if class > Class::Fair {
            return self.entries.iter().find(|entry| entry.class == class).copied();
        }
        let mean = self.mean();
        let eligible = self.fair().filter(|entry| entry.ran <= mean);
        let keeps = |entry: &&Entry| Some(entry.task) == self.running && !self.has_completed;
        let running = eligible.clone().find(keeps);
        running.or_else(|| eligible.min_by_key(|entry| entry.deadline)).copied()
    }

    /// Whether a task that was added must run at once.
    pub(super) fn preempts(&self, task: TaskId) -> bool {
        self.running.is_none() || self.first().is_some_and(|first| first.task == task)
    }

    /// Removes the running task, which blocks, or delays that. If the task leaves, `left` gets its
    /// lag, and what was left of its request is returned if several others are in the queue.
    pub(super) fn block(&mut self, now: Ps, left: impl FnOnce(TaskId, i64)) -> Option<Ns> {
        self.account(now);
        let (mean, rest) = (self.mean(), self.rest());
        let entry = self.find(self.running)?;
        entry.is_delayed = entry.class == Class::Fair && entry.ran > mean;
        let (task, is_delayed) = (entry.task, entry.is_delayed);
        if is_delayed {
            return None;
        }
        left(task, self.take(task));
        rest.filter(|_| self.fair().count() > 1)
    }

    /// Chooses the task that runs next. Calls `left` for each task that had blocked and leaves now;
    /// if one does, what is left of the last task's slice is returned, too, as by `block`.
    pub(super) fn choose(
        &mut self,
        now: Ps,
        mut left: impl FnMut(TaskId, i64),
    ) -> (Option<TaskId>, Option<Ns>) {
        self.account(now);
        let mut rest = None;
        let next = loop {
            match self.first() {
                Some(first) if first.is_delayed => {
                    left(first.task, self.take(first.task).min(0));
                    rest = self.rest();
                }
                first => break first.map(|first| first.task),
            }
        };
        if next != self.running {
            (self.running, self.served) = (next, 0);
        }
        self.has_completed = false;
        (next, rest)
    }

    /// What is left of the running fair task's slice, if several tasks are in the queue; zero if
    /// nothing is. The slice ends with the request. Up to 7.0 it began when the task was chosen.
    pub(super) fn rest(&self) -> Option<Ns> {
        let running = self.fair().find(|entry| Some(entry.task) == self.running);
        let rest = match running {
            Some(running) if self.is_since_7_1 => running.deadline - running.ran,
            _ => self.slice - self.served,
        };
        let rest = if rest < 0 { 0 } else { rest.max(STARTS_MIN) };
        (self.fair().count() > 1).then_some(Ps(rest as u64).to_ns())
    }
}
