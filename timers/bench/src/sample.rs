//! Samples of figures. Contenders are sampled in turn, so that a disturbance affects all alike.

use crate::affinity;
use crate::child::Running;
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether this is the build with tokio's unstable features. It takes the samples of tokio's
/// alternative timers, in turn with the usual build, as its child.
pub const IS_TWIN: bool = cfg!(tokio_unstable);

/// What the names of contenders with tokio's alternative timers contain.
pub const ALTERNATIVE: &str = "`enable_alt_timer`";

/// A name of a contender with timers of tokio's multi-thread runtime.
macro_rules! of_tokio {
    ($name:literal) => {
        if cfg!(tokio_unstable) { concat!($name, ", `enable_alt_timer`") } else { $name }
    };
}
pub(crate) use of_tokio;

thread_local! {
    /// The other build of this program, while it measures the same case.
    static TWIN: RefCell<Option<Running>> = const { RefCell::new(None) };
}

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
        if IS_TWIN {
            // `None` if nobody asks: then the turns follow each other.
            let _request = std::io::stdin().lines().next();
        }
        unit_sample();
        for ((name, contender), (_, outcomes)) in contenders.iter_mut().zip(&mut outcomes) {
            outcomes.push(run(name, contender));
        }
        if IS_TWIN {
            println!("done");
        }
        let done = TWIN.with_borrow_mut(|twin| twin.as_mut().map(Running::ask));
        assert!(done.is_none_or(|done| done == "done"), "the other build measures the same case");
    }
    outcomes
}

/// Measures a case while the other build measures it too, in turn. Returns what that says then.
pub fn beside<T>(twin: Option<Running>, measure: impl FnOnce() -> T) -> (T, String) {
    TWIN.set(twin);
    let measured = measure();
    (measured, TWIN.take().map(Running::rest).unwrap_or_default())
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

/// Measures CPU time, which other processes hardly affect.
pub struct Stopwatch(ClockId, Duration);

impl Stopwatch {
    /// Of the calling thread; of the process in the other build, where a worker does the work.
    pub fn start() -> Stopwatch {
        if IS_TWIN { Stopwatch::on(ClockId::ProcessCPUTime) } else { Stopwatch::of_thread() }
    }

    pub fn of_thread() -> Stopwatch {
        Stopwatch::on(ClockId::ThreadCPUTime)
    }

    fn on(clock: ClockId) -> Stopwatch {
        Stopwatch(clock, cpu_time(clock))
    }

    pub fn elapsed(&self) -> Duration {
        cpu_time(self.0).saturating_sub(self.1)
    }

    pub fn ns_per(&self, operations: usize) -> f64 {
        self.elapsed().as_nanos() as f64 / operations as f64
    }
}

/// Returns the time from the first beginning to the last end, in ns.
pub fn wall_ns(laps: Vec<(Instant, Instant)>) -> f64 {
    let began = laps.iter().map(|(began, _)| began).min();
    let ended = laps.iter().map(|(_, ended)| ended).max();
    ended.zip(began).map_or(0.0, |(ended, began)| (*ended - *began).as_nanos() as f64)
}

pub fn process_time() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
