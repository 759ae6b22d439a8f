//! Simulates the demand of a group of threads, their recorded work, under a limit of CPU time.
//!
//! Each CPU is a member of a bandwidth group, as in the kernel: it takes slices from the group's
//! quota, and charges what it has used when its timer ticks and when its threads change, or at once
//! if the kernel did. A CPU that finds no quota is stopped until the next refill. A thread begins a
//! piece of work (what it did between two sleeps) at the recorded time, or if another thread woke
//! it, when that one has done as much work as before the recorded wakeup; but not before its own
//! earlier pieces have ended.
//! Other programs take as much time as in the recording: a CPU begins to work for the group after
//! the recorded mean wait, and then works for it for the recorded share of its time.

use super::demand::{Demand, Leave};
use std::collections::VecDeque;
use tickless_core::bandwidth::{BandwidthError, Grant, Group, MemberId, Settings};
use tickless_core::time::Ns;

/// An idle CPU keeps this much of its slice of the quota, in ns, and returns the rest, as in Linux.
const KEPT: u64 = 1_000_000;
/// A returned slice of quota releases stopped CPUs after `SLACK_DELAY`. In the last `SLACK_REFILL`
/// before a refill, it releases none, because the refill does.
const SLACK_DELAY: Ns = Ns(5_000_000);
const SLACK_REFILL: Ns = Ns(7_000_000);

/// A demand, as all its simulations need it. The pieces of the first thread come first, in order,
/// and then those of the next one.
#[derive(Debug)]
pub(super) struct Plan {
    works: Vec<Ns>,
    /// The first piece of each thread, and the number of all pieces.
    firsts: Vec<usize>,
    /// The wakeups in order of the pieces that wake: after how much work, and which thread.
    wakes: Vec<(Ns, usize)>,
    /// For each piece, the first of its wakeups, and the number of all wakeups.
    first_wakes: Vec<u32>,
    /// The pieces that no thread wakes: when they begin, and their threads.
    arrivals: Vec<(Ns, usize)>,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// For each piece of work, the time at which it was done.
    pub(super) done: Vec<Ns>,
    /// How many pieces were done later than the limit allows.
    pub(super) delayed: u64,
    pub(super) periods: u64,
    pub(super) throttled: u64,
    /// The duration, in ns, of each stop of a CPU that had threads to run.
    pub(super) stands: Vec<u64>,
    /// The sum. Threads that wait behind each other stand on one CPU.
    pub(super) stood: f64,
    /// Whether the quota never ran out, not even for a moment. Then every higher limit with the
    /// same period and slice has the same outcome.
    pub(super) is_untouched: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Limit<'a> {
    pub(super) settings: Settings,
    /// The first refill.
    pub(super) first: Ns,
    /// When each piece is done without a limit; `NEVER`, or none, if it does not count. A piece is
    /// delayed that is done more than `delay` later.
    pub(super) free: &'a [Ns],
    pub(super) delay: Ns,
    /// With more delayed pieces than this, the simulation ends.
    pub(super) delayed_max: u64,
}

/// Where the demand runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) cpus: usize,
    pub(super) tick: Ns,
    pub(super) leave: Leave,
    /// A CPU stands still only from when it takes up a thread of the group and finds no quota.
    pub(super) stops_late: bool,
    /// The kernel charges threads all the time, not only with ticks and when threads change.
    pub(super) charges_at_once: bool,
    /// Each time a tick ends a turn of the group, others keep the CPU for a longer turn of theirs.
    pub(super) is_last: bool,
}

impl Place {
    /// Returns for how long other programs keep a CPU on average when a tick ends the turn of a
    /// thread of the group.
    fn others(&self) -> Ns {
        match self.leave {
            _ if !self.stops_late => Ns::ZERO,
            leave if self.is_last => leave.turn,
            Leave { share, .. } => Ns((self.tick.0 as f64 * (1.0 - share) / share) as u64),
        }
    }
}

