//! The doctor's check of the kernel's clock: which one it is, and the cost of reading it.

use crate::doctor::facts::Facts;
use crate::doctor::{Check, Judged, Judgement, Need, Verdict};

pub const SOURCE: Check = Check {
    name: "clock-source",
    about: "a clock that is a device, slow to read",
    study: "clock",
    unit: "ns per read",
    needs: &[Need::ClockSource, Need::ClockRead],
    judge: source,
};

/// Clock sources that a kernel uses if it has no better one: devices behind a bus, and counters of
/// ticks.
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
    let (read_ns, how) = match facts.clock_read_ns {
        Ok(read_ns) => {
            (Some(read_ns), format!("{in_use}; median of batches of CLOCK_MONOTONIC reads"))
        }
        Err(ref why) => (None, format!("{in_use}; reading it was not timed: {why}")),
    };
    let by_cost =
        read_ns.map_or(Verdict::Ok, |ns| Verdict::from_limits(ns, READ_WARN_NS, READ_BAD_NS));
    let verdict = if is_device { Verdict::Bad } else { by_cost };
    let advice = if is_device {
        "find in the kernel's log why it does not use the CPU's own counter (on x86: tsc=reliable \
         if the hardware is known to be good, or a newer firmware); a program that reads the clock \
         much can share reads with tickless::Combined"
    } else if verdict == Verdict::Ok {
        ""
    } else {
        "programs read the clock by a system call or worse: see whether the kernel or the \
         hypervisor can offer another clock source, and read the clock less often"
    };
    Ok(Judgement { verdict, figure: read_ns, how, advice: advice.to_string() })
}
