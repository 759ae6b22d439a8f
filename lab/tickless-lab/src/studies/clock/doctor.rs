//! The doctor's checks of the kernel's clock: which one it is, the cost of reading it, and whether
//! the kernel trusts it.

use crate::doctor::checks::{Check, Judged, Judgement, Need, Verdict};
use crate::doctor::facts::{Facts, ReadCost};
use crate::text::figure;

pub const SOURCE: Check =
    Check { name: "clock-source", needs: &[Need::ClockSource, Need::ClockRead], judge: source };

pub const CONTENTION: Check =
    Check { name: "clock-contention", needs: &[Need::ClockRead], judge: contention };

pub const WATCHDOG: Check = Check { name: "clock-watchdog", needs: &[Need::Log], judge: watchdog };

/// Clock sources that a kernel uses if it has no better one: devices on a bus, and tick counters.
const DEVICES: [&str; 6] = ["hpet", "acpi_pm", "pit", "i8253", "jiffies", "refined-jiffies"];

/// The limit for a warning. Reading the CPU's counter directly takes 15 to 60 ns; a read that takes
/// longer than this limit is a system call (100 to 400 ns) or waits for a device.
const READ_WARN_NS: f64 = 200.0;

/// The limit for the verdict "bad": the published time of an uncontended read of the HPET.
const READ_BAD_NS: f64 = 1_000.0;

fn source(facts: &Facts) -> Judged<'_> {
    let source = facts.clock_source.as_ref()?;
    let others = source.available.join(", ");
    let is_device = DEVICES.contains(&source.current.as_str());
    let in_use = format!("{} is in use, of {others}", source.current);
    let (read_ns, how) = match facts.clock_read {
        Ok(ReadCost { alone_ns, .. }) => {
            (Some(alone_ns), format!("{in_use}; median of batches of CLOCK_MONOTONIC reads"))
        }
        Err(ref why) => (None, format!("{in_use}; reading it was not timed: {why}")),
    };
    let by_cost =
        read_ns.map_or(Verdict::Ok, |ns| Verdict::from_limits(ns, READ_WARN_NS, READ_BAD_NS));
    let verdict = if is_device { Verdict::Bad } else { by_cost };
    let advice = is_device.then(|| {
        "find in the kernel's log why it does not use the CPU's own counter (on x86: tsc=reliable \
         if the hardware is known to be good, or a newer firmware); a program that reads the clock \
         much can share reads with tickless::Combined"
            .to_string()
    });
    Ok(Judgement { verdict, figure: read_ns, how, advice })
}

/// The limit for a warning: how many times longer a read of the clock takes if all CPUs read at
/// once than if one reads alone. The ratio can be two to three without any contention for the
/// clock: two threads share a core, and a busy processor has a lower frequency than an idle one.
const CONTENTION_WARN: f64 = 4.0;

/// The limit for the verdict "bad": how many times longer a read takes if all CPUs read at once. If
/// a device serves one reader at a time, each of N readers waits for the others, and a read takes
/// about N times as long.
const CONTENTION_BAD: f64 = 8.0;

fn contention(facts: &Facts) -> Judged<'_> {
    let cost = facts.clock_read.as_ref()?;
    let ReadCost { alone_ns, together_ns, threads } = *cost;
    let times = together_ns / alone_ns.max(f64::MIN_POSITIVE);
    // With few readers the ratio cannot get high, so the limit depends on the number of readers.
    let bad = CONTENTION_BAD.min(0.75 * threads as f64).max(2.0);
    let verdict = match Verdict::from_limits(times, CONTENTION_WARN.min(bad), bad) {
        // A read that waits for a device takes longer than `READ_WARN_NS`. So these reads do not
        // wait, however high the ratio is.
        _ if together_ns < READ_WARN_NS => Verdict::Ok,
        // A read of less than `READ_BAD_NS` is perhaps slow only because two threads share a core,
        // which is harmless. So only warn.
        Verdict::Bad if together_ns < READ_BAD_NS => Verdict::Warn,
        verdict => verdict,
    };
    let how = format!(
        "a read by {threads} threads at once, {} ns, against one alone, {} ns",
        figure(together_ns),
        figure(alone_ns)
    );
    Judgement::figure(verdict, times, how)
}

/// Messages of a kernel that has stopped using a clock source, because it was unreliable.
const GIVEN_UP: [&str; 3] = ["as unstable", "Marking TSC unstable", "TSC found unstable"];

/// Messages with which the kernel reports that a check of a clock source found a deviation.
const DOUBTS: [&str; 5] = [
    "timekeeping watchdog on",
    "read-back delay",
    "Long readout interval",
    "TSC synchronization",
    "clocksource: Checking clocksource",
];

fn watchdog(facts: &Facts) -> Judged<'_> {
    let log = facts.log.as_ref()?;
    let with = |words: &'static [&str]| {
        log.iter().filter(move |line| words.iter().any(|word| line.contains(word)))
    };
    // The kernel reports successful checks with some of the same words. Such messages do not count.
    let is_doubt = |line: &&String| !line.contains("passed") && !line.contains("consistent");
    let given_up: Vec<&String> = with(&GIVEN_UP).collect();
    let doubts = with(&DOUBTS).filter(is_doubt).filter(|line| !given_up.contains(line));
    let doubts: Vec<&String> = doubts.collect();
    let verdict = match (given_up.len(), doubts.len()) {
        (0, 0) => Verdict::Ok,
        (0, _) => Verdict::Warn,
        _ => Verdict::Bad,
    };
    let mut how = format!("{} messages of the kernel's log looked through", log.len());
    if let Some(first) = given_up.first().or(doubts.first()) {
        how = format!("{how}; the first: {first}");
    }
    Judgement::figure(verdict, (given_up.len() + doubts.len()) as f64, how)
}