impl Plan {
    pub(super) fn of(demand: &Demand) -> Plan {
        let mut firsts = vec![0];
        for pieces in &demand.threads {
            firsts.push(firsts[firsts.len() - 1] + pieces.len());
        }
        let mut arrivals = Vec::new();
        let mut wakes: Vec<(usize, Ns, usize)> = Vec::new();
        for (thread, pieces) in demand.threads.iter().enumerate() {
            for piece in pieces {
                match piece.waker {
                    Some(waker) => {
                        wakes.push((firsts[waker.thread] + waker.piece, waker.after, thread));
                    }
                    None => arrivals.push((piece.at, thread)),
                }
            }
        }
        arrivals.sort_unstable();
        wakes.sort_unstable();
        let works: Vec<Ns> = demand.pieces().map(|piece| piece.work).collect();
        let mut first_wakes = vec![0; works.len() + 1];
        wakes.iter().for_each(|(piece, ..)| first_wakes[piece + 1] += 1);
        for piece in 0..works.len() {
            first_wakes[piece + 1] += first_wakes[piece];
        }
        let wakes = wakes.into_iter().map(|(_, after, thread)| (after, thread)).collect();
        Plan { works, firsts, wakes, first_wakes, arrivals }
    }

    /// Returns the times of the pieces of these threads, and [`Ns::NEVER`] for all others.
    pub(super) fn only(&self, times: Vec<Ns>, threads: &[usize]) -> Vec<Ns> {
        let mut only = vec![Ns::NEVER; times.len()];
        for &thread in threads {
            let pieces = self.firsts[thread]..self.firsts[thread + 1];
            only[pieces.clone()].copy_from_slice(&times[pieces]);
        }
        only
    }

    /// Returns the wakeups of a piece, in order: after how much work, and which thread.
    fn wakes(&self, piece: usize) -> &[(Ns, usize)] {
        &self.wakes[self.first_wakes[piece] as usize..self.first_wakes[piece + 1] as usize]
    }

    /// Simulates all pieces of work, with or without a limit. Pieces that another thread wakes
    /// begin at that wakeup; the others at their recorded times. O(c n log n) for n pieces on c
    /// CPUs.
    pub(super) fn run(
        &self,
        place: Place,
        limit: Option<Limit<'_>>,
    ) -> Result<Outcome, BandwidthError> {
        let mut quota = match limit {
            Some(Limit { settings, first, .. }) => Some(Quota::new(settings, first)?),
            None => None,
        };
        let cpu = || Cpu {
            member: quota.as_mut().map(|quota| quota.group.join()),
            local: 0,
            running: None,
            queue: VecDeque::new(),
            since: Ns::ZERO,
            stopped: false,
            stood_since: None,
        };
        let cpus: Vec<Cpu> = std::iter::repeat_with(cpu).take(place.cpus.max(1)).collect();
        let thread = |(at, &first): (usize, &usize)| Thread {
            cpu: at % cpus.len(),
            piece: first,
            woken: first,
            ..Thread::default()
        };
        let threads = self.firsts[..self.firsts.len() - 1].iter().enumerate().map(thread).collect();
        let outcome = Outcome { done: vec![Ns::NEVER; self.works.len()], ..Outcome::default() };
        let mut replay = Replay {
            plan: self,
            place,
            others: place.others(),
            limit,
            threads,
            cpus,
            quota,
            now: Ns::ZERO,
            awake: 0,
            outcome,
        };
        replay.run();
        let is_whole = replay.outcome.done.iter().all(|done| *done < Ns::NEVER);
        let has_run_out = replay.quota.is_none_or(|quota| quota.has_run_out);
        Ok(Outcome { is_untouched: is_whole && !has_run_out, ..replay.outcome })
    }
}

struct Cpu {
    member: Option<MemberId>,
    /// The quota that the CPU has taken and not used. For the group it is used: a refill fills the
    /// pool whatever CPUs have kept, as in the kernel.
    local: u64,
    running: Option<usize>,
    /// The threads that wait for this CPU; all of its threads while the CPU is stopped.
    queue: VecDeque<usize>,
    /// Until when the running thread was charged. If the CPU is stopped: when it has taken up the
    /// thread that was woken last, and found no quota for it.
    since: Ns,
    /// The CPU has found no quota.
    stopped: bool,
    stood_since: Option<Ns>,
}

#[derive(Clone, Default)]
struct Thread {
    cpu: usize,
    /// The current piece, or the next one if the thread sleeps.
    piece: usize,
    /// How much of the current piece is done.
    done: Ns,
    /// The first piece for which the thread has not been woken.
    woken: usize,
    is_awake: bool,
    /// How many threads the current piece has woken.
    wakes: usize,
}

