//! Threads that read one counter as fast as they can, and check every value.

use super::device::{Counted, device_reads};
use crate::error::LabError;
use crate::measure::{histogram, on_cpus};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless::Timers;
use tickless::clock::{Combined, Counter};
use tickless_core::clock::combined::ReadPolicy;

#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub policy: ReadPolicy,
    pub threads: usize,
    pub duration: Duration,
    pub cpus: &'a [usize],
    pub clock: &'a Timers,
}

#[derive(Clone, Debug)]
pub struct Taken {
    pub reads: u64,
    pub device_reads: u64,
    pub seconds: f64,
    /// The time of each read in nanoseconds, including the reading of the clock that times it.
    pub latency: Histogram<u64>,
    pub per_thread: [u64; 2],
    /// How often a value was less than an earlier one, which the same thread had read or another
    /// thread had passed on. Time must not go back.
    pub backwards: u64,
}

impl Taken {
    pub fn reads_per_s(&self) -> f64 {
        self.reads as f64 / self.seconds
    }

    pub fn device_reads_per_read(&self) -> f64 {
        self.device_reads as f64 / self.reads.max(1) as f64
    }

    /// Returns the fairness: the fewest values that a thread read, divided by the most that a
    /// thread read. 1 means that all threads read equally often.
    pub fn fairness(&self) -> f64 {
        self.per_thread[0] as f64 / self.per_thread[1].max(1) as f64
    }
}

struct Own {
    latency: Histogram<u64>,
    device_reads: u64,
    backwards: u64,
    seconds: f64,
}

const READER: &str = "that reads the counter";

impl Plan<'_> {
    /// Reads the counter with several threads for `duration`, and counts values that go back.
    pub fn read(&self, counter: Box<dyn Counter>) -> Result<Taken, LabError> {
        let counter = Combined::new(Counted::new(counter)).with_policy(self.policy);
        let own = on_cpus(&self.places(), READER, |_| self.read_here(&counter))?;
        let mut taken = sum(&own);
        taken.backwards += self.handed_on(&counter)?;
        Ok(taken)
    }

    fn places(&self) -> Vec<usize> {
        self.cpus.iter().copied().cycle().take(self.threads).collect()
    }

    fn read_here(&self, counter: &Combined<Counted>) -> Own {
        let mut own = Own { latency: histogram(), device_reads: 0, backwards: 0, seconds: 0.0 };
        let before = device_reads();
        let begin = self.clock.now();
        let (mut from, mut last) = (begin, 0);
        while from - begin < self.duration {
            let value = counter.read();
            let to = self.clock.now();
            own.backwards += u64::from(value < last);
            own.latency.saturating_record((to - from).as_nanos() as u64);
            (from, last) = (to, value);
        }
        own.device_reads = device_reads() - before;
        own.seconds = (from - begin).as_secs_f64();
        own
    }

    /// Returns how often a value was less than one that another thread had passed on. This is a
    /// separate pass, because passing values on takes a shared word, which would slow reads down.
    fn handed_on(&self, counter: &Combined<Counted>) -> Result<u64, LabError> {
        const READS: usize = 500;
        let latest = AtomicU64::new(0);
        let one = |_| {
            // Acquire and Release: a read that starts after another thread has passed its value on
            // must not return an older one (C8, time never goes back).
            let floor = latest.load(Ordering::Acquire);
            let value = counter.read();
            latest.fetch_max(value, Ordering::Release);
            u64::from(value < floor)
        };
        let backwards = on_cpus(&self.places(), READER, |_| (0..READS).map(one).sum::<u64>())?;
        Ok(backwards.into_iter().sum())
    }
}

fn sum(own: &[Own]) -> Taken {
    let mut latency = histogram();
    own.iter().for_each(|own| {
        // All histograms have the same bounds, so this cannot fail.
        let _ = latency.add(&own.latency);
    });
    let counts = || own.iter().map(|own| own.latency.len());
    Taken {
        reads: latency.len(),
        device_reads: own.iter().map(|own| own.device_reads).sum(),
        seconds: own.iter().map(|own| own.seconds).fold(0.0, f64::max),
        latency,
        per_thread: [counts().min().unwrap_or(0), counts().max().unwrap_or(0)],
        backwards: own.iter().map(|own| own.backwards).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::{Emulated, clock};
    use super::*;
    use crate::measure::cpus;

    /// Goal: a direct read takes one device read, a combined one at most one. Time never goes back.
    #[test]
    fn device_reads_are_counted() {
        for policy in [ReadPolicy::Direct, ReadPolicy::Combined] {
            let duration = Duration::from_millis(20);
            let clock = clock().unwrap();
            let plan = Plan { policy, threads: 3, duration, cpus: &cpus(), clock: &clock };
            let taken = plan.read(Box::new(Emulated::new(clock.clone()))).unwrap();
            assert_eq!(taken.backwards, 0);
            assert!(taken.reads > 0 && taken.per_thread[0] <= taken.per_thread[1]);
            match policy {
                ReadPolicy::Direct => assert_eq!(taken.device_reads, taken.reads),
                // A reader that lost its turn to another thread has read the device in vain, and
                // then takes a value that another thread read.
                ReadPolicy::Combined => assert!(taken.device_reads <= 2 * taken.reads),
            }
        }
    }
}
