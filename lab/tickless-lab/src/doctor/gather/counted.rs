//! The kernel's counters for each CPU: timer interrupts, timer softirqs, CPU time.

use super::text;
use crate::doctor::facts::{Counted, CpuCounts, IdleTicks, Seen};
use crate::measure::{IDLE, cpu_times};
use std::path::Path;
use std::time::Instant;
use tickless_trace::record::{kernel_hz, stops_idle_ticks};

#[derive(Debug)]
pub struct Snapshot {
    at: Instant,
    cpus: Seen<Vec<CpuCounts>>,
}

impl Snapshot {
    pub(super) fn take() -> Snapshot {
        Snapshot { at: Instant::now(), cpus: counters() }
    }
}

fn counters() -> Seen<Vec<CpuCounts>> {
    let text = |file| text(&Path::new("/proc").join(file));
    read(&text("interrupts")?, &text("softirqs")?, &text("stat")?)
}

/// Returns what the kernel has counted between two snapshots, for each CPU.
pub(super) fn between(before: Snapshot, after: Snapshot) -> Seen<Counted> {
    let (at, end) = (before.at, after.at);
    let (before, after) = (before.cpus?, after.cpus?);
    let cpus = before.iter().zip(&after).map(|(before, after)| CpuCounts {
        timer_interrupts: after.timer_interrupts.wrapping_sub(before.timer_interrupts),
        timer_softirqs: after.timer_softirqs.wrapping_sub(before.timer_softirqs),
        hrtimer_softirqs: after.hrtimer_softirqs.wrapping_sub(before.hrtimer_softirqs),
        // The kernel sometimes corrects idle time downwards, so a difference can be negative.
        time: after.time.saturating_sub(before.time),
        idle: after.idle.saturating_sub(before.idle),
        softirq: after.softirq.saturating_sub(before.softirq),
        steal: after.steal.saturating_sub(before.steal),
    });
    let seconds = (end - at).as_secs_f64();
    let command_line = text(Path::new("/proc/cmdline")).unwrap_or_default();
    let idle_ticks = idle_ticks(stops_idle_ticks(), &command_line);
    Ok(Counted { seconds, hz: kernel_hz(), idle_ticks, cpus: cpus.collect() })
}

/// Returns whether idle CPUs stop their tick. The kernel's command line can forbid that.
fn idle_ticks(is_configured: Option<bool>, command_line: &str) -> IdleTicks {
    let is_off = |word: &str| ["nohz=off", "nohz=0", "nohz=n"].contains(&word);
    match is_configured {
        _ if command_line.split_whitespace().any(is_off) => IdleTicks::Continue,
        Some(true) => IdleTicks::Stop,
        Some(false) => IdleTicks::Continue,
        None => IdleTicks::Unknown,
    }
}

/// Parses the contents of three files of `/proc`. CPUs that are offline are left out, because
/// `/proc/interrupts` has no column for them.
pub fn read(interrupts: &str, softirqs: &str, stat: &str) -> Seen<Vec<CpuCounts>> {
    let online: Vec<usize> = cpus_in_header(interrupts);
    // The row of the timer interrupts is named LOC on x86. On other machines the row's description
    // contains the name of the timer's driver.
    let local = row(interrupts, |name, rest| {
        name == "LOC" || rest.contains("arch_timer") || rest.contains("timer-")
    });
    let local = local.ok_or("/proc/interrupts has no timer interrupt that is known here")?;
    let columns = cpus_in_header(softirqs);
    let softirq = |name: &str, cpu: usize| {
        let row = row(softirqs, |found, _| found == name)?;
        row.get(columns.iter().position(|&column| column == cpu)?).copied()
    };
    let cpu = |(at, &cpu): (usize, &usize)| {
        let time = cpu_times(stat, &format!("cpu{cpu}")).unwrap_or_default();
        CpuCounts {
            timer_interrupts: local.get(at).copied().unwrap_or(0),
            timer_softirqs: softirq("TIMER", cpu).unwrap_or(0),
            hrtimer_softirqs: softirq("HRTIMER", cpu).unwrap_or(0),
            time: time.iter().sum(),
            idle: time.get(IDLE).into_iter().flatten().sum(),
            softirq: time.get(6).copied().unwrap_or(0),
            steal: time.get(7).copied().unwrap_or(0),
        }
    };
    Ok(online.iter().enumerate().map(cpu).collect())
}

fn cpus_in_header(text: &str) -> Vec<usize> {
    let header = text.lines().next().unwrap_or_default().split_whitespace();
    header.filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect()
}

/// Returns the numbers of the first row that `is_wanted` accepts, one number for each CPU.
fn row(text: &str, is_wanted: impl Fn(&str, &str) -> bool) -> Option<Vec<u64>> {
    text.lines().skip(1).find_map(|line| {
        let (name, rest) = line.trim().split_once(':')?;
        let numbers = rest.split_whitespace().map_while(|word| word.parse().ok());
        is_wanted(name, rest).then(|| numbers.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2\n  1:  5  6  IO-APIC  timer\n\
                              LOC:     384416     393378   Local timer interrupts\n";
    const SOFTIRQS: &str = "           CPU0       CPU1       CPU2\n          HI: 0 0 0\n       \
                            TIMER:      31615      42689      32667\n     HRTIMER:  1  2  3\n";
    const STAT: &str = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 10 0 20 60 5 1 4 0 9 9\n\
                        cpu1 1 1 1 1 1 1 1 1 0 0\ncpu2 0 0 0 50 0 0 43 7 0 0\n";

    /// Goal: columns are found by the number of the CPU. `/proc/softirqs` has columns for offline
    /// CPUs too, so a CPU's column is at different places in the files.
    #[test]
    fn counters_are_found_by_cpu() {
        let cpus = read(INTERRUPTS, SOFTIRQS, STAT).unwrap();
        assert_eq!(cpus.len(), 2, "the second is offline");
        assert_eq!((cpus[0].timer_interrupts, cpus[1].timer_interrupts), (384_416, 393_378));
        assert_eq!((cpus[0].timer_softirqs, cpus[1].timer_softirqs), (31_615, 32_667));
        assert_eq!((cpus[0].hrtimer_softirqs, cpus[1].hrtimer_softirqs), (1, 3));
        assert_eq!((cpus[0].time, cpus[0].idle, cpus[0].softirq), (100, 65, 4));
        assert_eq!((cpus[1].time, cpus[1].idle, cpus[1].softirq), (100, 50, 43));
        assert_eq!((cpus[0].steal, cpus[1].steal), (0, 7));
    }

    #[test]
    fn the_command_line_can_keep_idle_ticks() {
        assert_eq!(idle_ticks(Some(true), "quiet panic=1"), IdleTicks::Stop);
        assert_eq!(idle_ticks(Some(true), "quiet nohz=off"), IdleTicks::Continue);
        assert_eq!(idle_ticks(Some(false), ""), IdleTicks::Continue);
        assert_eq!(idle_ticks(None, "nohz_full=1"), IdleTicks::Unknown);
    }

    #[test]
    fn an_unknown_timer_interrupt_is_an_error() {
        assert!(read("CPU0\n 1: 5 other\n", SOFTIRQS, STAT).is_err());
        let arm = "     CPU0 CPU1\n 11: 7 8 GICv3 27 Level arch_timer\n";
        assert_eq!(read(arm, SOFTIRQS, STAT).unwrap()[1].timer_interrupts, 8);
    }
}
