//! Predicts what another limit of CPU time would have done to a recorded group of threads.
//!
//! The switches and wakeups of a trace show the demand of each thread: its work between two sleeps.
//! The demand is simulated with a bandwidth group of the core (threads under one CPU limit), once
//! for each setting of the limit, and for several phases (offsets of the quota's refill in its
//! period), because the kernel draws the phase at random. The delay of a piece of work is how much
//! later it is done than in a simulation without a limit on the same CPUs.
//!
//! The demand is always that of the recording. In reality, a limit also changes the demand of some
//! programs: clients send less to a slow server, and threads that wait for each other spin longer.

mod demand;
mod replay;

use crate::cgroup::{Counters, Limit, Recorded};
use crate::late::Selection;
use crate::read::Trace;
use crate::replay::Quantiles;
use demand::{Demand, Leave};
use rayon::prelude::*;
use replay::{Outcome, Place, Plan};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use tickless_core::bandwidth::{BandwidthError, Release, Settings};
use tickless_core::time::Ns;

/// The events to record in addition to the timers.
pub const EVENTS: [&str; 4] =
    ["sched:sched_switch", "sched:sched_wakeup", "sched:sched_wakeup_new", "task:task_newtask"];

/// The first kernel that counts a CPU as stopped only from the moment at which it takes up a thread
/// of the group and finds no quota.
const STOPS_LATE_SINCE: (u32, u32) = (6, 18);

/// Each prediction is the average over this many phases (offsets of the refill in its period).
const PHASES: u64 = 4;
/// How much of the quota a CPU takes at a time: the kernel's default.
const SLICE_NS: u64 = 5_000_000;
/// The kernel's limits of a period and of a quota.
const PERIOD_US_MAX: u64 = 1_000_000;
const QUOTA_US_MIN: u64 = 1_000;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QuotaError {
    #[error(
        "{path}: no {event} in the trace, so it is unknown {so}. Record with: tickless record \
         --events quota --cgroup PATH"
    )]
    NoEvent { path: String, event: &'static str, so: &'static str },
    #[error(
        "{path}: the trace does not tell which threads are meant. Record with --cgroup PATH, or \
         select threads with --process, --pid or --thread"
    )]
    NoGroup { path: String },
    #[error(
        "{path}: {wanted} is not one group of the trace, which has: {known}. Name one with --cgroup"
    )]
    WhichGroup { path: String, wanted: String, known: String },
    #[error(
        "{path}: chosen threads are in {group}, whose limit stopped them while it was recorded: \
         their waits for quota would count as the work of others. Name it with --cgroup {group}, \
         and leave threads out of the delays with --without; or record without the limit"
    )]
    Stopped { path: String, group: String },
    #[error("{path}: none of the chosen threads ran. Choose others, or record while they work")]
    NoWork { path: String },
    #[error("{path}: --without {without} leaves out {which} of the threads that ran. {what}")]
    Without { path: String, without: String, which: &'static str, what: &'static str },
    #[error("a quota of {quota_us} us in {period_us} us: {why}")]
    Setting { quota_us: u64, period_us: u64, why: String },
}

/// What to predict. In place of a list that is empty, a default is derived from the trace.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub cgroup: Option<String>,
    pub selection: Selection,
    /// Threads whose delays do not count, by their numbers or a part of their names: their work is
    /// not what anybody waits for. They use the quota all the same. A thread's number is no name.
    pub without: Vec<String>,
    pub cpus: Vec<usize>,
    /// Limits in CPUs: the quota divided by the period.
    pub limits: Vec<f64>,
    pub periods_us: Vec<u64>,
    /// In percent of the quota.
    pub bursts_percent: Vec<f64>,
    /// A piece of work counts as delayed if the limit makes it end later by more than this.
    pub delay: Ns,
    /// The search for the least limit accepts limits that delay at most this percentage of work.
    pub delayed_percent_max: f64,
}

