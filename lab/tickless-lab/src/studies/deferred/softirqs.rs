//! What the kernel's own softirq threads are woken for: the published report is about one of them.
//!
//! A real-time kernel (`PREEMPT_RT`) runs softirqs in threads: `ktimers` runs those of timers, and
//! `ksoftirqd` the others. Other kernels run softirqs at the end of the interrupt that raised them,
//! and wake `ksoftirqd` only if there are too many.

use crate::measure::{Threads, wait};
use crate::studies::cell::Cell;
use crate::text::figure;
use std::fs;
use std::time::{Duration, Instant};

const THREADS: [&str; 2] = ["ksoftirqd", "ktimers"];

/// Counts for this time, which it waits. Returns how often all CPUs together raised each softirq
/// and switched to and from the threads, per second, and a description of both.
pub(super) fn count(time: Duration) -> (Vec<Cell>, String) {
    let snapshot = || {
        let text = fs::read_to_string("/proc/softirqs").unwrap_or_default();
        (Instant::now(), raised(&text), THREADS.map(|name| Threads::named("/proc", &[name])))
    };
    let (begin, raised_before, threads_before) = snapshot();
    wait(time);
    let (end, raised, threads) = snapshot();
    let per_s = |count: u64| count as f64 / (end - begin).as_secs_f64();
    let both = raised.into_iter().zip(raised_before);
    let rates = both.map(|((name, after), (_, before))| (name, per_s(after.wrapping_sub(before))));
    let mut rates: Vec<(String, f64)> = rates.filter(|(_, rate)| *rate > 0.0).collect();
    rates.sort_by(|one, other| other.1.total_cmp(&one.1));
    let exist = THREADS.iter().zip(threads.iter().zip(&threads_before));
    let exist = exist.filter(|(_, (threads, _))| threads.count() > 0);
    rates.extend(exist.map(|(name, (threads, before))| {
        (format!("switches of {name}"), per_s(threads.used_since(before).switches))
    }));
    let parts: Vec<_> =
        rates.iter().map(|(name, rate)| format!("{name} {}", figure(*rate))).collect();
    let cell = |(name, rate)| Cell::live(format!("kernel.{name}").replace(' ', "_"), "1/s", rate);
    (rates.into_iter().map(cell).collect(), parts.join(", "))
}

/// Returns how often all CPUs have raised each softirq, from the text of `/proc/softirqs`.
fn raised(text: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts = counts.split_whitespace().filter_map(|count| count.parse::<u64>().ok());
        Some((name.trim().to_string(), counts.sum()))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: softirqs are counted over all CPUs, and the threads that exist are among the rows.
    #[test]
    fn softirqs_of_all_cpus_are_counted() {
        let text = "        CPU0   CPU1\n  TIMER:   3    4\n  SCHED:  20   30\n";
        assert_eq!(raised(text), [("TIMER".to_string(), 7), ("SCHED".to_string(), 50)]);
        let (cells, described) = count(Duration::from_millis(100));
        // A container may not show the kernel's threads.
        let is_shown = Threads::named("/proc", &["ksoftirqd"]).count() > 0;
        let has_row = cells.iter().any(|cell| cell.id == "kernel.switches_of_ksoftirqd");
        assert_eq!([described.contains("switches of ksoftirqd"), has_row], [is_shown; 2]);
        assert!(cells.iter().any(|cell| cell.value > 0.0), "{described}");
    }
}
