//! Finds when threads waited to run, and what ended their sleeps, from the scheduler's events.
//!
//! A wait is counted as `runqlat` counts it: from the wakeup of a thread that had slept, or from
//! the moment at which it lost its CPU and could still run, until a CPU switches to it. A wakeup of
//! a thread that can run already changes nothing.

use super::spans::Activity;
use crate::list::List;
use crate::read::{Context, Event, NameId, Record, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tickless_core::time::{CpuId, Ns};

/// A time in which a thread could run, and did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wait {
    pub(super) pid: u32,
    pub(super) ready: Ns,
    pub(super) ran: Ns,
    /// Whether the thread lost its CPU; otherwise it was woken.
    pub(super) is_preempted: bool,
    /// The CPU for which it waited at first.
    pub(super) cpu: CpuId,
    /// Where its moves are in [`Waits::moves`].
    moves: (usize, usize),
    /// Where it ran.
    pub(super) ran_on: CpuId,
}

impl Wait {
    fn of_woken(pid: u32, ready: Ns, cpu: CpuId) -> Wait {
        let (moves, is_preempted) = ((0, 0), false);
        Wait { pid, ready, ran: ready, is_preempted, cpu, moves, ran_on: cpu }
    }

    pub(super) fn time(&self) -> Ns {
        Ns(self.ran.since(self.ready).0)
    }
}

/// What woke a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Waker {
    Timer(NameId),
    Irq(u32),
    Softirq(u32),
    /// An interrupt without events of its own, such as the one by which a thread on another CPU
    /// wakes this one.
    Interrupt,
    NotRecorded,
    Thread(u32),
}

#[derive(Clone, Debug)]
enum Thread {
    Runs,
    /// The CPUs to which the thread was moved while it waited, and when.
    Waits(Wait, Vec<(CpuId, Ns)>),
    Sleeps(Ns),
}

/// Follows the threads of a trace. A thread without a state has not been seen.
pub(super) struct Waits<'t> {
    trace: &'t Trace,
    unseen: Vec<(Ns, Ns)>,
    is_selected: Box<dyn Fn(u32) -> bool + Send + Sync + 't>,
    threshold: Ns,
    states: FxHashMap<u32, Thread>,
    /// Which thread each CPU runs, as far as a switch has shown.
    runs: Vec<Option<u32>>,
    pub(super) count: u64,
    pub(super) time: Ns,
    /// The waits longer than the threshold.
    pub(super) long: List<Wait>,
    moves: List<(CpuId, Ns)>,
    /// How often each waker ended a sleep, and how long these sleeps were in all.
    pub(super) wakers: BTreeMap<Waker, (u64, u64)>,
}

