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

#[cfg(test)]
mod tests {
    use super::super::{Clocked, IdleTick, Skew};
    use super::*;
    use tickless_core::bases::Settings;
    use tickless_core::rearm::LazyTimers;

    const MS: i64 = 1_000_000_000;
    const SINCE_7_1: [LazyTimers; 2] = [LazyTimers::Ignored, LazyTimers::Honoured];
    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);
    const C: TaskId = TaskId(3);

    fn at(us: u64) -> Ps {
        Ps::from_ns(Ns(1_000 * us))
    }

    /// The queue of a machine with two CPUs (a slice is 1.4 ms), with fair tasks of these lags.
    fn queue(lazy_timers: LazyTimers, tasks: &[(TaskId, i64)]) -> RunQueue {
        let config = Config {
            timers: Settings { lazy_timers, ..Settings::default() },
            tick: Ns::from_ms(4),
            skew: Skew::NONE,
            idle: IdleTick::Keeps,
            grace: Ns::NEVER,
            clocked: Clocked::FromSwitch,
            has_slice_timer: true,
        };
        let mut queue = RunQueue::new(2, &config);
        tasks.iter().for_each(|&(task, lag)| assert!(queue.add(task, Class::Fair, lag)));
        queue
    }

    fn choose(queue: &mut RunQueue, us: u64) -> Option<TaskId> {
        queue.choose(at(us), |_, _| panic!("no task has blocked")).0
    }

    #[test]
    fn real_time_tasks_run_first_by_priority_and_arrival() {
        let mut queue = queue(LazyTimers::Ignored, &[(A, 0)]);
        assert_eq!(choose(&mut queue, 0), Some(A));
        for (task, priority) in [(B, 1), (C, 1), (TaskId(4), 2)] {
            assert!(queue.add(task, Class::Fifo(priority), 0));
        }
        assert!(!queue.preempts(B) && !queue.preempts(C) && queue.preempts(TaskId(4)));
        assert_eq!(choose(&mut queue, 10), Some(TaskId(4)));
        assert_eq!(queue.block(at(20), |_, _| ()), None);
        assert_eq!(choose(&mut queue, 20), Some(B));
    }

    #[test]
    fn task_that_has_run_for_longer_than_the_mean_is_not_eligible() {
        let mut queue = queue(LazyTimers::Ignored, &[(A, 0), (B, 0), (C, 0)]);
        assert_eq!([0, 900, 1_700].map(|us| choose(&mut queue, us)), [A, B, C].map(Some));
        // The mean is 0.83 ms. B has run for 0.8 ms of its request, A for 0.9 ms, C for 0.8 ms.
        assert_eq!(choose(&mut queue, 2_500), Some(C), "its request has not ended");
        assert_eq!(choose(&mut queue, 2_600), Some(B));
    }

    /// Then the eligible task with the earliest deadline runs.
    #[test]
    fn running_task_completes_its_request() {
        let mut queue = queue(LazyTimers::Ignored, &[(B, 0), (A, 5 * MS)]);
        assert_eq!([0, 1_400].map(|us| choose(&mut queue, us)), [A; 2].map(Some));
        queue.add(C, Class::Fair, 3 * MS);
        let deadline = |queue: &mut RunQueue, task| queue.find(Some(task)).unwrap().deadline;
        assert!(deadline(&mut queue, C) < deadline(&mut queue, A));
        assert!(!queue.preempts(C));
        assert_eq!([2_700, 2_800].map(|us| choose(&mut queue, us)), [Some(A), Some(C)]);
    }

    /// Since 6.17 a CPU is asked again to choose until it has.
    #[test]
    fn end_of_a_request_asks_for_a_choice() {
        for (lazy_timers, again) in SINCE_7_1.into_iter().zip([false, true]) {
            let mut queue = queue(lazy_timers, &[(B, 0), (A, 5 * MS)]);
            assert_eq!(choose(&mut queue, 0), Some(A));
            let asked = [1_390, 1_400, 1_500].map(|us| queue.account(at(us)));
            assert_eq!(asked, [false, true, again]);
            assert_eq!(choose(&mut queue, 1_500), Some(A));
            assert!(!queue.account(at(1_600)));
        }
    }

    #[test]
    fn lag_is_kept_over_a_sleep_up_to_a_tick() {
        for (lag, kept) in [(MS, MS * 3 / 4), (10 * MS, 4 * MS)] {
            let mut queue = queue(LazyTimers::Ignored, &[(B, 0), (C, 0), (A, lag)]);
            assert_eq!(queue.mean() - queue.find(Some(A)).unwrap().ran, lag);
            assert_eq!(choose(&mut queue, 0), Some(A));
            let mut left = None;
            queue.block(at(375), |task, lag| left = Some((task, lag)));
            assert_eq!(left, Some((A, kept)));
            assert!(queue.add(A, Class::Fair, kept));
            assert_eq!(queue.mean() - queue.find(Some(A)).unwrap().ran, kept);
        }
    }

    #[test]
    fn task_that_blocks_with_a_debt_stays_until_it_is_eligible() {
        let blocked = || {
            let mut queue = queue(LazyTimers::Ignored, &[(A, 0), (B, 0)]);
            assert_eq!(choose(&mut queue, 0), Some(A));
            assert_eq!(queue.block(at(1_000), |_, _| panic!("it has a debt")), None);
            assert_eq!(choose(&mut queue, 1_000), Some(B));
            queue
        };
        let mut queue = blocked();
        let mut left = Vec::new();
        assert_eq!(queue.choose(at(2_500), |task, lag| left.push((task, lag))).0, Some(B));
        assert_eq!(left, [(A, 0)], "a debt is forgiven, but no lag is won");
        // Woken before: it keeps its debt, or is placed at the mean once it has none.
        for (us, ran) in [(1_500, MS), (2_500, MS * 3 / 2)] {
            let mut queue = blocked();
            queue.account(at(us));
            assert!(!queue.add(A, Class::Fair, 0));
            assert_eq!(queue.find(Some(A)).unwrap().ran, ran);
        }
    }

    /// Up to 7.0 a slice begins when the task is chosen, since 7.1 it ends with the request.
    #[test]
    fn rest_of_a_slice_is_from_the_choice_or_to_the_end_of_the_request() {
        for (lazy_timers, rest_us) in SINCE_7_1.into_iter().zip([1_400, 400]) {
            let mut queue = queue(lazy_timers, &[(A, 0), (B, 0)]);
            assert_eq!([0, 1_000, 2_200].map(|us| choose(&mut queue, us)), [A, B, A].map(Some));
            assert_eq!(queue.rest(), Some(Ns(1_000 * rest_us)));
            queue.take(B);
            assert_eq!(queue.rest(), None, "it shares its CPU with no other task");
        }
    }
}
