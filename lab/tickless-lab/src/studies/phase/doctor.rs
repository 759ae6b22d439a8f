//! The doctor's checks for timers with the same period that expire together: those that refill the
//! CPU quotas of cgroups, and any others.

use crate::doctor::checks::{Check, Judged, Judgement, Need, Verdict};
use crate::doctor::facts::{Facts, Quota, RecordedTimers};
use crate::text::{figure, time};
use std::collections::BTreeMap;
use tickless_trace::cgroup::Counters;
use tickless_trace::replay::Overlap;

pub const THROTTLED: Check =
    Check { name: "quota-throttled", needs: &[Need::Quotas], judge: throttled };

pub const QUOTAS: Check =
    Check { name: "quota-phases", needs: &[Need::Quotas, Need::Recorded], judge: quotas };

pub const ALIGNED: Check =
    Check { name: "aligned-timers", needs: &[Need::Recorded], judge: aligned };

/// The kernel's function that refills a cgroup's CPU quota.
const REFILL: &str = "sched_cfs_period_timer";

/// Callbacks of timers that the kernel has once for each CPU, such as the tick. They expire
/// together on all CPUs unless the kernel skews them. They take little time and are not reported.
const TOGETHER_ON_PURPOSE: [&str; 5] = [
    "tick_nohz_handler",
    "tick_sched_timer",
    "watchdog_timer_fn",
    "perf_mux_hrtimer_handler",
    "dl_task_timer",
];

/// The limit for a warning: the percentage of expiries that are within a hundredth of the
/// period of another timer's expiry. A few percent occur by chance.
const TOGETHER_WARN: f64 = 25.0;
/// The limit for the verdict "bad": the timers expire together in most of their periods.
const TOGETHER_BAD: f64 = 75.0;

/// From this percentage of throttled periods on there is a warning: at this percentage one piece of
/// work in a hundred is likely to be stopped.
const THROTTLED_WARN: f64 = 5.0;
/// From this percentage of throttled periods on the verdict is "bad": much work is stopped.
const THROTTLED_BAD: f64 = 25.0;

fn throttled(facts: &Facts) -> Judged<'_> {
    let quotas = facts.quotas.as_ref()?;
    let share = |Counters { periods, throttled, .. }: Counters| {
        100.0 * throttled as f64 / periods.max(1) as f64
    };
    // Groups that were throttled while the doctor looked come first, then those that were before.
    let mut worst: Vec<&Quota> =
        quotas.iter().filter(|quota| quota.counters.throttled > 0).collect();
    worst.sort_by(|one, other| {
        let [one, other] = [one, other].map(|it| (share(it.during), share(it.counters)));
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    let Some(first) = worst.first() else {
        let how = format!("none of {} cgroups with a CPU quota has used it up", quotas.len());
        return Judgement::figure(Verdict::Ok, 0.0, how);
    };
    const GROUPS_MAX: usize = 4;
    let describe = |quota: &&Quota| {
        let Quota { group, quota_us, period_us, counters, during } = quota;
        format!(
            "{group} ({} in {}) in {} of {} periods while it looked, CPUs stood still for {}; \
             since it was made in {} % of {} periods",
            time(quota_us.saturating_mul(1_000)),
            time(period_us.saturating_mul(1_000)),
            during.throttled,
            during.periods,
            time(during.stood_ns),
            figure(share(*counters)),
            counters.periods
        )
    };
    let mut listed: Vec<String> = worst.iter().take(GROUPS_MAX).map(describe).collect();
    if worst.len() > GROUPS_MAX {
        listed.push(format!("{} more groups", worst.len() - GROUPS_MAX));
    }
    let advice = format!(
        "find a limit that stops little: tickless record --events quota --cgroup {} -D 30s, then \
         tickless quota trace.txt.gz (docs/book/src/quota.md)",
        first.group
    );
    let percent = share(first.during);
    let verdict = Verdict::from_limits(percent, THROTTLED_WARN, THROTTLED_BAD);
    let how = listed.join("; ");
    Ok(Judgement { verdict, figure: Some(percent), how, advice: Some(advice) })
}

fn quotas(facts: &Facts) -> Judged<'_> {
    let quotas = facts.quotas.as_ref()?;
    let shared = shared_periods(quotas);
    let recorded = match &facts.recorded {
        // No timers were recorded. If no two groups have the same period, their refills do not
        // happen together for long, so the verdict does not need the recording.
        Err(_) if shared.is_empty() => {
            return Judgement::figure(Verdict::Ok, 0.0, found(quotas, &shared));
        }
        Err(why) => {
            let groups = found(quotas, &shared);
            return Err(format!("{groups}, and when they are refilled is not seen: {why}").into());
        }
        Ok(recorded) => recorded,
    };
    let meeting: Vec<&Overlap> =
        recorded.summary.overlap.iter().filter(|overlap| overlap.function == REFILL).collect();
    let Some(worst) = worst(&meeting) else {
        let how = format!("{}; none were seen to be refilled together", found(quotas, &shared));
        return Judgement::figure(Verdict::Ok, 0.0, how);
    };
    judge(worst, format!("{}; {}", found(quotas, &shared), describe(worst)))
}