impl<'t> Waits<'t> {
    pub(super) fn new(
        trace: &'t Trace,
        threshold: Ns,
        is_selected: impl Fn(u32) -> bool + Send + Sync + 't,
    ) -> Waits<'t> {
        Waits {
            trace,
            unseen: trace.unseen(),
            is_selected: Box::new(is_selected),
            threshold,
            states: FxHashMap::default(),
            runs: vec![None; usize::from(trace.cpus)],
            count: 0,
            time: Ns::ZERO,
            long: List::default(),
            moves: List::default(),
            wakers: BTreeMap::new(),
        }
    }

    /// Follows an event. `activity` is what its CPU did just before.
    pub(super) fn follow(&mut self, record: &Record, activity: Activity) {
        let at = record.time;
        if self.runs[record.cpu.index()] == Some(0) && record.pid != 0 {
            // Some kernels do not record the idle thread's switch to another thread.
            self.states.insert(record.pid, Thread::Runs);
            self.runs[record.cpu.index()] = Some(record.pid);
        }
        match record.event {
            Event::SchedSwitch { next_pid, still_runs, .. } => {
                self.runs[record.cpu.index()] = Some(next_pid);
                let wait =
                    Wait { is_preempted: true, ..Wait::of_woken(record.pid, at, record.cpu) };
                match still_runs {
                    _ if record.pid == 0 => None,
                    None => self.states.remove(&record.pid),
                    Some(true) => self.states.insert(record.pid, Thread::Waits(wait, Vec::new())),
                    Some(false) => self.states.insert(record.pid, Thread::Sleeps(at)),
                };
                if next_pid != 0
                    && let Some(Thread::Waits(wait, moves)) =
                        self.states.insert(next_pid, Thread::Runs)
                {
                    self.end(Wait { ran: at, ran_on: record.cpu, ..wait }, &moves);
                }
            }
            Event::SchedWakeup { pid, target } => {
                let sleeps = match self.states.get(&pid) {
                    Some(Thread::Runs | Thread::Waits(..)) => return,
                    Some(Thread::Sleeps(since)) => Some(*since),
                    None => None,
                };
                if let Some(since) = sleeps.filter(|since| self.is_whole(pid, *since, at)) {
                    let (count, ns) = self.wakers.entry(waker(record, activity)).or_default();
                    *count += 1;
                    *ns += at.since(since).0;
                }
                let wait = Wait::of_woken(pid, at, target);
                self.states.insert(pid, Thread::Waits(wait, Vec::new()));
            }
            Event::SchedMigrate { pid, to } => {
                if let Some(Thread::Waits(_, moves)) = self.states.get_mut(&pid) {
                    moves.push((to, at));
                }
            }
            _ => {}
        }
    }

    /// Returns whether a time of a selected thread has no gap. A thread can have run, slept and
    /// been moved on every CPU of which nothing is seen.
    fn is_whole(&self, pid: u32, from: Ns, to: Ns) -> bool {
        let next = self.unseen.partition_point(|(_, end)| *end <= from);
        self.unseen.get(next).is_none_or(|(begin, _)| *begin >= to) && (self.is_selected)(pid)
    }

    fn end(&mut self, wait: Wait, moves: &[(CpuId, Ns)]) {
        if !self.is_whole(wait.pid, wait.ready, wait.ran) {
            return;
        }
        self.count += 1;
        self.time = Ns(self.time.0 + wait.time().0);
        if wait.time() > self.threshold {
            let first = self.moves.len();
            self.moves.extend_from_slice(moves);
            self.long.push(Wait { moves: (first, self.moves.len()), ..wait });
        }
    }

    /// Returns the CPUs to which a thread was moved while it waited, and when.
    pub(super) fn moves(&self, wait: &Wait) -> &[(CpuId, Ns)] {
        &self.moves[wait.moves.0..wait.moves.1]
    }

    /// Returns how a waker is shown.
    pub(super) fn describe(&self, waker: Waker) -> String {
        match waker {
            Waker::Timer(function) => format!("timer ({})", self.trace.names.name(function)),
            Waker::Irq(irq) => format!("interrupt {irq}"),
            Waker::Softirq(vector) => format!("softirq {}", super::cause::softirq(vector)),
            Waker::Interrupt => "another CPU, or another interrupt".to_string(),
            Waker::NotRecorded => "a thread or an interrupt: not recorded which".to_string(),
            Waker::Thread(pid) => format!("thread {}", super::cause::thread(self.trace, pid)),
        }
    }
}

fn waker(record: &Record, activity: Activity) -> Waker {
    match activity {
        Activity::Callback(function) => Waker::Timer(function),
        Activity::Irq(irq) => Waker::Irq(irq),
        Activity::Softirq(vector) => Waker::Softirq(vector),
        Activity::TimerInterrupt => Waker::Interrupt,
        Activity::Thread(_) | Activity::Idle(_) => match record.context {
            Context::Task if record.pid != 0 => Waker::Thread(record.pid),
            Context::NotRecorded => Waker::NotRecorded,
            _ => Waker::Interrupt,
        },
    }
}
