//! The clock source, and what reading a clock takes: alone, and with a reader on each CPU.
//!
//! Times are quantiles over short batches: one during which a reader lost its CPU is an outlier, so
//! a busy machine looks like an idle one. For a reader that is alone it is the median. Readers of
//! all CPUs do not always meet where other work wants the CPUs too: theirs is the upper quartile.

use super::text;
use crate::doctor::facts::{ClockSource, ReadCost, Seen};
use crate::measure::{joined, stay_on};
use nix::time::ClockId;
use std::hint::black_box;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Reads something that counts time. Called from many threads at once.
pub type Counter<'c> = &'c (dyn Fn() -> u64 + Sync);

/// What programs read.
pub fn monotonic() -> u64 {
    ClockId::CLOCK_MONOTONIC.now().map_or(0, |now| now.tv_nsec().cast_unsigned())
}

/// The clock source in use.
pub(super) fn source() -> Seen<ClockSource> {
    let folder = Path::new("/sys/devices/system/clocksource/clocksource0");
    let available = text(&folder.join("available_clocksource"))?;
    Ok(ClockSource {
        current: text(&folder.join("current_clocksource"))?.trim().to_string(),
        available: available.split_whitespace().map(str::to_string).collect(),
    })
}

/// How long a reader reads: long enough for hundreds of batches of the slowest counters.
const READING: Duration = Duration::from_millis(60);

/// So many reads between two looks at the time: some microseconds, so that few batches are
/// disturbed.
const BATCH: u32 = 64;

/// What it takes to read `counter`, alone and by one thread on each of these CPUs. Takes a
/// tenth of a second.
///
/// # Errors
/// When threads cannot be kept on their CPUs.
pub fn read_cost(cpus: &[usize], counter: Counter<'_>) -> Seen<ReadCost> {
    let alone = readers(&cpus[..1], 0.5, counter)?;
    let together = readers(cpus, 0.75, counter)?;
    let (alone_ns, together_ns) = (at(0.5, alone), at(0.5, together));
    Ok(ReadCost { alone_ns, together_ns, threads: cpus.len() })
}

/// What a read takes each of these readers, while all read: this quantile of its batches.
fn readers(cpus: &[usize], quantile: f64, counter: Counter<'_>) -> Seen<Vec<f64>> {
    let ready = Barrier::new(cpus.len());
    thread::scope(|scope| {
        let ready = &ready;
        let reader = |&cpu: &usize| {
            scope.spawn(move || {
                let stays = stay_on(cpu);
                // Whatever came of that: the others must not wait for ever.
                ready.wait();
                stays.map(|()| at(quantile, batches(READING, counter)))
            })
        };
        let threads: Vec<_> = cpus.iter().map(reader).collect();
        let all = threads.into_iter().map(|thread| joined(thread, "that reads the clock"));
        all.collect::<Result<Vec<f64>, _>>().map_err(|error| error.to_string())
    })
}

/// What a read took in each batch.
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

/// The value below which this share of them lies; there is at least one.
fn at(quantile: f64, mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(quantile * (values.len() - 1) as f64).round() as usize]
}
