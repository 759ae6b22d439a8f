//! The demand of a group of threads: the work that each did between two sleeps.

use super::QuotaError;
use crate::cgroup::Recorded;
use crate::late::Selection;
use crate::read::{Context, Event, EventKind, TICK_FUNCTIONS, TimerAddr, Trace};
use rustc_hash::FxHashMap;
use tickless_core::time::{CpuId, Ns};

/// The work of a thread between two sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// When the thread was woken.
    pub(super) at: Ns,
    pub(super) work: Ns,
    /// The thread of the group that woke this one; `None` if an interrupt or another process did.
    pub(super) waker: Option<Waker>,
}

/// The thread `thread` wakes another one when it has done the part `after` of its piece `piece`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waker {
    pub(super) thread: usize,
    pub(super) piece: usize,
    pub(super) after: Ns,
}

#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The pieces of each thread, in order, and the threads' numbers.
    pub(super) threads: Vec<Vec<Piece>>,
    pub(super) pids: Vec<u32>,
    /// When each thread ran, and when each CPU ran no thread.
    runs: Vec<(Ns, Ns)>,
    idle: Vec<(Ns, Ns)>,
    waits: Vec<Wait>,
    /// How many turns of the threads ended with a tick, and how many between ticks: there, the
    /// kernel charges threads too that read their own CPU time again and again.
    pub(super) turns: [u64; 2],
    /// For each timer that refills a quota, when it did.
    refills: FxHashMap<TimerAddr, Refills>,
}

/// A thread that could run waited for a CPU.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: Ns,
    to: Ns,
    /// How long the CPU did not run another thread of the group.
    of_cpu: Ns,
    /// It was woken; otherwise, it was preempted.
    was_woken: bool,
    /// It was woken, and the CPU did not run the group before.
    starts: bool,
    /// The thread's wait before this one, if the thread has run only briefly since then.
    before: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Refills {
    at: Vec<Ns>,
    /// How many waits ended right after a refill.
    ended: u64,
}

/// So many threads, or more, count as so many.
const THREADS: usize = 16;

/// What other programs leave to the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// The share of a CPU's time that the group's threads got, from when the CPU began to work for
    /// the group until none of its threads could run.
    pub(super) share: f64,
    /// For each number of threads that can run, how many CPUs had one, as a share of the most that
    /// could have had one: of those that were not idle, at most one for each thread. This is less
    /// than 1 if threads waited behind each other while another CPU ran another program.
    pub(super) spread: [f64; THREADS],
    /// The mean time that a woken thread waits until a CPU begins to work for the group.
    pub(super) start_wait: Ns,
    /// One of the longer turns of others: twice as long as the one in which they are on average, if
    /// one looks at any moment at which a thread that they preempted waits.
    pub(super) turn: Ns,
}

impl Leave {
    /// What is left without other programs.
    pub(super) const ALL: Leave =
        Leave { share: 1.0, spread: [1.0; THREADS], start_wait: Ns::ZERO, turn: Ns::ZERO };

    /// Returns the part of the CPUs on which the model puts so many threads that has one.
    pub(super) fn spread(&self, threads: usize) -> f64 {
        self.spread[threads.min(THREADS - 1)]
    }
}

#[derive(Clone, Copy, Debug)]
enum ThreadState {
    /// The thread has not run in the trace.
    New,
    /// The thread is off the CPU: it sleeps, or if it is known that it can run, it was preempted.
    Off(Ns, bool),
    /// The thread was woken at this time, to run on this CPU, and has not run since.
    Woken(Ns, CpuId),
    On(Ns),
}

/// The callback of the timers that refill quotas, and how soon after it a stopped thread runs.
const REFILL_FUNCTION: &str = "sched_cfs_period_timer";
const SOON: Ns = Ns(1_000_000);
/// A thread that gets a CPU and no quota runs for less than this, in the kernel.
const BRIEFLY: Ns = Ns(100_000);

