//! One live measurement: driver threads that tick, a few timeouts that expire, and a probe.
//!
//! Each timer base has a driver thread, which stands for the timer interrupt, and an expiry thread,
//! which fires expired timers. Both are pinned to the base's CPU. A few timeouts expire, and the
//! CPUs are mostly idle, like most machines. The probe works like cyclictest: it is a thread that
//! sleeps without timers of this library and measures how late it wakes. Needless wakes of other
//! threads delay it.

use crate::error::LabError;
use crate::latency::{Plan, Sleeper, Tally};
use crate::measure::{Threads, cpus, joined, stay_on};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tickless::driver::CpuId;
use tickless::policy::Deferral;
use tickless::stats::Stats;
use tickless::time::{Instant, Tick};
use tickless::{Timeout, Timers};
use tickless_machine::random::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpiryWakes {
    /// The expiry thread is woken on every tick: the replaced behaviour.
    Before,
    /// The expiry thread is woken on ticks that find an expired timer: the mechanism.
    After,
    /// The expiry thread is woken when a timer has expired. There are no ticks: the driver sleeps
    /// until a timer is due.
    Tickless,
}

impl ExpiryWakes {
    pub const fn name(self) -> &'static str {
        match self {
            ExpiryWakes::Before => "before",
            ExpiryWakes::After => "after",
            ExpiryWakes::Tickless => "tickless",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scene {
    pub way: ExpiryWakes,
    pub hz: u32,
    /// A thread on each CPU never waits.
    pub is_busy: bool,
    /// The probe is one pinned thread on each CPU, as with cyclictest's `-S`, instead of a thread
    /// on any CPU.
    pub is_pinned: bool,
    /// How long after a tick of 1 ms the probe wakes; `None` for an arbitrary time.
    pub phase: Option<Duration>,
    pub duration: Duration,
    pub seed: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub probe: Tally,
    pub timeouts: Tally,
    pub ticks_per_s: f64,
    pub wakes_per_s: f64,
    pub empty_wakes_per_s: f64,
    pub switches_per_s: f64,
    pub cpu_percent: f64,
    /// How often further timers came due while the expiry thread was still firing the timers that
    /// were due before.
    pub merged: u64,
    pub longest_batch: u64,
}

/// The number of timeouts on each base. Each expires every 40 to 60 ms. That is 40 expiries a
/// second on each base, so most ticks find no expired timer.
const TIMEOUTS: u64 = 2;
const SHORTEST_MS: u64 = 40;
const SPREAD_MS: u64 = 20;
const INTERVAL: Duration = Duration::from_millis(1);

impl Scene {
    /// An idle machine, with a tick of 1 ms and an unpinned probe.
    pub const IDLE: Scene = Scene {
        way: ExpiryWakes::Before,
        hz: 1_000,
        is_busy: false,
        is_pinned: false,
        phase: None,
        duration: Duration::ZERO,
        seed: 0,
    };

    /// Starts the timers and the load. Once the drivers have started and sleep, measures.
    pub fn play(&self) -> Result<Taken, LabError> {
        let tick = self.tick();
        let settings = Timers::builder().tick(tick).pin_drivers();
        let timers = match self.way {
            ExpiryWakes::Before => settings.deferral(Deferral::EveryTick),
            ExpiryWakes::After => settings.deferral(Deferral::OnExpiry).ticking(),
            ExpiryWakes::Tickless => settings.deferral(Deferral::OnExpiry),
        }
        .start()?;
        let late = Arc::new(Mutex::new(Tally::default()));
        let bases = timers.stats().bases.len();
        let _timeouts: Vec<Timeout> = (0..bases as u64 * TIMEOUTS)
            .map(|at| self.timeout(&timers, tick, at, Arc::clone(&late)))
            .collect();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stop = &stop;
            let busy = if self.is_busy { cpus() } else { Vec::new() };
            let hogs: Vec<_> =
                busy.into_iter().map(|cpu| scope.spawn(move || hog(cpu, stop))).collect();
            settle(2 * bases);
            let taken = self.watch(&timers, &late);
            stop.store(true, Ordering::Relaxed);
            hogs.into_iter().try_for_each(|hog| joined(hog, "that loads a CPU"))?;
            taken
        })
    }