/// `docs/book/src/quota.md` documents its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    pub file: String,
    pub group: Option<String>,
    pub seconds: f64,
    /// How much of the time of all CPUs the trace shows.
    pub seen_percent: f64,
    pub threads: usize,
    /// The pieces whose delays count.
    pub pieces: usize,
    /// The thread with the most of them.
    pub busiest: Option<Busiest>,
    pub cpu_seconds: f64,
    pub mean_cpus: f64,
    /// The effect of other programs: the share of a CPU's time that the group got while the CPU had
    /// work of the group, and the mean time until a CPU began to work for a woken thread.
    pub cpu_share: f64,
    pub start_wait_ns: u64,
    pub recorded: RecordedLimit,
    pub delay_ns: u64,
    pub delayed_percent_max: f64,
    pub settings: Vec<Setting>,
    pub least: Vec<Least>,
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Busiest {
    pub thread: String,
    pub pid: u32,
    pub pieces: usize,
}

/// The limit under which the trace was recorded, and the group's counters; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RecordedLimit {
    pub quota_us: Option<u64>,
    pub period_us: Option<u64>,
    pub burst_us: Option<u64>,
    pub periods: Option<u64>,
    pub throttled: Option<u64>,
    pub stood_ns: Option<u64>,
}

impl RecordedLimit {
    /// Returns the burst in percent of the quota; 0 if it is not known.
    fn burst_percent(self) -> f64 {
        let both = self.burst_us.zip(self.quota_us);
        both.map_or(0.0, |(burst, quota)| 100.0 * burst as f64 / quota as f64)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    pub cpus: usize,
    pub limit_cpus: f64,
    pub quota_us: u64,
    pub period_us: u64,
    pub burst_us: u64,
    pub periods: f64,
    pub throttled: Band<f64>,
    pub throttled_percent: Band<f64>,
    pub stood_ns: Stood,
    pub delay_ns: Quantiles,
    pub delayed_percent: f64,
}

impl Setting {
    /// Adds one phase to the bands, with one period more and less: the kernel counts from shortly
    /// before the first event until shortly after the last.
    fn add(&mut self, outcome: &Outcome) {
        let throttled = outcome.throttled as f64;
        for throttled in [(throttled - 1.0).max(0.0), (throttled + 1.0).min(self.periods)] {
            self.throttled.add(throttled);
            self.throttled_percent.add(100.0 * throttled / self.periods.max(1.0));
        }
        self.stood_ns.sum.add(outcome.stood as u64);
    }

    /// Widens the bands to all that can be, if none is known for a group with this weight.
    fn of(mut self, group: Option<&Recorded>, cpu_share: f64, span: Ns) -> Setting {
        let weight = group.and_then(|group| group.weight);
        if cpu_share < SHARE_MIN && weight.is_some_and(|weight| weight > WEIGHT_MAX) {
            self.throttled = Band { least: 0.0, most: self.periods };
            self.throttled_percent = Band { least: 0.0, most: 100.0 };
            self.stood_ns.sum = Band { least: 0, most: span.0.saturating_mul(self.cpus as u64) };
        }
        self
    }

    /// Returns whether the bands are so wide that they say nothing.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let (share, sum) = (self.throttled_percent, self.stood_ns.sum);
        share.most - share.least > 50.0 && sum.most > 10 * sum.least
    }
}

/// The least and the most that is predicted. They are equal if other programs took less than a
/// tenth of the time of CPUs that had work of the group.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Band<T> {
    pub least: T,
    pub most: T,
}

impl<T: Copy + PartialOrd> Band<T> {
    fn of(value: T) -> Band<T> {
        Band { least: value, most: value }
    }

    fn add(&mut self, value: T) {
        self.least = if value < self.least { value } else { self.least };
        self.most = if value > self.most { value } else { self.most };
    }
}

