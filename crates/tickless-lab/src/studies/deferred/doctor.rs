//! The doctor's checks for needless work: ticks on idle CPUs, and threads that every tick wakes.

use crate::doctor::facts::{Counted, Facts, IdleTicks, RecordedTimers};
use crate::doctor::{Check, Judged, Judgement, Need, Verdict};
use crate::text::figure;
use std::collections::BTreeMap;
use tickless_core::time::CpuId;
use tickless_trace::read::{Event, EventKind};

pub const IDLE_TICKS: Check = Check {
    name: "idle-ticks",
    about: "timer interrupts on CPUs with nothing to do",
    study: "deferred",
    unit: "per CPU and s",
    needs: &[Need::Counted],
    judge: idle_ticks,
};

pub const TICK_WAKERS: Check = Check {
    name: "tick-wakers",
    about: "threads that timers wake as often as a tick comes",
    study: "deferred",
    unit: "threads",
    needs: &[Need::Recorded],
    judge: tick_wakers,
};

/// A CPU that is idle for at least this share of the time counts as idle.
const IDLE_SHARE: f64 = 0.95;

/// The limit for a warning, in timer interrupts per second of an idle CPU. A few tens are normal:
/// 56 on the idle virtual machine of traces/idle.
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
        return Judgement::unknown(format!(
            "no CPU was idle for 95 % of {:.1} s; look when the machine is",
            counted.seconds
        ));
    }
    let rate = idle.iter().sum::<f64>() / idle.len() as f64;
    let (verdict, ticks) = idle_verdict(rate, counted);
    let how = format!(
        "LOC in /proc/interrupts over {:.1} s, of {} idle CPUs of {}{ticks}",
        counted.seconds,
        idle.len(),
        counted.cpus.len()
    );
    Judgement::figure(
        verdict,
        rate,
        how,
        "idle CPUs are woken all the time: if it is the tick, see that the kernel stops it \
         (CONFIG_NO_HZ_IDLE, no nohz=off); else tick-wakers shows who sleeps so shortly",
    )
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

/// The limit for the verdict "bad": a thread is woken at about the rate of the fastest usual tick,
/// 1000 Hz.
const WAKES_BAD: f64 = 900.0;

fn tick_wakers(facts: &Facts) -> Judged<'_> {
    let recorded = facts.recorded.as_ref()?;
    if recorded.trace.count(EventKind::SchedWakeup) == 0 {
        return Judgement::unknown("the recording has no sched:sched_wakeup, so nobody's wakeups");
    }
    let seconds = (recorded.trace.span().0 as f64 / 1e9).max(1e-3);
    let mut rates: Vec<(u32, f64)> = woken_by_timers(recorded)
        .into_iter()
        .map(|(pid, times)| (pid, times as f64 / seconds))
        .collect();
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
    Judgement::figure(
        Verdict::from_limits(most, WAKES_WARN, WAKES_BAD),
        often.len() as f64,
        format!(
            "threads that timers' callbacks woke in {seconds:.1} s recorded, most often: {listed}"
        ),
        "let it sleep until there is something to do, or for longer, or with more timer slack; if \
         it is a thread of the kernel (ksoftirqd, ktimers), ticks wake it for nothing",
    )
}

fn woken_by_timers(recorded: &RecordedTimers) -> BTreeMap<u32, u64> {
    let mut is_in_callback: BTreeMap<CpuId, bool> = BTreeMap::new();
    let mut woken = BTreeMap::new();
    for record in recorded.trace.records.iter() {
        match record.event {
            Event::HrtimerExpireEntry { .. } | Event::TimerExpireEntry { .. } => {
                is_in_callback.insert(record.cpu, true);
            }
            Event::HrtimerExpireExit { .. } | Event::TimerExpireExit { .. } => {
                is_in_callback.insert(record.cpu, false);
            }
            Event::SchedWakeup { pid, .. } if is_in_callback.get(&record.cpu) == Some(&true) => {
                *woken.entry(pid).or_default() += 1;
            }
            _ => {}
        }
    }
    woken
}
