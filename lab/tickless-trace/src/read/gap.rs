//! The times of which a trace shows nothing of a CPU, though events happened there.
//!
//! What was known of the CPU ends where a gap begins. A reader must not relate an event before a
//! gap with one after it.

use super::event::Event;
use super::{Record, Trace, tick};
use crate::list::List;
use tickless_core::time::{CpuId, Ns};

/// A time of which the trace shows nothing of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    pub cpu: CpuId,
    /// The last event of the CPU before the gap, or the beginning of the trace.
    pub from: Ns,
    /// The first event of the CPU after the gap, or the end of the trace.
    pub to: Ns,
    /// The index of the first record after the gap; the number of records if there is none.
    pub record: usize,
}

/// A place in the text at which events are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// The line that the missing events precede.
    pub(super) line: u32,
    /// `None` if events of all CPUs are missing.
    pub(super) cpu: Option<CpuId>,
}

/// Finds the gaps. `losses` are in the order of their lines, and `records` in that of their times.
/// Gaps are in the order of the records after them. O(n) for n records, and O(c) for each gap of
/// all c CPUs.
pub(super) fn find(records: &List<Record>, losses: &[Loss], cpus: u16) -> Vec<Gap> {
    let (Some(first), Some(last), false) = (records.first(), records.last(), losses.is_empty())
    else {
        return Vec::new();
    };
    let mut open: Vec<Vec<u32>> = vec![Vec::new(); usize::from(cpus)];
    for loss in losses.iter().rev() {
        match loss.cpu {
            Some(cpu) => open.get_mut(cpu.index()).into_iter().for_each(|of| of.push(loss.line)),
            None => open.iter_mut().for_each(|of| of.push(loss.line)),
        }
    }
    let mut seen = vec![first.time; usize::from(cpus)];
    let mut gaps = Vec::new();
    for (place, record) in records.iter().enumerate() {
        let at = record.cpu.index();
        let is_lost = open[at].pop_if(|line| *line < record.line).is_some();
        while is_lost && open[at].pop_if(|line| *line < record.line).is_some() {}
        if is_lost {
            gaps.push(Gap { cpu: record.cpu, from: seen[at], to: record.time, record: place });
        }
        seen[at] = record.time;
    }
    let ends = (0..).map(CpuId).zip(&open).filter(|(_, losses)| !losses.is_empty());
    gaps.extend(ends.map(|(cpu, _)| Gap {
        cpu,
        from: seen[cpu.index()],
        to: last.time,
        record: records.len(),
    }));
    gaps
}

/// Returns the lines before which the whole trace is silent for much longer than any timer was
/// armed for: there, another recording begins.
pub(super) fn silences(
    records: &List<Record>,
    longest_silence: Ns,
    hz: Option<u32>,
    ahead_ns: Option<i64>,
) -> Vec<Loss> {
    const FACTOR: u64 = 2;
    const SILENCE_MIN: Ns = Ns::from_secs(10);
    if longest_silence.0 <= FACTOR * SILENCE_MIN.0 {
        return Vec::new();
    }
    let pairs = records.iter().zip(records.iter().skip(1));
    let distance = |(one, next): &(&Record, &Record)| next.time.since(one.time);
    // An expiry further away is on another clock, such as the time of day.
    const TIMEOUT_MAX: Ns = Ns::from_secs(30 * 86_400);
    let tick = hz.map_or(Ns::ZERO, tick);
    let mut longest = SILENCE_MIN;
    for record in records.iter() {
        let lasts = match record.event {
            Event::HrtimerStart { expires, .. } => {
                let now = record.time.0.saturating_sub_signed(ahead_ns.unwrap_or(0));
                expires.since(Ns(now))
            }
            Event::TimerStart { expires, now, .. } => {
                Ns(expires.0.saturating_sub(now.0).saturating_mul(tick.0))
            }
            _ => continue,
        };
        if lasts <= TIMEOUT_MAX {
            longest = longest.max(lasts);
        }
    }
    let limit = Ns(longest.0.saturating_mul(FACTOR));
    let silent = pairs.filter(|pair| distance(pair) > limit);
    silent.map(|(_, next)| Loss { line: next.line - 1, cpu: None }).collect()
}

impl Trace {
    /// Returns how much of the time of all CPUs the trace shows, in percent.
    pub fn seen_percent(&self) -> f64 {
        let all = self.span().0 as f64 * f64::from(self.cpus.max(1));
        let unseen: u64 = self.gaps.iter().map(|gap| gap.to.since(gap.from).0).sum();
        if all > 0.0 { (100.0 * (1.0 - unseen as f64 / all)).clamp(0.0, 100.0) } else { 100.0 }
    }

    /// Returns the times at which at least one CPU has a gap, in order and without overlap.
    pub(crate) fn unseen(&self) -> Vec<(Ns, Ns)> {
        let mut times: Vec<(Ns, Ns)> = self.gaps.iter().map(|gap| (gap.from, gap.to)).collect();
        times.sort_unstable();
        times.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
        times
    }

    /// Returns the gaps that end at each record in turn: call it with the index of every record.
    pub(crate) fn gaps_in_order<'t>(&'t self) -> impl FnMut(usize) -> &'t [Gap] {
        let mut rest = &self.gaps[..];
        move |place| {
            let (now, later) = rest.split_at(rest.partition_point(|gap| gap.record <= place));
            rest = later;
            now
        }
    }
}