/// How long the limit kept CPUs stopped, in ns: the sum, and quantiles of the single stops.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stood {
    pub sum: Band<u64>,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// The least CPU limit that delays at most the requested percentage of the group's work;
/// `limit_cpus` is `None` if even a limit of all CPUs delays more than that.
#[derive(Clone, Debug, Serialize)]
pub struct Least {
    pub cpus: usize,
    pub period_us: u64,
    pub burst_percent: f64,
    pub limit_cpus: Option<f64>,
    pub quota_us: Option<u64>,
}

/// If threads get less of a CPU that has work of theirs, predictions are bands.
const SHARE_MIN: f64 = 0.9;
/// The bands are right for groups with the default weight; with more percent of it, none is known.
const WEIGHT_MAX: u64 = 200;

/// Predicts how each limit of a request would delay the threads of a trace.
pub fn predict(trace: &Trace, request: &Request) -> Result<Prediction, QuotaError> {
    let group = group(trace, request)?;
    let demand = Demand::of(trace, group, &request.selection)?;
    let seen_percent = trace.seen_percent();
    let seconds = trace.span().0.max(1) as f64 / 1e9;
    let cpu_seconds = demand.work().0 as f64 / 1e9;
    let mean_cpus = cpu_seconds / (seconds * seen_percent.max(f64::EPSILON) / 100.0);
    let limited = group.or_else(|| limited(trace, &request.selection));
    let recorded = recorded(limited);
    let cpus = or_default(&request.cpus, || vec![usize::from(trace.cpus)]);
    let periods_us =
        or_default(&request.periods_us, || vec![recorded.period_us.unwrap_or(100_000)]);
    let bursts = or_default(&request.bursts_percent, || vec![recorded.burst_percent()]);
    // Without the refills, a wait for quota cannot be told from preemption: assume none.
    let leave = demand.leave(trace.cpus, recorded.throttled).unwrap_or(Leave::ALL);
    let tick = trace.tick_or_default();
    let stops_late = trace.header.version() >= Some(STOPS_LATE_SINCE);
    let charges_at_once = demand.turns[1] > demand.turns[0];
    let plan = Plan::of(&demand);
    let counted = counted(trace, &demand, &request.without)?;
    let pieces: usize = counted.iter().map(|&thread| demand.threads[thread].len()).sum();
    let busiest = counted.iter().max_by_key(|&&thread| demand.threads[thread].len());
    let busiest = busiest.map(|&thread| Busiest {
        thread: trace.task_name(demand.pids[thread]).to_string(),
        pid: demand.pids[thread],
        pieces: demand.threads[thread].len(),
    });
    let most = busiest.as_ref().filter(|it| counted.len() > 1 && 2 * it.pieces > pieces);
    let (mut settings, mut least) = (Vec::new(), Vec::new());
    for &cpus in &cpus {
        let world = |leave| World {
            plan: &plan,
            place: Place { cpus, tick, leave, stops_late, charges_at_once, is_last: false },
            begin: trace.records.first().map_or(Ns::ZERO, |record| record.time),
            free: Vec::new(),
            pieces,
            delay: request.delay,
            untouched: [const { Mutex::new(None) }; PHASES as usize],
        };
        let (mut world, mut last, alone) = (world(leave), world(leave), world(Leave::ALL));
        last.place.is_last = true;
        let free = plan.run(world.place, None).map_err(|why| refused(0, 0, &why))?;
        world.free = plan.only(free.done, &counted);
        let limits = or_default(&request.limits, || default_limits(mean_cpus, cpus, recorded));
        for &period_us in &periods_us {
            for &burst in &bursts {
                let first = settings.len();
                for &limit in &limits {
                    let mut setting = world.predict(limit, period_us, burst)?;
                    let edges = [&last, &alone];
                    for world in edges.iter().filter(|_| leave.share < SHARE_MIN) {
                        let (_, outcomes) = world.simulate(limit, period_us, burst, u64::MAX)?;
                        outcomes.iter().for_each(|outcome| setting.add(outcome));
                    }
                    settings.push(setting.of(limited, leave.share, trace.span()));
                }
                let asked = (mean_cpus, period_us, burst, request.delayed_percent_max);
                let limit = world.least(asked, &settings[first..])?;
                let (limit_cpus, quota_us) = limit.unzip();
                least.push(Least { cpus, period_us, burst_percent: burst, limit_cpus, quota_us });
            }
        }
    }
    Ok(Prediction {
        file: trace.path.clone(),
        group: group.map(|group| group.path.clone()),
        seconds,
        seen_percent,
        threads: demand.threads.iter().filter(|pieces| !pieces.is_empty()).count(),
        pieces,
        cpu_seconds,
        mean_cpus,
        cpu_share: leave.share,
        start_wait_ns: leave.start_wait.0,
        recorded,
        delay_ns: request.delay.0,
        delayed_percent_max: request.delayed_percent_max,
        least,
        notes: notes(trace, group, limited, (cpu_seconds, leave.share), most, &settings),
        settings,
        busiest,
    })
}

