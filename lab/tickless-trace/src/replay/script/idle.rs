//! Finds when each CPU was idle.
//!
//! A CPU is idle from an event of its idle thread until the next event of another thread. Some
//! kernels record nothing of an idle thread. So a CPU is also idle while it records nothing for
//! longer than one and a half ticks: a busy CPU records its tick.

use super::clocks::Clocks;
use super::tick;
use crate::read::{Event, Trace};
use tickless_core::time::{CpuId, Ns};

/// A time at which a CPU goes idle or becomes busy again, or a gap of the trace begins or ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct Turn {
    pub(in crate::replay) at: Ns,
    pub(in crate::replay) cpu: CpuId,
    pub(in crate::replay) to: Turned,
    /// How long the state from `at` on lasts, or the state until `at` lasted.
    pub(in crate::replay) lasts: Ns,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::replay) enum Turned {
    Idle,
    Busy,
    /// Nothing is known of the CPU from here on.
    Unseen,
    Seen,
}

/// Returns when CPUs go idle and become busy, on the replay's clock, sorted by time. O(n log n).
pub(super) fn find(trace: &Trace, clocks: &Clocks) -> Vec<Turn> {
    let times = trace.records.iter().map(|record| clocks.replay_time(record.time));
    let Some(begins) = times.clone().next() else { return Vec::new() };
    let silent_max = Ns(Ns::from_duration(tick(trace).length()).0 * 3 / 2);
    let mut turns = Vec::new();
    let mut add = |cpu, from: Ns, to: Ns, states: [Turned; 2]| {
        let lasts = to.since(from);
        let turn = |(at, to)| Turn { at, cpu, to, lasts };
        turns.extend([(from, states[0]), (to, states[1])].map(turn));
    };
    const IDLE: [Turned; 2] = [Turned::Idle, Turned::Busy];
    // For each CPU, the time of its last record, and since when it is idle.
    let mut cpus: Vec<(Ns, Option<Ns>)> = vec![(begins, None); usize::from(trace.cpus)];
    let mut ends = begins;
    let mut gaps = trace.gaps_in_order();
    for (place, (record, at)) in trace.records.iter().zip(times).enumerate() {
        ends = at;
        for gap in gaps(place) {
            let [from, to] = [gap.from, gap.to].map(|at| clocks.replay_time(at));
            if let Some(since) = cpus[gap.cpu.index()].1 {
                add(gap.cpu, since, from, IDLE);
            }
            add(gap.cpu, from, to, [Turned::Unseen, Turned::Seen]);
            cpus[gap.cpu.index()] = (to, None);
        }
        let Some((last, since)) = cpus.get_mut(record.cpu.index()) else { continue };
        if at.since(*last) > silent_max {
            since.get_or_insert(*last);
        }
        *last = at;
        let is_idle = match record.event {
            Event::SchedSwitch { next_pid, .. } => next_pid == 0,
            _ => record.pid == 0,
        };
        if is_idle {
            since.get_or_insert(at);
        } else if let Some(from) = since.take() {
            add(record.cpu, from, at, IDLE);
        }
    }
    for (cpu, (last, since)) in (0..).map(CpuId).zip(cpus) {
        if let Some(from) = since.or((ends.since(last) > silent_max).then_some(last)) {
            add(cpu, from, ends, IDLE);
        }
    }
    turns.sort_by_key(|turn| turn.at);
    turns
}