    /// Runs the probe. Returns how late it woke, and what the drivers and expiry threads did.
    fn watch(&self, timers: &Timers, late: &Mutex<Tally>) -> Result<Taken, LabError> {
        *late.lock().unwrap_or_else(PoisonError::into_inner) = Tally::default();
        let (stats, used) = (timers.stats(), threads());
        let slice = Sleeper::ClockNanosleep.measure(&self.plan())?;
        let (used, after) = (threads().used_since(&used), timers.stats());
        let timeouts = late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let each = after.bases.len() as f64 * slice.usage.real_s;
        let rate = |count: fn(&Stats) -> u64| (count(&after) - count(&stats)) as f64 / each;
        Ok(Taken {
            probe: slice.tally,
            timeouts,
            ticks_per_s: rate(|stats| stats.bases.iter().map(|base| base.ticks).sum()),
            wakes_per_s: rate(|stats| stats.bases.iter().map(|base| base.deferred.wakes).sum()),
            empty_wakes_per_s: rate(|stats| {
                stats.bases.iter().map(|base| base.deferred.empty_wakes).sum()
            }),
            switches_per_s: used.switches as f64 / each,
            cpu_percent: 100.0 * used.cpu_s / each,
            merged: after.bases.iter().map(|base| base.deferred.merged).sum(),
            longest_batch: longest_batch(&after),
        })
    }

    fn plan(&self) -> Plan {
        let pinned = || cpus().into_iter().map(Some).collect();
        Plan {
            interval: INTERVAL,
            threads: if self.is_pinned { pinned() } else { vec![None] },
            slack_ns: 1,
            duration: Some(self.duration),
            phase: self.phase,
            ..Plan::default()
        }
    }

    fn tick(&self) -> Tick {
        let length = Duration::from_nanos(1_000_000_000 / u64::from(self.hz.max(1)));
        Tick::new(length).unwrap_or(Tick::MILLISECOND)
    }

    /// Makes a timeout that rearms itself for the exact time of a later tick, so that its lateness
    /// does not include the rounding to a tick.
    fn timeout(&self, timers: &Timers, tick: Tick, at: u64, late: Arc<Mutex<Tally>>) -> Timeout {
        let base = CpuId((at / TIMEOUTS) as u16);
        let mut random = Random::new(self.seed.wrapping_add(at));
        let length = tick.length().as_nanos() as u64;
        let mut next = move |now: Instant| {
            let after = Duration::from_millis(SHORTEST_MS + random.below(SPREAD_MS));
            let deadline = now + after;
            let into_tick = deadline.as_nanos() % length;
            deadline + Duration::from_nanos((length - into_tick) % length)
        };
        let first = next(timers.now());
        let timeout = timers
            .timeout(move |fired| {
                let now = fired.now();
                late.lock().unwrap_or_else(PoisonError::into_inner).record(now, fired.deadline());
                let deadline = next(now);
                fired.restart_range(deadline, deadline);
            })
            .pinned(base);
        // Arming fails only on a base that does not exist.
        let _ = timeout.start_at(first);
        timeout
    }
}

fn longest_batch(stats: &Stats) -> u64 {
    stats.bases.iter().map(|base| base.deferred.longest_batch).max().unwrap_or(0)
}

fn threads() -> Threads {
    Threads::named(Threads::OF_PROCESS, &["tickless/", "tickless-x/"])
}

/// Waits until this many of the library's threads have started, and a little longer, for them to
/// fall asleep. A thread sets its own name, so it is found by name only after it has run.
fn settle(expected: usize) {
    const TRIES: usize = 100;
    let mut tries = 0;
    while threads().count() < expected && tries < TRIES {
        thread::park_timeout(Duration::from_millis(5));
        tries += 1;
    }
    thread::park_timeout(Duration::from_millis(20));
}

fn hog(cpu: usize, stop: &AtomicBool) -> Result<(), LabError> {
    stay_on(cpu)?;
    let mut work = 1u64;
    while !stop.load(Ordering::Relaxed) {
        (0..1_000).for_each(|_| work = black_box(work.wrapping_mul(3)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(way: ExpiryWakes) -> Taken {
        let duration = Duration::from_millis(300);
        Scene { way, duration, ..Scene::IDLE }.play().unwrap()
    }

    /// Goal: with the replaced behaviour, ticks wake the expiry thread, mostly without a due timer.
    /// With the mechanism, it is woken only if a timer expired (D3, a wake only for due timers).
    #[test]
    fn the_thread_is_woken_when_something_expired() {
        let (before, after, tickless) =
            (play(ExpiryWakes::Before), play(ExpiryWakes::After), play(ExpiryWakes::Tickless));
        assert!(before.wakes_per_s > 4.0 * after.wakes_per_s, "{before:?}\n{after:?}");
        assert!(before.empty_wakes_per_s > 0.5 * before.wakes_per_s, "{before:?}");
        assert!(after.empty_wakes_per_s < 0.2 * after.wakes_per_s, "{after:?}");
        assert!(after.wakes_per_s > 1.0 && after.ticks_per_s > 100.0, "{after:?}");
        assert_eq!(tickless.ticks_per_s, 0.0, "{tickless:?}");
        for taken in [before, after, tickless] {
            assert!(taken.timeouts.lateness.len() > 3 && taken.timeouts.early == 0, "{taken:?}");
            assert!(taken.probe.lateness.len() > 20 && taken.switches_per_s > 1.0, "{taken:?}");
        }
    }
}