impl Demand {
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.threads.iter().flatten()
    }

    pub(super) fn work(&self) -> Ns {
        Ns(self.pieces().map(|piece| piece.work.0).sum())
    }

    /// Returns what other programs left to the group on `cpus` CPUs. Where a limit stopped the
    /// group in some periods, a wait counts from the last refill of its quota, by the timer that
    /// ended most waits. `None` if no such timer was recorded.
    pub(super) fn leave(&self, cpus: u16, throttled: Option<u64>) -> Option<Leave> {
        let timers = self.refills.values();
        let refills = match throttled {
            Some(1..) => &timers.max_by_key(|refills| (refills.ended, refills.at.len()))?.at[..],
            _ => &[],
        };
        let refilled = |wait: &Wait| {
            let until = refills.partition_point(|at| *at <= wait.to);
            refills[..until].last().filter(|at| **at >= wait.from)
        };
        let mut begins: Vec<Ns> = self.waits.iter().map(|wait| wait.from).collect();
        for (at, wait) in self.waits.iter().enumerate() {
            let Some(refill) = refilled(wait) else { continue };
            begins[at] = *refill;
            // The quota ran out in this wait, or before: the thread got a CPU and no quota.
            wait.before.into_iter().for_each(|before| begins[before] = self.waits[before].to);
        }
        let (mut ready, mut present) = (self.runs.clone(), self.runs.clone());
        let (mut preempted, mut squares, mut waited, mut starts) = (0, 0.0, 0, 0);
        for (wait, from) in self.waits.iter().zip(begins) {
            let of_cpu = wait.of_cpu.0.min(wait.to.since(from).0);
            if wait.was_woken {
                waited += of_cpu;
                starts += u64::from(wait.starts);
            } else {
                preempted += of_cpu;
                squares += (of_cpu as f64).powi(2);
                ready.push((from, wait.to));
                present.push((Ns(wait.to.0 - of_cpu), wait.to));
            }
        }
        let work = self.work().0 as f64;
        Some(Leave {
            share: work / (work + preempted as f64).max(1.0),
            spread: spread(cpus, &[&ready, &present, &self.idle]),
            start_wait: Ns(waited / starts.max(1)),
            turn: Ns((2.0 * squares / preempted.max(1) as f64) as u64),
        })
    }

    /// Finds the work of a group's threads and of the threads that they created; or without a
    /// group, that of the selected threads. O(n log n) in the number of events.
    pub(super) fn of(
        trace: &Trace,
        group: Option<&Recorded>,
        selection: &Selection,
    ) -> Result<Demand, QuotaError> {
        for (kind, so) in [
            (EventKind::SchedSwitch, "when a thread ran"),
            (EventKind::SchedWakeup, "when a thread was woken"),
        ] {
            if trace.count(kind) == 0 {
                return Err(QuotaError::NoEvent {
                    path: trace.path.clone(),
                    event: kind.name(),
                    so,
                });
            }
        }
        let (begin, end) = match (trace.records.first(), trace.records.last()) {
            (Some(first), Some(last)) => (first.time, last.time),
            _ => (Ns::ZERO, Ns::ZERO),
        };
        let mut finder = Finder::default();
        // Whether each thread belongs to the group: from the start, or since a member created it.
        let mut members: FxHashMap<u32, bool> = FxHashMap::default();
        let mut is_member = |pid: u32, adds: bool| {
            let member = members.entry(pid).or_insert_with(|| match group {
                Some(group) => group.threads.contains(&pid),
                None => pid != 0 && selection.has(trace, pid),
            });
            *member |= adds;
            *member
        };
        let mut cpus: Vec<Option<OnCpu>> = vec![None; usize::from(trace.cpus)];
        // Since when each CPU is seen.
        let mut begins = vec![begin; usize::from(trace.cpus)];
        let mut gaps = trace.gaps_in_order();
        let refill = trace.names.find(REFILL_FUNCTION);
        let ticks = TICK_FUNCTIONS.map(|function| trace.names.find(function));
        for (place, record) in trace.records.iter().enumerate() {
            for gap in gaps(place) {
                finder.forget(cpus[gap.cpu.index()].take(), gap.from);
                begins[gap.cpu.index()] = gap.to;
            }
            let known = is_member(record.pid, false);
            let on_cpu = &mut cpus[record.cpu.index()];
            if on_cpu.is_none() {
                // The first event of a CPU shows what the CPU has run since the trace began.
                let begin = begins[record.cpu.index()];
                let first = OnCpu { since: begin, left: begin, ..OnCpu::default() };
                finder.switch(on_cpu.insert(first), (record.pid, known), begin);
            }
            if let Some(last) = on_cpu.as_mut().filter(|on_cpu| on_cpu.pid != record.pid) {
                // Some kernels record no events of certain threads, not even the switch from them
                // to this thread, which a CPU runs at once if it is idle (PID 0).
                let began = finder.began(record.pid, record.cpu, last.since);
                let at = began.filter(|_| last.pid == 0).unwrap_or(record.time);
                finder.switch(last, (record.pid, known), at);
            }
            match (record.event, on_cpu) {
                (Event::SchedSwitch { next_pid, still_runs, .. }, Some(on_cpu)) => {
                    let is_its = is_member(next_pid, false);
                    on_cpu.still_runs = still_runs == Some(true);
                    finder.switch(on_cpu, (next_pid, is_its), record.time);
                }
                (Event::SchedWakeup { pid, target }, _) if is_member(pid, false) => {
                    let has_waker = record.context == Context::Task && known;
                    finder.wake(pid, target, record.time, has_waker.then_some(record.pid));
                }
                (Event::HrtimerExpireEntry { timer, function, .. }, _) => match Some(function) {
                    it if it == refill => {
                        finder.demand.refills.entry(timer).or_default().at.push(record.time);
                    }
                    it if ticks.contains(&it) => finder.ticks.push(record.time),
                    _ => {}
                },
                (Event::TaskNew { pid }, _) if group.is_some() && known => {
                    is_member(pid, true);
                }
                _ => {}
            }
        }
        for gap in gaps(trace.records.len()) {
            finder.forget(cpus[gap.cpu.index()].take(), gap.from);
        }
        // The trace ends. The threads that run at the end have worked until then.
        cpus.iter_mut().flatten().for_each(|on_cpu| finder.switch(on_cpu, (0, false), end));
        let demand = finder.demand;
        match demand.work() {
            Ns::ZERO => Err(QuotaError::NoWork { path: trace.path.clone() }),
            _ => Ok(demand),
        }
    }
}

