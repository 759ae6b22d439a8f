//! The clock source, and the time that a read of the clock takes.
//!
//! A thread times short batches of reads. If it loses its CPU during a batch, that batch is an
//! outlier, which the median ignores: so a busy machine gives about the same figure as an idle one.

use super::text;
use crate::doctor::facts::{ClockSource, Seen};
use crate::measure::{joined, stay_on};
use nix::time::ClockId;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

pub type Counter<'c> = &'c (dyn Fn() -> u64 + Sync);

pub fn monotonic() -> u64 {
    ClockId::CLOCK_MONOTONIC.now().map_or(0, |now| now.tv_nsec().cast_unsigned())
}

pub(super) fn source() -> Seen<ClockSource> {
    let folder = Path::new("/sys/devices/system/clocksource/clocksource0");
    let available = text(&folder.join("available_clocksource"))?;
    Ok(ClockSource {
        current: text(&folder.join("current_clocksource"))?.trim().to_string(),
        available: available.split_whitespace().map(str::to_string).collect(),
    })
}

/// How long a thread reads the clock: long enough for hundreds of batches of reads even if the
/// clock is a slow device.
const READING: Duration = Duration::from_millis(60);

/// The number of reads in a batch. A batch takes only a few microseconds, so a thread seldom loses
/// its CPU during one.
const BATCH: u32 = 64;

/// Measures how long a read of `counter` takes on this CPU, in nanoseconds. Takes a twentieth of a
/// second.
pub fn read_ns(cpu: usize, counter: Counter<'_>) -> Seen<f64> {
    let mut batches = thread::scope(|scope| {
        let reader = scope.spawn(|| stay_on(cpu).map(|()| batches(READING, counter)));
        joined(reader, "that reads the clock").map_err(|error| error.to_string())
    })?;
    batches.sort_by(f64::total_cmp);
    Ok(batches[batches.len() / 2])
}

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
