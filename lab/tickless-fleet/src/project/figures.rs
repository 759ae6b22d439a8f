//! The results of a projection.

use super::request::Request;
use crate::row::Figure;
use serde::Serialize;
use tickless_core::rearm::DeviceCounts;
use tickless_core::time::Ns;
use tickless_machine::cost::Costs;
use tickless_machine::ps::Ps;
use tickless_trace::replay::Quantiles;
use tickless_trace::replay::streams::Streams;

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) operations: u64,
    pub(super) remote_operations: u64,
    pub(super) device: DeviceCounts,
    pub(super) unseen_writes: u64,
    pub(super) armed: u64,
    pub(super) expirations: u64,
    pub(super) early: u64,
    pub(super) interrupts: u64,
    pub(super) kicks: u64,
    pub(super) late: Vec<u64>,
    pub(super) time: Ps,
    pub(super) timer_code: Ps,
    pub(super) clock_read: Ps,
    pub(super) lock_wait: Ps,
    pub(super) cancel_wait: Ps,
    pub(super) behind: Ps,
    pub(super) digest: u64,
}

/// The results of running a trace's timer operations on a simulated machine. All are predictions,
/// except `recorded_writes`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Projection {
    pub cpus: u16,
    pub policy: &'static str,
    pub clock: &'static str,
    pub seconds: f64,
    pub operations: u64,
    pub remote_operations: u64,
    pub device_writes: u64,
    pub recorded_writes: Option<u64>,
    pub device_writes_per_cpu_s: f64,
    pub wakeups: u64,
    pub spurious_wakeups: u64,
    pub kicks: u64,
    pub expirations: u64,
    pub early: u64,
    pub lateness_ns: Quantiles,
    pub percent: Shares,
    pub behind_ns: f64,
    pub limit: Limit,
    pub digest: String,
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Shares {
    pub timer_code: f64,
    pub clock_read: f64,
    pub lock_wait: f64,
    pub cancel_wait: f64,
    pub device: f64,
    pub interrupts: f64,
    pub rest: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    pub what: &'static str,
    pub percent: f64,
}

impl Shares {
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("device writes", self.device),
            ("interrupt entry and exit", self.interrupts),
            ("clock reads", self.clock_read),
            ("waiting for base locks", self.lock_wait),
            ("waiting for cancels", self.cancel_wait),
            ("the timers' own work", self.rest),
        ]
    }

    /// Returns the part of the timer code that takes the most time.
    fn largest(&self) -> Limit {
        let largest = self.parts().into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let (what, percent) = largest.unwrap_or(("nothing", 0.0));
        Limit { what, percent }
    }
}

impl Projection {
    pub(super) fn new(
        mut counts: Counts,
        costs: &Costs,
        cpus: u16,
        window: Ns,
        streams: &Streams,
        request: &Request,
    ) -> Projection {
        counts.late.sort_unstable();
        let late = |share: f64| {
            let place = (counts.late.len() as f64 * share) as usize;
            counts.late.get(place.min(counts.late.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        let all = counts.time.0.max(1) as f64;
        let percent = |time: f64| 100.0 * time / all;
        let device = counts.device.writes as f64 * costs.program.0 as f64;
        let entries = counts.interrupts as f64 * (costs.irq.entry.0 + costs.irq.exit.0) as f64;
        let timer_code = counts.timer_code.0 as f64 + entries;
        let parts =
            [counts.clock_read, counts.lock_wait, counts.cancel_wait].map(|part| part.0 as f64);
        let rest = (timer_code - parts.iter().sum::<f64>() - device - entries).max(0.0);
        let [clock_read, lock_wait, cancel_wait] = parts.map(percent);
        let percent = Shares {
            timer_code: percent(timer_code),
            clock_read,
            lock_wait,
            cancel_wait,
            device: percent(device),
            interrupts: percent(entries),
            rest: percent(rest),
        };
        let writes = counts.device.writes.saturating_sub(counts.unseen_writes);
        let is_whole = cpus == streams.cpus && window == streams.ends.since(streams.begins);
        let seconds = window.0 as f64 / 1e9;
        Projection {
            cpus,
            policy: request.policy.name(),
            clock: request.clock.name(),
            seconds,
            operations: counts.operations,
            remote_operations: counts.remote_operations,
            device_writes: writes,
            recorded_writes: streams.recorded_writes.filter(|_| is_whole),
            device_writes_per_cpu_s: writes as f64 / f64::from(cpus) / seconds,
            wakeups: counts.device.events,
            spurious_wakeups: counts.device.spurious,
            kicks: counts.kicks,
            expirations: counts.expirations,
            early: counts.early,
            lateness_ns: Quantiles { p50: late(0.5), p99: late(0.99), max: late(1.0) },
            limit: percent.largest(),
            percent,
            behind_ns: counts.behind.as_ns_f64(),
            digest: format!("{:016x}", counts.digest),
        }
    }

    pub fn figures(&self) -> Vec<Figure> {
        let Shares { timer_code, clock_read, lock_wait, cancel_wait, device, interrupts, .. } =
            self.percent;
        let cpu = "% of CPU time";
        let mut figures = vec![
            Figure::predicted("seconds", "s", self.seconds),
            Figure::predicted("operations", "operations", self.operations as f64),
            Figure::predicted("remote_operations", "operations", self.remote_operations as f64),
            Figure::predicted("device_writes", "writes", self.device_writes as f64),
            Figure::predicted("device_writes_per_cpu_s", "writes/s", self.device_writes_per_cpu_s),
            Figure::predicted("wakeups", "wakeups", self.wakeups as f64),
            Figure::predicted("spurious_wakeups", "wakeups", self.spurious_wakeups as f64),
            Figure::predicted("kicks", "interrupts", self.kicks as f64),
            Figure::predicted("expirations", "timers", self.expirations as f64),
            Figure::predicted("lateness_p50", "ns", self.lateness_ns.p50 as f64),
            Figure::predicted("lateness_p99", "ns", self.lateness_ns.p99 as f64),
            Figure::predicted("lateness_max", "ns", self.lateness_ns.max as f64),
            Figure::predicted("timer_code_percent", cpu, timer_code),
            Figure::predicted("clock_read_percent", cpu, clock_read),
            Figure::predicted("lock_wait_percent", cpu, lock_wait),
            Figure::predicted("cancel_wait_percent", cpu, cancel_wait),
            Figure::predicted("device_percent", cpu, device),
            Figure::predicted("interrupts_percent", cpu, interrupts),
        ];
        let recorded = self
            .recorded_writes
            .map(|writes| Figure::once("recorded_device_writes", "writes", "live", writes as f64));
        figures.extend(recorded);
        figures
    }
}
