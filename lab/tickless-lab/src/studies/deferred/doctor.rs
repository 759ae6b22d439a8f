//! The doctor's checks for needless work: softirqs, ticks on idle CPUs, threads woken by each tick.

use crate::doctor::checks::{Check, Judged, Judgement, Need, Verdict};
use crate::doctor::facts::{Counted, Facts, IdleTicks, RecordedTimers};
use crate::text::figure;
use std::collections::BTreeMap;
use tickless_core::time::{CpuId, Ns};
use tickless_trace::read::{Event, EventKind};

pub const SOFTIRQ: Check = Check { name: "timer-softirq", needs: &[Need::Counted], judge: softirq };

pub const EMPTY_SOFTIRQS: Check =
    Check { name: "expiry-wakes", needs: &[Need::Counted], judge: empty_softirqs };

pub const IDLE_TICKS: Check =
    Check { name: "idle-ticks", needs: &[Need::Counted], judge: idle_ticks };

pub const TICK_WAKERS: Check =
    Check { name: "tick-wakers", needs: &[Need::Recorded], judge: tick_wakers };

/// The limit for a warning, in percent of CPU time. Up to this, softirq time is normal for a
/// server, which handles packets in softirqs.
const SOFTIRQ_WARN: f64 = 10.0;
/// The limit for the verdict "bad", in percent of CPU time: other work is delayed, because the
/// scheduler does not control the time of softirqs.
const SOFTIRQ_BAD: f64 = 30.0;

/// With fewer timer softirqs than this per CPU and second, the softirq time has other causes.
const SOFTIRQ_TIMERS: f64 = 1_000.0;

fn softirq(facts: &Facts) -> Judged<'_> {
    let counted = facts.counted.as_ref()?;
    let sum = |of: fn(&crate::doctor::facts::CpuCounts) -> u64| -> f64 {
        counted.cpus.iter().map(of).sum::<u64>() as f64
    };
    let percent = 100.0 * sum(|cpu| cpu.softirq) / sum(|cpu| cpu.time).max(1.0);
    let each = counted.seconds.max(1e-3) * counted.cpus.len().max(1) as f64;
    let (timer, hrtimer) =
        (sum(|cpu| cpu.timer_softirqs) / each, sum(|cpu| cpu.hrtimer_softirqs) / each);
    let verdict = match Verdict::from_limits(percent, SOFTIRQ_WARN, SOFTIRQ_BAD) {
        _ if timer + hrtimer < SOFTIRQ_TIMERS => Verdict::Ok,
        verdict => verdict,
    };
    let how = format!(
        "softirq time in /proc/stat over {:.1} s; TIMER raised {} times, HRTIMER {} times on each \
         CPU and second (/proc/softirqs)",
        counted.seconds,
        figure(timer),
        figure(hrtimer)
    );
    Judgement::figure(verdict, percent, how)
}

/// Limits for the percentage of timer interrupts that raise the timer softirq. If interrupts raise
/// it only for expired timers, about a tenth of them do.
const RAISED_BAD: f64 = 90.0;
const RAISED_WARN: f64 = 70.0;

/// The fewest interrupts per CPU and second for a verdict. A CPU with fewer is perhaps idle and
/// wakes only when a timer expires, so that nearly all its interrupts rightly raise the softirq.
const INTERRUPTS_ENOUGH: f64 = 80.0;

fn empty_softirqs(facts: &Facts) -> Judged<'_> {
    let counted = facts.counted.as_ref()?;
    let interrupts: u64 = counted.cpus.iter().map(|cpu| cpu.timer_interrupts).sum();
    let raised: u64 = counted.cpus.iter().map(|cpu| cpu.timer_softirqs).sum();
    let rate = interrupts as f64 / counted.seconds.max(1e-3) / counted.cpus.len().max(1) as f64;
    let percent = 100.0 * raised as f64 / interrupts.max(1) as f64;
    let verdict = match Verdict::from_limits(percent, RAISED_WARN, RAISED_BAD) {
        _ if rate < INTERRUPTS_ENOUGH => Verdict::Ok,
        verdict => verdict,
    };
    let how = format!(
        "{raised} TIMER softirqs for {interrupts} timer interrupts in {:.1} s (/proc/softirqs, \
         LOC in /proc/interrupts)",
        counted.seconds
    );
    Judgement::figure(verdict, percent, how)
}

/// A CPU that is idle for at least this share of the time counts as idle.
const IDLE_SHARE: f64 = 0.95;

/// The limit for a warning, in timer interrupts per second of an idle CPU. A few tens are normal:
/// the idle virtual machine that was recorded in traces/idle has 56.
const IDLE_TICKS_WARN: f64 = 150.0;

/// The limit for the verdict "bad": about one interrupt per millisecond is too many for deep sleep
/// states to save power.
const IDLE_TICKS_BAD: f64 = 900.0;

fn idle_ticks(facts: &Facts) -> Judged<'_> {
    let counted = facts.counted.as_ref()?;
    let idle: Vec<f64> = counted
        .cpus
        .iter()
        .filter(|cpu| cpu.time > 0 && cpu.idle_share() >= IDLE_SHARE)
        .map(|cpu| cpu.timer_interrupts as f64 / counted.seconds.max(1e-3))
        .collect();
    if idle.is_empty() {
        let seconds = counted.seconds;
        let why = format!("no CPU was idle for 95 % of {seconds:.1} s; look when the machine is");
        return Err(why.into());
    }
    let rate = idle.iter().sum::<f64>() / idle.len() as f64;
    let (verdict, ticks) = idle_verdict(rate, counted);
    let how = format!(
        "LOC in /proc/interrupts over {:.1} s, of {} idle CPUs of {}{ticks}",
        counted.seconds,
        idle.len(),
        counted.cpus.len()
    );
    Judgement::figure(verdict, rate, how)
}