/// The thread that a CPU runs; 0 is its idle thread.
#[derive(Clone, Copy, Default)]
struct OnCpu {
    pid: u32,
    /// Whether the thread is one of the group.
    is_its: bool,
    /// Whether the thread can run on while the CPU leaves it.
    still_runs: bool,
    /// When the CPU switched to the thread.
    since: Ns,
    /// When the CPU last ran a thread of the group.
    left: Ns,
}

#[derive(Default)]
struct Finder {
    demand: Demand,
    /// For each thread's number, its index in `demand.threads` and its state.
    of: FxHashMap<u32, (usize, ThreadState)>,
    /// For each thread's number, the place of its last wait in `demand.waits`.
    last_waits: FxHashMap<u32, usize>,
    /// The ticks of all CPUs.
    ticks: Vec<Ns>,
}

impl Finder {
    /// Returns the place of a thread in the list of threads, and its state.
    fn thread(&mut self, pid: u32) -> (usize, &mut ThreadState) {
        let Demand { threads, pids, .. } = &mut self.demand;
        let (place, state) = self.of.entry(pid).or_insert_with(|| {
            threads.push(Vec::new());
            pids.push(pid);
            (threads.len() - 1, ThreadState::New)
        });
        (*place, state)
    }

    /// Records that nothing is seen of a CPU from `at` on: its thread worked until then, and which
    /// threads sleep or wait is unknown from here on.
    fn forget(&mut self, on_cpu: Option<OnCpu>, at: Ns) {
        if let Some(mut on_cpu) = on_cpu {
            self.switch(&mut on_cpu, (0, false), at);
        }
        for (_, state) in self.of.values_mut() {
            if !matches!(state, ThreadState::On(_)) {
                *state = ThreadState::New;
            }
        }
    }

    /// Records a CPU's switch to the thread `next`. `is_its`: whether `next` belongs to the group.
    fn switch(&mut self, on_cpu: &mut OnCpu, (next, is_its): (u32, bool), at: Ns) {
        let now = OnCpu { pid: next, is_its, still_runs: false, since: at, ..*on_cpu };
        let last = std::mem::replace(on_cpu, now);
        // A thread of the group that can run gives way to another one that was preempted.
        let is_turn = matches!(self.of.get(&next), Some((_, ThreadState::Off(_, true))));
        if let (Some(tick), true) = (self.ticks.last(), is_turn && last.is_its && last.still_runs) {
            self.demand.turns[usize::from(at.since(*tick) > BRIEFLY)] += 1;
        }
        if last.is_its {
            self.leave(&last, at);
            on_cpu.left = at;
        } else if last.pid == 0 {
            self.demand.idle.push((last.since, at));
        }
        if is_its && let Some((from, was_woken)) = self.enter(next, at) {
            let of_cpu = match last.is_its {
                true => Ns::ZERO,
                false => Ns(at.since(from.max(on_cpu.left)).0),
            };
            let starts = was_woken && !last.is_its;
            let waits = &mut self.demand.waits;
            let before = self.last_waits.insert(next, waits.len());
            let before = before.filter(|at| from.since(waits[*at].to) < BRIEFLY);
            waits.push(Wait { from, to: at, of_cpu, was_woken, starts, before });
            for refills in self.demand.refills.values_mut() {
                let last = refills.at.last().filter(|last| **last >= from);
                refills.ended += u64::from(last.is_some_and(|last| at.since(*last) < SOON));
            }
        }
    }

