//! Samples of figures. Contenders are sampled in turn, so that a disturbance affects all alike.

use crate::affinity;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub samples: usize,
}

impl Figure {
    pub fn of(mut samples: Vec<f64>) -> Option<Figure> {
        samples.sort_by(f64::total_cmp);
        let (&least, &most) = (samples.first()?, samples.last()?);
        Some(Figure { median: samples[samples.len() / 2], least, most, samples: samples.len() })
    }

    pub fn of_ratios(samples: &[f64], others: &[f64]) -> Option<Figure> {
        Figure::of(samples.iter().zip(others).map(|(sample, other)| sample / other).collect())
    }
}

/// A name, and a function that takes a sample.
pub type Contender<'a> = (&'static str, Box<dyn FnMut() -> f64 + 'a>);

static UNITS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

pub type Outcomes<T> = (&'static str, Vec<T>);

/// Takes a sample of each contender in turn, and one of the unit, `repetitions` times.
pub fn interleave(contenders: Vec<Contender<'_>>, repetitions: usize) -> Vec<Outcomes<f64>> {
    in_turn(contenders, repetitions, |_, sample| sample())
}

/// Runs each contender in turn, on whatever CPUs it chooses, `repetitions` times.
pub fn in_turn_unpinned<C, T>(
    contenders: Vec<(&'static str, C)>,
    repetitions: usize,
    run: impl FnMut(&'static str, &mut C) -> T,
) -> Vec<Outcomes<T>> {
    affinity::unpin();
    let outcomes = in_turn(contenders, repetitions, run);
    affinity::pin(0);
    outcomes
}

pub fn in_turn<C, T>(
    mut contenders: Vec<(&'static str, C)>,
    repetitions: usize,
    mut run: impl FnMut(&'static str, &mut C) -> T,
) -> Vec<Outcomes<T>> {
    let mut outcomes: Vec<Outcomes<T>> =
        contenders.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for _ in 0..repetitions {
        unit_sample();
        for ((name, contender), (_, outcomes)) in contenders.iter_mut().zip(&mut outcomes) {
            outcomes.push(run(name, contender));
        }
    }
    outcomes
}

/// The unit of this run: an uncontended atomic add, in ns.
pub fn unit() -> Figure {
    if units().is_empty() {
        unit_sample();
    }
    Figure::of(units().clone()).unwrap_or_else(|| unreachable!("a sample was just taken"))
}

fn unit_sample() {
    const ADDS: u64 = 100_000;
    let word = AtomicU64::new(0);
    let watch = Stopwatch::start();
    for _ in 0..ADDS {
        black_box(&word).fetch_add(1, Ordering::SeqCst);
    }
    let ns = watch.ns_per(ADDS as usize);
    assert_eq!(word.into_inner(), ADDS);
    units().push(ns);
}

fn units() -> std::sync::MutexGuard<'static, Vec<f64>> {
    UNITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures the CPU time of the calling thread, which other processes hardly affect.
pub struct Stopwatch(Duration);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(cpu_time(ClockId::ThreadCPUTime))
    }

    pub fn elapsed(&self) -> Duration {
        cpu_time(ClockId::ThreadCPUTime).saturating_sub(self.0)
    }

    pub fn ns_per(&self, operations: usize) -> f64 {
        self.elapsed().as_nanos() as f64 / operations as f64
    }
}

pub fn process_time() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