fn or_default<T: Clone>(asked: &[T], default: impl Fn() -> Vec<T>) -> Vec<T> {
    if asked.is_empty() { default() } else { asked.to_vec() }
}

/// Returns the control group to predict for: the one that the request names, or else the only one
/// of the trace. `None` if the request selects single threads instead of a group.
fn group<'a>(trace: &'a Trace, request: &Request) -> Result<Option<&'a Recorded>, QuotaError> {
    let (groups, path) = (&trace.processes.groups, trace.path.clone());
    let is_it = |group: &&Recorded| match &request.cgroup {
        // By whole names: `web` is not the end of `/my-web`. One that begins with `/` is all of it.
        Some(wanted) => Path::new(&group.path).ends_with(wanted),
        None => true,
    };
    if !request.selection.is_any() {
        let is_stopped = |group: &&Recorded| {
            group.counters.is_some_and(|counters| counters.throttled > 0)
                && group.threads.iter().any(|&pid| request.selection.has(trace, pid))
        };
        let group = groups.iter().find(is_stopped).map(|group| group.path.clone());
        return group.map_or(Ok(None), |group| Err(QuotaError::Stopped { path, group }));
    }
    match &groups.iter().filter(is_it).collect::<Vec<_>>()[..] {
        &[group] => Ok(Some(group)),
        [] if request.cgroup.is_none() => Err(QuotaError::NoGroup { path }),
        _ => {
            let known: Vec<&str> = groups.iter().map(|group| &*group.path).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            let wanted = request.cgroup.clone().unwrap_or_else(|| "the default".to_string());
            Err(QuotaError::WhichGroup { path, wanted, known })
        }
    }
}

/// Returns the group whose limit chosen threads are under; `None` if it is not one.
fn limited<'a>(trace: &'a Trace, selection: &Selection) -> Option<&'a Recorded> {
    let is_it = |group: &&Recorded| {
        group.limit.is_some() && group.threads.iter().any(|&pid| selection.has(trace, pid))
    };
    let mut groups = trace.processes.groups.iter().filter(is_it);
    groups.next().filter(|_| groups.next().is_none())
}

/// Returns the threads whose delays count, by their places in the demand.
fn counted(trace: &Trace, demand: &Demand, without: &[String]) -> Result<Vec<usize>, QuotaError> {
    let refused = |without: &str, which, what| QuotaError::Without {
        path: trace.path.clone(),
        without: without.to_string(),
        which,
        what,
    };
    let mut counted: Vec<usize> = (0..demand.pids.len()).collect();
    for it in without {
        let number = demand.pids.iter().find(|pid| *it == pid.to_string());
        let is_it = |pid| number.map_or(trace.task_name(pid).contains(&**it), |it| *it == pid);
        if !demand.pids.iter().any(|&pid| is_it(pid)) {
            return Err(refused(it, "none", "It takes a part of a name, or a number"));
        }
        counted.retain(|&thread| !is_it(demand.pids[thread]));
    }
    if counted.is_empty() {
        return Err(refused(&without.join(","), "all", "Name fewer"));
    }
    Ok(counted)
}