struct Quota {
    group: Group,
    /// The time at which returned slices are given to stopped CPUs.
    slack: Option<Ns>,
    /// Whether periods are counted: from the first use of quota until a whole period without use.
    is_counting: bool,
    is_unused: bool,
    has_run_out: bool,
}

impl Quota {
    fn new(settings: Settings, first: Ns) -> Result<Quota, BandwidthError> {
        let group = Group::new(settings, first)?;
        Ok(Quota { group, slack: None, is_counting: false, is_unused: false, has_run_out: false })
    }

    /// Returns whether a CPU may run on.
    fn may_run(&mut self, member: MemberId, local: &mut u64, now: Ns) -> bool {
        if *local > 0 {
            return true;
        }
        let pool = self.group.pool();
        if let Ok(Grant::Run(amount)) = self.group.ask(member, 1, now) {
            self.group.charge(member, amount);
            *local = amount;
        }
        let may_run = *local > 0;
        self.has_run_out |= !may_run || self.group.pool() <= 0;
        if !may_run || self.group.pool() != pool {
            self.is_counting = true;
            self.is_unused = false;
        }
        may_run
    }

    /// A CPU becomes idle: it keeps some of its slice. Stopped CPUs get the rest a bit later.
    fn rest(&mut self, member: MemberId, local: &mut u64, now: Ns) {
        if *local > KEPT {
            self.group.refund(member, *local - KEPT);
        }
        self.group.rest(member, 0);
        *local = (*local).min(KEPT);
        let has_slice = self.group.pool() > i128::from(self.group.settings().slice);
        let is_early = self.group.next_refill().since(now) > SLACK_REFILL;
        if has_slice && is_early && self.group.waiting() > 0 && self.slack.is_none() {
            self.slack = Some(Ns(now.0 + SLACK_DELAY.0));
        }
    }

    /// Refills the quota. `throttled` is 1 if a CPU stands, or 0, and so is what is returned: how
    /// many periods the kernel counts then.
    fn refill(&mut self, throttled: u64, now: Ns) -> u64 {
        let counted = u64::from(self.is_counting);
        self.group.refill(now);
        self.is_counting &= throttled > 0 || !self.is_unused;
        self.is_unused = throttled == 0;
        counted
    }
}

struct Replay<'a> {
    plan: &'a Plan,
    place: Place,
    /// See [`Place::others`].
    others: Ns,
    limit: Option<Limit<'a>>,
    threads: Vec<Thread>,
    cpus: Vec<Cpu>,
    quota: Option<Quota>,
    now: Ns,
    /// How many threads can run.
    awake: usize,
    outcome: Outcome,
}

