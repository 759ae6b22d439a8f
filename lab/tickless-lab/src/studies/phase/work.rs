//! Runs two groups of threads that do a fixed amount of work, and measures their times.
//!
//! A worker works in units of 0.1 ms of CPU time and records the end of each unit. A long gap
//! between these times shows that the worker was paused, by the library or by the kernel.

use crate::error::LabError;
use crate::measure::{Usage, joined, timed};
use crate::studies::plot::merged;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const UNIT: Duration = Duration::from_micros(100);

/// The number of units in a burst. The study measures how long a worker takes for a burst.
const BURST_UNITS: u64 = 50;

/// A worker that completes no unit for this time counts as not running. Threads that share a CPU
/// wait for each other less than this.
const PAUSE_NS: u64 = 10_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) of_group: Duration,
    pub(super) workers: usize,
    pub(super) turns_of_unit: u64,
}

#[derive(Debug)]
pub(super) struct Done {
    /// How long after the start the last worker of each group finished.
    pub(super) completion_s: [f64; 2],
    /// The durations of bursts of 5 ms of CPU time, in ms, sorted.
    pub(super) bursts_ms: Vec<f64>,
    pub(super) overlap: f64,
    pub(super) windows: [Vec<(u64, u64)>; 2],
    pub(super) usage: Usage,
}

/// Returns nanoseconds of `CLOCK_MONOTONIC`, the clock of the kernel's and the library's periods.
pub(super) fn now_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Does nothing. Called by a worker in a cgroup, where the kernel throttles the worker.
pub(super) fn never_throttled() -> Result<(), LabError> {
    Ok(())
}

fn spin(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// Returns the number of iterations of the work loop in a unit, from the fastest of 20 tries.
pub(super) fn turns_of_unit() -> u64 {
    const TURNS: u64 = 200_000;
    let tries = (0..20).map(|_| {
        let begun = ns_of(ClockId::ThreadCPUTime);
        spin(TURNS);
        ns_of(ClockId::ThreadCPUTime) - begun
    });
    let took = tries.min().unwrap_or(1).max(1);
    (TURNS * UNIT.as_nanos() as u64 / took).max(1)
}

#[derive(Default)]
struct Notes {
    windows: Vec<(u64, u64)>,
    bursts_ms: Vec<f64>,
    ended: u64,
}

impl Work {
    /// Runs the work in both groups. Each worker's thread first calls `join` with the number of its
    /// group. It calls the function that `join` returned after each unit of work, to wait while the
    /// group has no CPU time left.
    pub(super) fn run<C: FnMut() -> Result<(), LabError>>(
        &self,
        join: impl Fn(usize) -> Result<C, LabError> + Sync,
    ) -> Result<Done, LabError> {
        let units = self.of_group.as_nanos() as u64 / UNIT.as_nanos() as u64;
        let left = [AtomicU64::new(units), AtomicU64::new(units)];
        let begun = now_ns();
        let (notes, usage) = timed(|| {
            std::thread::scope(|scope| {
                let start = |worker: usize| {
                    let (left, join) = (&left, &join);
                    scope.spawn(move || self.worker(&left[worker % 2], join(worker % 2)?))
                };
                let threads: Vec<_> = (0..2 * self.workers).map(start).collect();
                let notes = threads.into_iter().map(|thread| joined(thread, "a group's work"));
                notes.collect::<Result<Vec<Notes>, LabError>>()
            })
        });
        let notes = notes?;
        let of_group = |group: usize| notes.iter().skip(group).step_by(2);
        let completion_s = [0, 1].map(|group| {
            let ended = of_group(group).map(|notes| notes.ended).max().unwrap_or(begun);
            ended.saturating_sub(begun) as f64 / 1e9
        });
        let windows =
            |group| merged(of_group(group).flat_map(|notes| notes.windows.clone()).collect());
        let mut bursts_ms: Vec<f64> =
            notes.iter().flat_map(|notes| notes.bursts_ms.clone()).collect();
        bursts_ms.sort_by(f64::total_cmp);
        let windows = [windows(0), windows(1)];
        let overlap = overlap(&windows[0], &windows[1]);
        Ok(Done { completion_s, bursts_ms, overlap, windows, usage })
    }

    /// Works in units until none is left. Records bursts, and when the worker ran and was paused.
    fn worker(
        &self,
        left: &AtomicU64,
        mut check: impl FnMut() -> Result<(), LabError>,
    ) -> Result<Notes, LabError> {
        let mut notes = Notes::default();
        let mut window = (now_ns(), now_ns());
        let mut burst = (now_ns(), 0);
        // Relaxed: no other data depends on this count.
        let take = |left: u64| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            spin(self.turns_of_unit);
            let now = now_ns();
            if now - window.1 > PAUSE_NS {
                notes.windows.push(window);
                window.0 = now - UNIT.as_nanos() as u64;
            }
            window.1 = now;
            burst.1 += 1;
            if burst.1 == BURST_UNITS {
                notes.bursts_ms.push((now - burst.0) as f64 / 1e6);
                burst = (now, 0);
            }
            check()?;
        }
        notes.windows.push(window);
        notes.ended = window.1;
        Ok(notes)
    }
}

impl Done {
    pub(super) fn burst_ms(&self, percent: usize) -> f64 {
        let last = self.bursts_ms.len().saturating_sub(1);
        self.bursts_ms.get(last * percent / 100).copied().unwrap_or(f64::NAN)
    }
}

/// Returns the part of the less busy group's running time in which the other group ran too. Counts
/// only the time until the first group has finished, because after that they cannot overlap.
fn overlap(one: &[(u64, u64)], other: &[(u64, u64)]) -> f64 {
    let end = |windows: &[(u64, u64)]| windows.last().map_or(0, |window| window.1);
    let until = end(one).min(end(other));
    let length = |&(begin, end): &(u64, u64)| end.min(until).saturating_sub(begin.min(until));
    let both: u64 = one
        .iter()
        .flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))))
        .filter(|window| window.0 < window.1)
        .map(|window| length(&window))
        .sum();
    let least = one.iter().map(length).sum::<u64>().min(other.iter().map(length).sum());
    both as f64 / least.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap() {
        let one = merged(vec![(20, 30), (0, 5), (3, 10), (30, 40)]);
        assert_eq!(overlap(&one, &[(10, 20), (41, 50)]), 0.0);
        assert_eq!(overlap(&one, &one), 1.0);
        // Both run for 15 units of time. Until the first ends, the second runs for 20 units.
        assert_eq!(overlap(&one, &[(5, 15), (30, 60)]), 0.75);
        assert_eq!(overlap(&[], &one), 0.0);
    }

    #[test]
    fn all_work_is_done() {
        let turns_of_unit = turns_of_unit() / 10 + 1;
        let work = Work { of_group: Duration::from_millis(20), workers: 2, turns_of_unit };
        let done = work.run(|_| Ok(never_throttled)).unwrap();
        assert!(done.completion_s.iter().all(|&seconds| seconds > 0.0));
        // Two workers do the 200 units of a group. An incomplete burst is not counted.
        assert!(done.bursts_ms.len() >= 4 && done.burst_ms(50) <= done.burst_ms(99));
        assert!((0.0..=1.0).contains(&done.overlap));
    }
}