fn recorded(group: Option<&Recorded>) -> RecordedLimit {
    let limit = group.and_then(|group| group.limit);
    let counters = group.and_then(|group| group.counters);
    RecordedLimit {
        quota_us: limit.map(|Limit { quota_us, .. }| quota_us),
        period_us: limit.map(|Limit { period_us, .. }| period_us),
        burst_us: limit.map(|Limit { burst_us, .. }| burst_us),
        periods: counters.map(|Counters { periods, .. }| periods),
        throttled: counters.map(|Counters { throttled, .. }| throttled),
        stood_ns: counters.map(|Counters { stood_ns, .. }| stood_ns),
    }
}

fn notes(
    trace: &Trace,
    group: Option<&Recorded>,
    limited: Option<&Recorded>,
    (cpu_seconds, cpu_share): (f64, f64),
    most: Option<&Busiest>,
    settings: &[Setting],
) -> Vec<String> {
    let mut notes = Vec::new();
    let own = group.filter(|group| group.limit_of.is_none()).and_then(|group| group.counters);
    let used = own.and_then(|counters| counters.used_ns).map(|ns| ns as f64 / 1e9);
    if let Some(used) = used.filter(|used| (used - cpu_seconds).abs() > used / 10.0) {
        notes.push(format!(
            "the kernel charged {used:.2} s of CPU time to the group, and its threads have \
             {cpu_seconds:.2} s in the trace: what is predicted is for the latter. Threads that \
             came and went are missing, or the kernel's clocks do not agree"
        ));
    }
    if let (None, Some(Recorded { path, .. })) = (group, limited) {
        notes.push(format!(
            "the limit is that of {path}, whose other threads use it too: predicted is what the \
             chosen threads would do alone under a limit"
        ));
    }
    if let Some(parent) = group.and_then(|group| group.limit_of.as_ref()) {
        notes.push(format!(
            "the limit is that of {parent}, and so are the periods: all groups in it share them"
        ));
    }
    if group.is_some_and(|group| group.counters.is_none()) {
        notes.push(
            "the group was removed while it was recorded, so its counters are unknown, and \
             threads that it had only then are missing"
                .to_string(),
        );
    }
    if let Some(throttled @ 1..) = recorded(limited).throttled {
        notes.push(format!(
            "the recording itself was throttled in {throttled} periods: wakeups that came late \
             then are late here too. Record without a limit, if you can"
        ));
    }
    // Where threads wait for other programs then depends on where the kernel puts them.
    if cpu_share < SHARE_MIN {
        notes.push(format!(
            "other programs had {:.0} % of the time of CPUs that had work of these threads: \
             throttled periods and stood times are from the least to the most, and the other \
             figures magnitudes",
            100.0 * (1.0 - cpu_share)
        ));
    }
    if settings.iter().any(Setting::is_open) {
        notes.push(
            "what is \"unknown\" depends on when others run, or on the large weight. Record \
             while they do little; or set the limit, and see how nr_throttled in cpu.stat grows"
                .to_string(),
        );
    }
    if trace.dropped_events > 0 {
        notes.push(
            "events were dropped, so some work is missing: use a larger --buffer".to_string(),
        );
    }
    if let Some(Busiest { thread, pid, pieces }) = most {
        notes.push(format!(
            "{thread}-{pid} did {pieces} of the pieces, more than half: if that is not the work \
             that others wait for, leave it out with --without {pid}"
        ));
    }
    notes
}

