//! The doctor's checks of the timer device: how often it is written, and how many of the writes are
//! made because a timer was removed.

use crate::doctor::checks::{Check, Judged, Judgement, Need, Verdict};
use crate::doctor::facts::{Facts, RecordedTimers};
use crate::text::figure;
use tickless_trace::read::{Event, Record};
use tickless_trace::replay::{Agreement, Inference, ReplayPolicy, Summary, upgraded};

pub const WRITES: Check = Check { name: "rearm-writes", needs: &[Need::Recorded], judge: writes };

pub const REMOVALS: Check =
    Check { name: "rearm-removals", needs: &[Need::Recorded], judge: removals };

pub const SLICE: Check =
    Check { name: "slice-timer", needs: &[Need::Recorded], judge: slice_timer };

/// The limit for a warning, in writes per interrupt. A CPU that goes idle and wakes makes two
/// writes: it stops the tick and starts it again.
const WRITES_WARN: f64 = 4.0;
/// The limit for the verdict "bad", in writes per interrupt. At this ratio most timers never fire.
const WRITES_BAD: f64 = 10.0;

/// Fewer writes than this per CPU and second do not matter. A write takes 0.1 us on hardware and up
/// to 5 us under a hypervisor, so they take at most half a percent of the CPU.
const WRITES_FEW: f64 = 1_000.0;

fn writes(facts: &Facts) -> Judged<'_> {
    let summary = &facts.recorded.as_ref()?.summary;
    let recorded = summary.trace.recorded;
    let Some(writes) = recorded.device_writes else {
        let why = "the recording has no device writes: before Linux 7.1 only a TSC deadline timer \
                   of x86 has an event for them (msr:write_msr)";
        return Err(why.into());
    };
    let Some(interrupts) = recorded.timer_interrupts.filter(|&interrupts| interrupts > 0) else {
        return Err("the recording has no timer interrupts to compare with".into());
    };
    let per_interrupt = writes as f64 / interrupts as f64;
    let rate = each_second(facts, summary, writes as f64);
    let verdict = match Verdict::from_limits(per_interrupt, WRITES_WARN, WRITES_BAD) {
        _ if rate < WRITES_FEW => Verdict::Ok,
        verdict => verdict,
    };
    let how = format!(
        "{writes} device writes and {interrupts} timer interrupts recorded in {:.1} s: {} writes \
         on each CPU and second",
        summary.trace.seconds,
        figure(rate)
    );
    Judgement::figure(verdict, per_interrupt, how)
}

/// The limits for the share of device writes that the slice timer causes, in percent.
const SLICE_WARN: f64 = 25.0;
const SLICE_BAD: f64 = 75.0;

/// Judges what the timer that ends the scheduler's time slices costs. Linux 7.1 and later have it
/// on by default.
fn slice_timer(facts: &Facts) -> Judged<'_> {
    let RecordedTimers { trace, summary, .. } = facts.recorded.as_ref()?;
    if Agreement::policy_of(trace) != ReplayPolicy::Linux71 {
        let how = "before Linux 7.1 the scheduler has no such timer unless it is switched on";
        return Judgement::figure(Verdict::Ok, 0.0, how);
    }
    let slice = trace.names.find(ReplayPolicy::SLICE_FUNCTION);
    let is_slice = |record: &&Record| match record.event {
        Event::HrtimerStart { function, .. } => Some(function) == slice,
        _ => false,
    };
    let armed = trace.records.iter().filter(is_slice).count();
    if armed == 0 {
        return Judgement::figure(
            Verdict::Ok,
            0.0,
            "it was not armed: it is off, or no task waited",
        );
    }
    let replayed = upgraded(trace, Inference::On);
    let Some([with, without]) = replayed.as_deref() else {
        let why = format!(
            "armed {armed} times; what that costs takes sched:sched_switch in the recording"
        );
        return Err(why.into());
    };
    let saved = with.device_writes.saturating_sub(without.device_writes) as f64;
    let share = 100.0 * saved / with.device_writes.max(1) as f64;
    let verdict = match Verdict::from_limits(share, SLICE_WARN, SLICE_BAD) {
        _ if each_second(facts, summary, saved) < WRITES_FEW => Verdict::Ok,
        verdict => verdict,
    };
    let how = format!(
        "armed {armed} times; replayed, {} writes with it, without it {} writes and {} interrupts",
        with.device_writes, without.device_writes, without.wakeups
    );
    Judgement::figure(verdict, share, how)
}

/// The limit from which writes for removed timers matter, in percent of all device writes.
const REMOVALS_WARN: f64 = 20.0;

/// Fewer writes for removals than this per CPU and second do not matter: at 5 us a write they take
/// 0.05 % of the CPU.
const REMOVALS_FEW: f64 = 100.0;

/// The limit for the verdict "bad", in writes for removals per CPU and second: at 5 us a write they
/// take one percent of the CPU.
const REMOVALS_MANY: f64 = 2_000.0;

fn removals(facts: &Facts) -> Judged<'_> {
    let RecordedTimers { trace, summary, .. } = facts.recorded.as_ref()?;
    let kernel = Agreement::policy_of(trace).name();
    let of = |name: &str| summary.policies.iter().find(|policy| policy.policy == name);
    let (Some(kernel), Some(lazy)) = (of(kernel), of(ReplayPolicy::Lazy.name())) else {
        return Err("the recording could not be replayed".into());
    };
    let saved = kernel.device_writes.saturating_sub(lazy.device_writes) as f64;
    let share = 100.0 * saved / kernel.device_writes.max(1) as f64;
    let rate = each_second(facts, summary, saved);
    let verdict = if rate >= REMOVALS_MANY && share >= REMOVALS_WARN {
        Verdict::Bad
    } else if rate >= REMOVALS_FEW && share >= REMOVALS_WARN {
        Verdict::Warn
    } else {
        Verdict::Ok
    };
    let how = format!(
        "the recording replayed: {} writes with the kernel's policy ({}), {} with the lazy one; {} \
         saved on each CPU and second",
        kernel.device_writes,
        kernel.policy,
        lazy.device_writes,
        figure(rate)
    );
    Judgement::figure(verdict, share, how)
}

fn each_second(facts: &Facts, summary: &Summary, count: f64) -> f64 {
    let cpus = usize::from(summary.trace.cpus).min(facts.cpus.max(1)).max(1);
    count / summary.trace.seconds.max(1e-3) / cpus as f64
}