fn aligned(facts: &Facts) -> Judged<'_> {
    let recorded = facts.recorded.as_ref()?;
    let is_other = |overlap: &&Overlap| {
        overlap.function != REFILL && !TOGETHER_ON_PURPOSE.contains(&overlap.function.as_str())
    };
    let others: Vec<&Overlap> = recorded.summary.overlap.iter().filter(is_other).collect();
    let Some(worst) = worst(&others) else {
        let how = "no two high-resolution timers of one function and one period in the recording, \
                   the kernel's own for each CPU aside";
        return Judgement::figure(Verdict::Ok, 0.0, how);
    };
    judge(worst, format!("{}; {}", describe(worst), armed_by(worst, recorded)))
}

fn judge(worst: &Overlap, how: String) -> Judged<'static> {
    let percent = percent(worst);
    Judgement::figure(Verdict::from_limits(percent, TOGETHER_WARN, TOGETHER_BAD), percent, how)
}

fn armed_by(overlap: &Overlap, recorded: &RecordedTimers) -> String {
    const NAMED_MAX: usize = 6;
    let name = |thread: &u32| {
        let name = recorded.threads.get(thread).map_or("gone since", String::as_str);
        format!("{name} ({thread})")
    };
    let mut named: Vec<String> = overlap.armed_by.iter().take(NAMED_MAX).map(name).collect();
    match overlap.armed_by.len() {
        0 => return "armed in interrupts alone, by whom was not seen".to_string(),
        all if all > NAMED_MAX => named.push(format!("{} more", all - NAMED_MAX)),
        _ => {}
    }
    format!("armed by {}", named.join(", "))
}

/// Each overlap describes a group of timers with the same callback and period. Returns the group in
/// which the largest share of expiries is close to the expiry of another timer.
fn worst<'a>(overlaps: &[&'a Overlap]) -> Option<&'a Overlap> {
    overlaps.iter().copied().max_by(|one, other| percent(one).total_cmp(&percent(other)))
}

fn percent(overlap: &Overlap) -> f64 {
    100.0 * overlap.together as f64 / overlap.expirations.max(1) as f64
}

fn describe(overlap: &Overlap) -> String {
    const PHASES_MAX: usize = 4;
    let phases = &overlap.recorded.phases_ns;
    let mut listed: Vec<String> = phases.iter().take(PHASES_MAX).map(|&ns| time(ns)).collect();
    if phases.len() > PHASES_MAX {
        listed.push(format!("{} more", phases.len() - PHASES_MAX));
    }
    format!(
        "{} of {} expiries of {} timers of {} every {} came within {} of another's; phases: {}",
        overlap.together,
        overlap.expirations,
        phases.len(),
        overlap.function,
        time(overlap.period_ns),
        time(overlap.within_ns),
        listed.join(", ")
    )
}

fn shared_periods(quotas: &[Quota]) -> Vec<(u64, usize)> {
    let mut periods: BTreeMap<u64, usize> = BTreeMap::new();
    quotas.iter().for_each(|quota| *periods.entry(quota.period_us).or_default() += 1);
    periods.into_iter().filter(|(_, groups)| *groups > 1).collect()
}

fn found(quotas: &[Quota], shared: &[(u64, usize)]) -> String {
    let share = shared.iter().map(|(period_us, groups)| {
        format!("{groups} share a period of {}", time(period_us.saturating_mul(1_000)))
    });
    let share: Vec<String> = share.collect();
    match (quotas.len(), share.is_empty()) {
        (0, _) => "no cgroup has a CPU quota".to_string(),
        (count, true) => format!("{count} cgroups have a CPU quota, each another period"),
        (count, false) => {
            format!("{count} cgroups have a CPU quota, of which {}", share.join(", "))
        }
    }
}