/// Returns the verdict on a rate of interrupts on idle CPUs, with a text on the kernel's tick. If
/// the rate equals the kernel's tick rate, idle CPUs do not stop their tick.
fn idle_verdict(rate: f64, counted: &Counted) -> (Verdict, &'static str) {
    let by_rate = Verdict::from_limits(rate, IDLE_TICKS_WARN, IDLE_TICKS_BAD);
    let is_hz = counted.hz.is_some_and(|hz| (0.95..1.1).contains(&(rate / f64::from(hz))));
    match counted.idle_ticks {
        IdleTicks::Stop => (by_rate, "; the kernel stops the tick of idle CPUs (nohz)"),
        IdleTicks::Continue => (Verdict::Bad, "; the kernel lets them tick (nohz is off)"),
        IdleTicks::Unknown if is_hz => (Verdict::Bad, ": as many as the kernel's ticks"),
        IdleTicks::Unknown => (by_rate, ""),
    }
}

/// The limit for a warning: a thread is woken at about the rate of a slow tick, 250 Hz. It is a
/// little lower because some wakes are late.
const WAKES_WARN: f64 = 200.0;

/// The limit for the verdict "bad": a thread is woken at the fastest usual tick rate, 1000 Hz.
const WAKES_BAD: f64 = 900.0;

fn tick_wakers(facts: &Facts) -> Judged<'_> {
    let recorded = facts.recorded.as_ref()?;
    if recorded.trace.count(EventKind::SchedWakeup) == 0 {
        return Err("the recording has no sched:sched_wakeup, so nobody's wakeups".into());
    }
    let seconds = (recorded.trace.span().0 as f64 / 1e9).max(1e-3);
    let (woken, of_go) = woken_by_timers(recorded);
    let mut rates: Vec<(u32, f64)> =
        woken.into_iter().map(|(pid, times)| (pid, times as f64 / seconds)).collect();
    rates.sort_by(|one, other| other.1.total_cmp(&one.1));
    let often: Vec<&(u32, f64)> = rates.iter().filter(|(_, rate)| *rate >= WAKES_WARN).collect();
    let most = rates.first().map_or(0.0, |(_, rate)| *rate);
    const NAMED_MAX: usize = 4;
    // The output names the thread that is woken most often, even if the verdict is good.
    let named = rates.iter().take(often.len().clamp(1, NAMED_MAX)).map(|(pid, rate)| {
        let name = recorded.threads.get(pid).map_or("gone since", String::as_str);
        format!("{name} ({pid}) {} times a second", figure(*rate))
    });
    let named: Vec<String> = named.collect();
    let listed = if named.is_empty() { "none".to_string() } else { named.join(", ") };
    let left_out = match of_go {
        0 => String::new(),
        count => format!("; without {count} short sleeps that Go's runtime makes by itself"),
    };
    Judgement::figure(
        Verdict::from_limits(most, WAKES_WARN, WAKES_BAD),
        often.len() as f64,
        format!(
            "threads that timers' callbacks woke in {seconds:.1} s recorded, most often: \
             {listed}{left_out}"
        ),
    )
}

/// Go's runtime rounds the program's own timers up to a millisecond (`netpoll` of Go 1.26). Its
/// monitor and threads that look for work sleep for 3 us to 10 ms, mostly less than this, while the
/// program is busy.
const GO_OWN_MAX: Ns = Ns(500_000);

/// Counts for each thread how often a timer's callback woke it. The second number is that of sleeps
/// of Go's runtime, which are left out: a program can do nothing about them.
fn woken_by_timers(recorded: &RecordedTimers) -> (BTreeMap<u32, u64>, u64) {
    // For each CPU whether the timer whose callback it runs, if any, was armed for a short time.
    let mut in_callback: BTreeMap<CpuId, Option<bool>> = BTreeMap::new();
    let mut is_short = BTreeMap::new();
    let (mut woken, mut of_go) = (BTreeMap::new(), 0);
    for record in recorded.trace.records.iter() {
        match record.event {
            Event::HrtimerStart { timer, soft_expires, .. } => {
                is_short.insert(timer, soft_expires < record.time + GO_OWN_MAX.to_duration());
            }
            Event::HrtimerExpireEntry { timer, .. } => {
                let is_short = is_short.get(&timer) == Some(&true);
                in_callback.insert(record.cpu, Some(is_short));
            }
            Event::TimerExpireEntry { .. } => {
                in_callback.insert(record.cpu, Some(false));
            }
            Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => {
                in_callback.insert(record.cpu, None);
            }
            Event::SchedWakeup { pid, .. } => match in_callback.get(&record.cpu) {
                Some(Some(true)) if recorded.go.contains(&pid) => of_go += 1,
                Some(Some(_)) => *woken.entry(pid).or_default() += 1,
                _ => {}
            },
            _ => {}
        }
    }
    (woken, of_go)
}