/// Returns the limits to try, in CPUs: multiples of the mean use, rounded up to steps of 0.05.
fn default_limits(mean_cpus: f64, cpus: usize, recorded: RecordedLimit) -> Vec<f64> {
    const TIMES: [f64; 8] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0];
    let steps = TIMES.iter().map(|times| (times * mean_cpus * 20.0).ceil());
    let mut limits: Vec<f64> = steps.map(|steps| (steps / 20.0).min(cpus as f64)).collect();
    let recorded = recorded.quota_us.zip(recorded.period_us);
    limits.extend(recorded.map(|(quota, period)| quota as f64 / period as f64));
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    limits
}

fn refused(quota_us: u64, period_us: u64, why: &dyn ToString) -> QuotaError {
    QuotaError::Setting { quota_us, period_us, why: why.to_string() }
}

type Known = (Settings, Arc<Outcome>);

/// What all simulations on the same number of CPUs have in common, whatever their limit.
struct World<'a> {
    plan: &'a Plan,
    place: Place,
    begin: Ns,
    /// When each piece of work is done without a limit; `NEVER` if its delay does not count. Empty
    /// if no delay does.
    free: Vec<Ns>,
    /// How many pieces count.
    pieces: usize,
    delay: Ns,
    /// For each phase, a limit that was never reached, and its outcome.
    untouched: [Mutex<Option<Known>>; PHASES as usize],
}