    /// Returns when a CPU that was idle since `idle` began to run a thread: when that was woken for
    /// it. A thread that waited for another CPU comes to an idle one with a tick, and one that
    /// waited for quota gets it with a refill. `None` if it is not known that the thread waited.
    fn began(&self, pid: u32, cpu: CpuId, idle: Ns) -> Option<Ns> {
        let from = match self.of.get(&pid)?.1 {
            ThreadState::Woken(at, target) if target == cpu => return Some(at.max(idle)),
            ThreadState::Woken(at, _) | ThreadState::Off(at, true) => at.max(idle),
            _ => return None,
        };
        let refills = self.demand.refills.values().filter_map(|refills| refills.at.last());
        let refill = refills.max().filter(|at| **at >= from);
        refill.or_else(|| self.ticks.get(self.ticks.partition_point(|at| *at < from))).copied()
    }

    /// Records that a thread begins to run. Returns since when it could have run, and whether a
    /// wakeup made it ready then.
    fn enter(&mut self, pid: u32, at: Ns) -> Option<(Ns, bool)> {
        let (place, state) = self.thread(pid);
        // A thread that runs again without having been woken was preempted.
        let ready = match std::mem::replace(state, ThreadState::On(at)) {
            ThreadState::Off(since, _) => Some((since, false)),
            ThreadState::Woken(since, _) => Some((since, true)),
            ThreadState::New | ThreadState::On(_) => None,
        };
        // A thread without a wakeup in the trace has been awake since the trace began.
        let pieces = &mut self.demand.threads[place];
        if pieces.is_empty() {
            pieces.push(Piece { at, work: Ns::ZERO, waker: None });
        }
        ready
    }

    /// Records that a thread leaves its CPU. Adds the time that it ran there to its current piece.
    fn leave(&mut self, last: &OnCpu, at: Ns) {
        let (place, state) = self.thread(last.pid);
        if let ThreadState::On(since) = *state {
            *state = ThreadState::Off(at, last.still_runs);
            if let Some(piece) = self.demand.threads[place].last_mut() {
                piece.work = piece.work + (at - since);
            }
            self.demand.runs.push((since, at));
        }
    }

    /// Records a wakeup. A thread that is off the CPU has slept, and begins a new piece.
    fn wake(&mut self, pid: u32, target: CpuId, at: Ns, waker: Option<u32>) {
        let waker = waker.and_then(|waker| {
            let (thread, state) = self.thread(waker);
            let ThreadState::On(since) = *state else { return None };
            let pieces = &self.demand.threads[thread];
            let after = pieces.last()?.work + (at - since);
            Some(Waker { thread, piece: pieces.len() - 1, after })
        });
        let (place, state) = self.thread(pid);
        if matches!(state, ThreadState::Off(..) | ThreadState::New) {
            *state = ThreadState::Woken(at, target);
            self.demand.threads[place].push(Piece { at, work: Ns::ZERO, waker });
        }
    }
}

/// Returns [`Leave::spread`] of spans of three kinds: in which a thread can run, in which a CPU has
/// one, and in which a CPU is idle. O(n log n).
fn spread(cpus: u16, spans: &[&[(Ns, Ns)]; 3]) -> [f64; THREADS] {
    let mut changes: Vec<(Ns, usize, i64)> = Vec::new();
    for (kind, spans) in spans.iter().enumerate() {
        changes.extend(spans.iter().flat_map(|&(from, to)| [(from, kind, 1), (to, kind, -1)]));
    }
    // Those of a kind are nearly in order, which this sort makes use of.
    changes.sort();
    let (mut counts, mut since) = ([0, 0, 0], Ns::ZERO);
    let mut times = [(0.0, 0.0); THREADS];
    for (at, kind, change) in changes {
        let [ready, present, idle] = counts;
        let (had, could) = &mut times[usize::try_from(ready).unwrap_or(0).min(THREADS - 1)];
        let most = ready.min(i64::from(cpus) - idle).max(present);
        *had += present as f64 * at.since(since).0 as f64;
        *could += most as f64 * at.since(since).0 as f64;
        counts[kind] += change;
        since = at;
    }
    times.map(|(had, could)| if could > 0.0 { had / could } else { 1.0 })
}