impl Replay<'_> {
    /// Returns how fast the threads run, as a share of their speed on CPUs of their own.
    fn speed(&self) -> f64 {
        self.place.leave.share * self.place.leave.spread(self.awake)
    }

    /// Steps from one event to the next, until no thread has work left, or too much is delayed.
    fn run(&mut self) {
        let mut arrivals = self.plan.arrivals.iter().peekable();
        let delayed_max = self.limit.map_or(0, |limit| limit.delayed_max);
        while self.outcome.delayed <= delayed_max
            && let Some(now) = self.next(arrivals.peek().map(|(at, _)| *at))
        {
            self.now = now;
            self.refill();
            while let Some((_, thread)) = arrivals.next_if(|(at, _)| *at <= now) {
                self.wake(*thread);
            }
            for cpu in 0..self.cpus.len() {
                self.advance(cpu);
            }
        }
    }

    /// Returns the time of the next event; `None` if all work is done.
    fn next(&self, arrival: Option<Ns>) -> Option<Ns> {
        let speed = self.speed();
        let of_cpu = |cpu: &Cpu| {
            let at = cpu.running?;
            let after = |work: u64| Ns(cpu.since.0 + ceil(work as f64 / speed));
            let boundary = after(self.boundary(at).since(self.threads[at].done).0);
            let tick = Ns((cpu.since.0 / self.place.tick.0 + 1) * self.place.tick.0);
            let quota = self.quota.as_ref().filter(|_| self.place.charges_at_once);
            Some(boundary.min(tick).min(quota.map_or(Ns::NEVER, |_| after(cpu.local))))
        };
        let event = self.cpus.iter().filter_map(of_cpu).chain(arrival).min();
        let stands = self.cpus.iter().any(|cpu| !cpu.queue.is_empty());
        let quota = self.quota.as_ref().filter(|_| event.is_some() || stands);
        let refill = quota.map(|quota| quota.group.next_refill());
        let slack = quota.and_then(|quota| quota.slack);
        event.into_iter().chain(refill).chain(slack).min()
    }

    /// Returns how much of its piece a thread will have done when it wakes another or ends the
    /// piece.
    fn boundary(&self, at: usize) -> Ns {
        let Thread { piece, wakes, .. } = self.threads[at];
        let work = self.plan.works[piece];
        self.plan.wakes(piece).get(wakes).map_or(work, |(after, _)| work.min(*after))
    }

    /// Refills the quota if a refill is due. Lets each stopped CPU continue that now gets quota.
    fn refill(&mut self) {
        let (now, Some(quota)) = (self.now, &mut self.quota) else { return };
        let is_due = now >= quota.group.next_refill();
        let is_slack = quota.slack.is_some_and(|slack| now >= slack);
        if is_due {
            let is_late = |cpu: &Cpu| cpu.stood_since.is_some_and(|since| since > now);
            let stands = |cpu: &Cpu| cpu.stopped && !(self.place.stops_late && is_late(cpu));
            let throttled = u64::from(self.cpus.iter().any(stands));
            self.outcome.periods += quota.refill(throttled, now);
            self.outcome.throttled += throttled;
        }
        if !is_due && !is_slack {
            return;
        }
        quota.slack = quota.slack.filter(|_| !is_slack);
        let mut released = Vec::new();
        while let Some(member) = quota.group.pop_released(now) {
            released.extend(self.cpus.iter().position(|cpu| cpu.member == Some(member)));
        }
        for at in released {
            let cpu = &mut self.cpus[at];
            cpu.stopped = false;
            let stood = cpu.stood_since.take().map(|since| now.since(since).0);
            let stood = stood.filter(|stood| *stood > 0);
            self.outcome.stood += stood.unwrap_or(0) as f64 * self.place.leave.spread(self.awake);
            self.outcome.stands.extend(stood);
            self.dispatch(at, self.place.leave.start_wait);
        }
    }

    /// Wakes a thread for its next piece of work. A thread that is awake ends its current one
    /// first.
    fn wake(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        thread.woken += 1;
        if !std::mem::replace(&mut thread.is_awake, true) {
            self.awake += 1;
            self.queue(at);
        }
    }

    /// Puts a thread on its last CPU if that is idle, or on another idle one, or into the shortest
    /// queue. A CPU that runs nothing because its queue is throttled counts as idle, as in Linux.
    fn queue(&mut self, at: usize) {
        let (last, count) = (self.threads[at].cpu, self.cpus.len());
        let near = (last..count).chain(0..last);
        let load = |&cpu: &usize| match &self.cpus[cpu] {
            Cpu { running: Some(_), queue, .. } => 1 + queue.len(),
            cpu => usize::from(self.place.stops_late && cpu.stopped && cpu.since >= self.now),
        };
        let cpu = near.min_by_key(load).unwrap_or(last);
        self.threads[at].cpu = cpu;
        self.cpus[cpu].queue.push_back(at);
        if self.cpus[cpu].stopped {
            self.cpus[cpu].since = Ns(self.now.0 + self.place.leave.start_wait.0);
            self.cpus[cpu].stood_since = self.cpus[cpu].stood_since.or(Some(self.cpus[cpu].since));
        } else if self.cpus[cpu].running.is_none() {
            self.dispatch(cpu, self.place.leave.start_wait);
        } else {
            self.advance(cpu);
        }
    }

    /// Charges the running thread of a CPU for the time that it ran. If that is due now, the thread
    /// wakes others, ends its piece of work, gives way to the next thread, or is stopped.
    fn advance(&mut self, cpu: usize) {
        let speed = self.speed();
        let on_cpu = &mut self.cpus[cpu];
        let Some(at) = on_cpu.running else { return };
        let thread = &mut self.threads[at];
        let time = self.now.since(on_cpu.since);
        let ran = Ns(if time > Ns::ZERO { round(time.0 as f64 * speed) } else { 0 });
        on_cpu.since = on_cpu.since.after(time);
        thread.done = thread.done.after(ran);
        let owed = ran.0.saturating_sub(on_cpu.local);
        on_cpu.local = on_cpu.local.saturating_sub(ran.0);
        if let (Some(quota), Some(member), 1..) = (&mut self.quota, on_cpu.member, owed) {
            // It owes the group what it has not taken.
            quota.group.charge(member, owed);
        }
        let Thread { piece, done, wakes, .. } = *thread;
        let wakes = &self.plan.wakes(piece)[wakes..];
        let due = wakes.iter().take_while(|(after, _)| *after <= done).count();
        thread.wakes += due;
        if done >= self.plan.works[piece] {
            self.end_piece(cpu, at);
        }
        wakes[..due].iter().for_each(|(_, thread)| self.wake(*thread));
        if self.stands(cpu, self.others) {
            return;
        }
        // A thread that was put on the CPU only now has not run yet, so it does not give way.
        let is_tick = || self.now.0.is_multiple_of(self.place.tick.0) && ran > Ns::ZERO;
        if self.cpus[cpu].running == Some(at) && !self.cpus[cpu].queue.is_empty() && is_tick() {
            self.cpus[cpu].running = None;
            self.cpus[cpu].queue.push_back(at);
        }
        if self.cpus[cpu].running.is_none() {
            self.dispatch(cpu, Ns::ZERO);
        }
    }

    /// Ends a thread's piece of work. If it was already woken for its next piece, it continues at
    /// once; otherwise it sleeps.
    fn end_piece(&mut self, cpu: usize, at: usize) {
        let thread = &mut self.threads[at];
        self.outcome.done[thread.piece] = self.now;
        if let Some(Limit { free, delay, .. }) = self.limit {
            let is_delayed = |free: &Ns| self.now.since(*free) > delay;
            self.outcome.delayed += u64::from(free.get(thread.piece).is_some_and(is_delayed));
        }
        thread.piece += 1;
        (thread.done, thread.wakes) = (Ns::ZERO, 0);
        thread.is_awake = thread.woken > thread.piece && thread.piece < self.plan.firsts[at + 1];
        if !thread.is_awake {
            self.awake -= 1;
            self.cpus[cpu].running = None;
        }
    }

    /// Requests quota for a CPU, and stops the CPU if none is left. Returns whether it is stopped.
    /// It stands still from when it takes up a thread of the group again, which is after `wait`.
    fn stands(&mut self, cpu: usize, wait: Ns) -> bool {
        let (Some(quota), Some(member)) = (&mut self.quota, self.cpus[cpu].member) else {
            return false;
        };
        let cpu = &mut self.cpus[cpu];
        if cpu.stopped || quota.may_run(member, &mut cpu.local, self.now) {
            return cpu.stopped;
        }
        cpu.stopped = true;
        cpu.queue.extend(cpu.running.take());
        cpu.stood_since = (!cpu.queue.is_empty()).then_some(Ns(self.now.0 + wait.0));
        true
    }

    /// Runs the next thread on a CPU that runs none: from its own queue, or else from the longest
    /// queue of another CPU. The thread begins to work after `wait`. Without one, the CPU returns
    /// its slice.
    fn dispatch(&mut self, cpu: usize, wait: Ns) {
        if self.cpus[cpu].queue.is_empty() {
            let others = (0..self.cpus.len()).filter(|&other| !self.cpus[other].stopped);
            let longest = others.max_by_key(|&other| self.cpus[other].queue.len());
            let pulled = longest.and_then(|longest| self.cpus[longest].queue.pop_front());
            self.cpus[cpu].queue.extend(pulled);
        }
        if self.cpus[cpu].queue.is_empty() {
            if let (Some(quota), Some(member)) = (&mut self.quota, self.cpus[cpu].member) {
                quota.rest(member, &mut self.cpus[cpu].local, self.now);
            }
            return;
        }
        if !self.stands(cpu, wait) {
            let next = self.cpus[cpu].queue.pop_front();
            self.cpus[cpu].running = next;
            self.cpus[cpu].since = Ns(self.now.0 + wait.0);
            if let Some(next) = next {
                self.threads[next].cpu = cpu;
            }
        }
    }
}

/// Like [`f64::round`], for a time in ns. That one is a call, unless all CPUs have an instruction.
fn round(ns: f64) -> u64 {
    let whole = ns as i64;
    (whole.saturating_add((ns - whole as f64 >= 0.5).into())) as u64
}

/// Like [`f64::ceil`], for a time in ns.
fn ceil(ns: f64) -> u64 {
    let whole = ns as i64;
    (whole.saturating_add((ns > whole as f64).into())) as u64
}
