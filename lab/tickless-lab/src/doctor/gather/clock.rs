//! The clock source, and the time that a read of the clock takes: by one thread alone, and by one
//! thread on each CPU at once.
//!
//! Each thread times short batches of reads. If it loses its CPU during a batch, that batch is an
//! outlier, and quantiles ignore outliers: so a busy machine gives about the same figures as an
//! idle one. For a thread that reads alone, the figure is the median. When all CPUs read, other
//! work keeps some threads from running, so that not all of them read at once all the time;
//! therefore the figure is the upper quartile, from batches in which more of them did.

use super::machine::word;
use super::text;
use crate::doctor::facts::{ClockSource, ReadCost, Seen};
use crate::measure::on_cpus;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

pub type Counter<'c> = &'c (dyn Fn() -> u64 + Sync);

pub fn monotonic() -> u64 {
    clock_gettime(ClockId::Monotonic).tv_nsec.cast_unsigned()
}

pub(super) fn source() -> Seen<ClockSource> {
    let folder = Path::new("/sys/devices/system/clocksource/clocksource0");
    let available = text(&folder.join("available_clocksource"))?;
    let available = available.split_whitespace().map(str::to_string).collect();
    Ok(ClockSource { current: word(&folder.join("current_clocksource"))?, available })
}

/// How long a thread reads the clock: long enough for hundreds of batches, even of a slow device.
const READING: Duration = Duration::from_millis(60);

/// The number of reads in a batch. A batch takes a few us, so a thread seldom loses its CPU in one.
const BATCH: u32 = 64;

/// Measures how long a read of `counter` takes, first by one thread, then by one thread on each of
/// these CPUs at once. A thread's time is a quantile over its batches. Takes a tenth of a second.
pub fn read_cost(cpus: &[usize], counter: Counter<'_>) -> Seen<ReadCost> {
    let readers = |cpus: &[usize], quantile| {
        on_cpus(cpus, "that reads the clock", |_| at(quantile, batches(READING, counter)))
            .map_err(|error| error.to_string())
    };
    let (alone, together) = (readers(&cpus[..1], 0.5)?, readers(cpus, 0.75)?);
    let (alone_ns, together_ns) = (at(0.5, alone), at(0.5, together));
    Ok(ReadCost { alone_ns, together_ns, threads: cpus.len() })
}

/// Calls `counter` for `duration`, in batches. Returns each batch's mean time of a call, in ns.
fn batches(duration: Duration, counter: Counter<'_>) -> Vec<f64> {
    let begun = Instant::now();
    let mut batches = Vec::with_capacity(1 << 12);
    let mut last = begun;
    while last - begun < duration || batches.is_empty() {
        for _ in 0..BATCH {
            black_box(counter());
        }
        let now = Instant::now();
        batches.push((now - last).as_nanos() as f64 / f64::from(BATCH));
        last = now;
    }
    batches
}

fn at(quantile: f64, mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(quantile * (values.len() - 1) as f64).round() as usize]
}