impl World<'_> {
    /// Simulates a limit in CPUs, with a burst in percent of the quota, in each phase. A simulation
    /// with more delayed pieces than `delayed_max` ends there.
    fn simulate(
        &self,
        limit: f64,
        period_us: u64,
        burst: f64,
        delayed_max: u64,
    ) -> Result<(Settings, Vec<Arc<Outcome>>), QuotaError> {
        let quota_us = (limit * period_us as f64).round() as u64;
        let burst_us = (quota_us as f64 * burst / 100.0).round() as u64;
        if period_us > PERIOD_US_MAX || quota_us < QUOTA_US_MIN {
            let why = "the kernel allows quotas from 1 ms in periods up to 1 s";
            return Err(refused(quota_us, period_us, &why));
        }
        let settings = Settings {
            quota: quota_us.saturating_mul(1_000),
            period: Ns(period_us * 1_000),
            extra: burst_us.saturating_mul(1_000),
            slice: SLICE_NS.min(quota_us.saturating_mul(1_000)),
            release: Release::TOGETHER,
        };
        let run = |phase: usize| {
            // Only one thread works on a phase.
            let mut known = self.untouched[phase].lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((lower, outcome)) = &*known
                && (lower.period, lower.slice) == (settings.period, settings.slice)
                && lower.quota <= settings.quota
                && lower.extra <= settings.extra
            {
                return Ok(Arc::clone(outcome));
            }
            // Divide the period into `PHASES` equal parts, and refill in the middle of this one: no
            // phase is more likely than another.
            let offset = settings.period.0 * (2 * phase as u64 + 1) / (2 * PHASES);
            let (free, delay, first) = (&self.free[..], self.delay, Ns(self.begin.0 + offset));
            let limit = replay::Limit { settings, first, free, delay, delayed_max };
            let outcome = Arc::new(self.plan.run(self.place, Some(limit))?);
            if outcome.is_untouched {
                *known = Some((settings, Arc::clone(&outcome)));
            }
            Ok(outcome)
        };
        let outcomes: Result<_, _> = (0..PHASES as usize).into_par_iter().map(run).collect();
        outcomes
            .map(|outcomes| (settings, outcomes))
            .map_err(|why: BandwidthError| refused(quota_us, period_us, &why))
    }

    /// Predicts the delays under a limit in CPUs, with a burst in percent of the quota.
    fn predict(&self, limit: f64, period_us: u64, burst: f64) -> Result<Setting, QuotaError> {
        let (settings, outcomes) = self.simulate(limit, period_us, burst, u64::MAX)?;
        let (mut delays, mut stands) = (Vec::new(), Vec::new());
        let (mut periods, mut throttled, mut delayed, mut stood) = (0, 0, 0, 0.0);
        for outcome in outcomes {
            let both = outcome.done.iter().zip(&self.free);
            let done = both.filter(|(done, free)| **done.max(free) < Ns::NEVER);
            delays.extend(done.map(|(done, free)| done.since(*free).0));
            stands.extend_from_slice(&outcome.stands);
            stood += outcome.stood;
            periods += outcome.periods;
            throttled += outcome.throttled;
            delayed += outcome.delayed;
        }
        let Quantiles { p50, p99, max } = quantiles(&mut stands);
        Ok(Setting {
            cpus: self.place.cpus,
            limit_cpus: limit,
            quota_us: settings.quota / 1_000,
            period_us,
            burst_us: settings.extra / 1_000,
            periods: periods as f64 / PHASES as f64,
            throttled: Band::of(throttled as f64 / PHASES as f64),
            throttled_percent: Band::of(100.0 * throttled as f64 / periods.max(1) as f64),
            stood_ns: Stood { sum: Band::of(stood as u64 / PHASES), p50, p99, max },
            delay_ns: quantiles(&mut delays),
            delayed_percent: 100.0 * delayed as f64 / delays.len().max(1) as f64,
        })
    }

    /// Returns the least limit in CPUs, in steps of 0.05, with which at most `delayed_percent_max`
    /// percent of the pieces are delayed, and the quota of this limit in us. It is higher than the
    /// limits of `known` that delay more.
    fn least(
        &self,
        (mean_cpus, period_us, burst, delayed_percent_max): (f64, u64, f64, f64),
        known: &[Setting],
    ) -> Result<Option<(f64, u64)>, QuotaError> {
        const STEP: f64 = 0.05;
        let limit = |steps: u64| steps as f64 * STEP;
        let quota_min = (QUOTA_US_MIN as f64 / period_us as f64).max(mean_cpus * 0.9);
        let (mut low, mut high) =
            ((quota_min / STEP).ceil().max(1.0) as u64, self.place.cpus as u64 * 20);
        let (enough, too_low): (Vec<&Setting>, Vec<&Setting>) =
            known.iter().partition(|setting| setting.delayed_percent <= delayed_percent_max);
        let steps = |setting: &Setting| setting.limit_cpus / STEP;
        low = too_low.iter().map(|it| steps(it).floor() as u64 + 1).fold(low, u64::max);
        let enough = enough.iter().map(|it| steps(it).ceil() as u64);
        let enough = enough.filter(|steps| (low..=high).contains(steps)).min();
        high = enough.unwrap_or(high);
        let pieces = PHASES * self.pieces as u64;
        // One more than allowed, whatever the rounding.
        let delayed_max = (pieces as f64 * delayed_percent_max / 100.0) as u64 + 1;
        let suffices = |steps: u64| -> Result<bool, QuotaError> {
            let (_, outcomes) = self.simulate(limit(steps), period_us, burst, delayed_max)?;
            let delayed: u64 = outcomes.iter().map(|outcome| outcome.delayed).sum();
            Ok(100.0 * delayed as f64 / pieces as f64 <= delayed_percent_max)
        };
        if low > high || !(enough.is_some() || suffices(high)?) {
            return Ok(None);
        }
        while low < high {
            let middle = low.midpoint(high);
            if suffices(middle)? { high = middle } else { low = middle + 1 }
        }
        Ok(Some((limit(high), (limit(high) * period_us as f64).round() as u64)))
    }
}

fn quantiles(values: &mut [u64]) -> Quantiles {
    let last = values.len().saturating_sub(1);
    let mut at = |percent: usize| match last * percent / 100 {
        _ if values.is_empty() => 0,
        place => *values.select_nth_unstable(place).1,
    };
    Quantiles { p50: at(50), p99: at(99), max: at(100) }
}
