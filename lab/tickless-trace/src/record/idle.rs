//! Finds CPUs on which the kernel records nothing of the idle thread.
//!
//! Method: the kernel counts how often each
//! idle thread stopped its tick, also without a recording. Each time, the thread performs at least
//! one operation on a timer, so a recording without such operations is incomplete.

use crate::read::{Context, Prefix, split};
use std::collections::BTreeMap;
use std::fs;
use tickless_core::time::CpuId;

/// How often the idle thread of each CPU has stopped the CPU's tick.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IdleStops(BTreeMap<u16, u64>);

/// For each CPU, how many events of its idle thread were recorded, without those in interrupts.
pub type IdleEvents = BTreeMap<u16, u64>;

impl IdleStops {
    /// Reads the counts in `/proc/timer_list`; empty if the kernel does not have this file, or does
    /// not let this user read it.
    pub fn now() -> IdleStops {
        IdleStops::parse(&fs::read_to_string("/proc/timer_list").unwrap_or_default())
    }

    /// Parses `/proc/timer_list`: how often each CPU has stopped its tick because it was idle.
    fn parse(text: &str) -> IdleStops {
        let mut cpu = None;
        let mut stops = BTreeMap::new();
        for line in text.lines().map(str::trim) {
            if let Some(number) = line.strip_prefix("cpu:") {
                cpu = number.trim().parse().ok();
            } else if let Some(rest) = line.strip_prefix(".idle_sleeps") {
                let count = rest.trim_start_matches([' ', ':']).parse();
                if let (Some(cpu), Ok(count)) = (cpu, count) {
                    stops.insert(cpu, count);
                }
            }
        }
        IdleStops(stops)
    }

    /// Returns the CPUs whose idle thread has too few events in the recording: those that stopped
    /// the tick at least twenty times since `before`, and have less than one event for ten stops.
    /// Fewer stops prove nothing, because the events of the first and the last stops are perhaps
    /// outside the recording.
    pub fn unseen(&self, before: &IdleStops, recorded: &IdleEvents) -> Vec<CpuId> {
        const STOPS_MIN: u64 = 20;
        const STOPS_PER_EVENT: u64 = 10;
        let is_unseen = |(cpu, stops): &(&u16, &u64)| {
            let stops = stops.saturating_sub(before.0.get(*cpu).copied().unwrap_or(**stops));
            let events = recorded.get(*cpu).copied().unwrap_or(0);
            stops >= STOPS_MIN && events.saturating_mul(STOPS_PER_EVENT) < stops
        };
        self.0.iter().filter(is_unseen).map(|(&cpu, _)| CpuId(cpu)).collect()
    }
}

/// Returns the CPU of a line of ftrace's text, if the idle thread caused it outside interrupts.
pub(super) fn idle_thread(line: &[u8]) -> Option<u16> {
    let Prefix { task, cpu, context, .. } = split(line).ok()?;
    (task.name == b"<idle>" && context == Context::Task).then_some(cpu.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(of: &[(u16, u64)]) -> IdleStops {
        IdleStops(of.iter().copied().collect())
    }

    #[test]
    fn an_idle_thread_without_records_is_reported() {
        let before = stops(&[(0, 100), (1, 100), (2, 100), (3, 7)]);
        let after = stops(&[(0, 400), (1, 400), (2, 119), (3, 7)]);
        let recorded = IdleEvents::from([(0, 900), (1, 29)]);
        assert_eq!(after.unseen(&before, &recorded), [CpuId(1)]);
        let recorded = IdleEvents::from([(0, 900), (1, 30)]);
        assert_eq!(after.unseen(&before, &recorded), []);
        assert_eq!(after.unseen(&before, &IdleEvents::new()), [CpuId(0), CpuId(1)]);
        // Nothing is reported without counts, or if a CPU came online during the recording.
        assert_eq!(IdleStops::default().unseen(&before, &recorded), []);
        assert_eq!(after.unseen(&stops(&[(0, 395)]), &IdleEvents::new()), []);
    }

    #[test]
    fn the_timer_list_is_read() {
        let text = "Timer List Version: v0.10\n\ncpu: 0\n  .idle_calls     : 9\n  \
                    .idle_sleeps    : 5\ncpu: 11\n  .idle_sleeps    : 77\nTick Device: x\n";
        assert_eq!(IdleStops::parse(text), stops(&[(0, 5), (11, 77)]));
        assert_eq!(IdleStops::parse(&text.replace("v0.10", "v0.9")), stops(&[(0, 5), (11, 77)]));
        // Linux 7.2's, v0.11.
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/kernels/7.2-timer_list.txt");
        let real = IdleStops::parse(&fs::read_to_string(file).unwrap());
        assert_eq!(real, stops(&[(0, 1161), (1, 355)]));
        assert_eq!(IdleStops::parse(""), IdleStops::default());
    }

    #[test]
    fn interrupts_are_not_of_the_idle_thread() {
        for (task, flags, cpu) in [
            ("<idle>-0", "d..1.", Some(12)),
            ("<idle>-0", "d.h1.", None),
            ("<idle>-0", "..s1.", None),
            ("cat-77", "d..1.", None),
        ] {
            let line = format!("  {task}  [012] {flags}  7.1: tick_stop: success=1");
            assert_eq!(idle_thread(line.as_bytes()), cpu, "{line}");
        }
    }
}
