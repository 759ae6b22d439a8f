//! Our timers: the callback, on its driver's thread, reads the clock.

use super::{Plan, Slice, Tally};
use crate::measure::{MeasureError, joined, timed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use tickless::driver::{CpuId, Wakeup};
use tickless::time::Instant;
use tickless::{Builder, Fired, HrTimer, Timeout, Timers};

/// Which of our timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// High-resolution.
    Hrtimer,
    /// Coarse.
    Timeout,
}

/// Measures timers with the usual settings.
pub fn measure(plan: &Plan, kind: Kind) -> Result<Slice, MeasureError> {
    measure_with(plan, kind, Timers::builder())
}

/// What most machines need to wake a thread, with some room.
pub const SPIN: Wakeup = Wakeup::SpinBefore(Duration::from_micros(100));
/// A twentieth of a CPU for each driver.
pub const AUTO: Wakeup = Wakeup::Auto { cpu_share: 0.05 };

/// Measures high-resolution timers whose drivers wake in this way.
pub fn measure_waking(plan: &Plan, wakeup: Wakeup) -> Result<Slice, MeasureError> {
    measure_with(plan, Kind::Hrtimer, Timers::builder().wakeup(wakeup))
}

/// Measures timers with these settings: as many as the plan has threads, spread over the bases;
/// where the plan's threads stay on their CPUs, so do the drivers.
pub fn measure_with(plan: &Plan, kind: Kind, settings: Builder) -> Result<Slice, MeasureError> {
    let pinned = plan.threads.iter().any(Option::is_some);
    let settings = if pinned { settings.pin_drivers() } else { settings };
    thread::scope(|scope| {
        // The drivers inherit priority and slack from the thread that starts them.
        let starter = scope.spawn(move || {
            plan.prepare(None)?;
            let timers = settings.start()?;
            run(plan, kind, &timers)
        });
        joined(starter, "that starts timers")
    })
}

fn run(plan: &Plan, kind: Kind, timers: &Timers) -> Result<Slice, MeasureError> {
    let bases = timers.stats().bases.len().max(1);
    let (tell, told) = mpsc::channel();
    let start = timers.now();
    let armed: Vec<Armed> = (0..plan.threads.len())
        .map(|place| {
            let base = CpuId((place % bases) as u16);
            Armed::new(timers, kind, base, cycle(plan.clone(), start, tell.clone()))
        })
        .collect();
    drop(tell);
    let (tally, usage) = timed(|| {
        // Arming can only be refused after a shut-down or on a base that is not there.
        armed.iter().for_each(|timer| timer.start_at(plan.first(start)));
        let mut sum = Tally::default();
        let tallies = armed.iter().map(|_| told.recv().ok()).collect::<Option<Vec<Tally>>>()?;
        tallies.iter().for_each(|tally| sum.add(tally));
        Some(sum)
    });
    let tally = tally.ok_or(MeasureError::Thread { what: "that drives timers" })?;
    Ok(Slice { tally, usage })
}

/// Returns a callback that counts its wakeups until the plan ends, and then sends the tally.
fn cycle(plan: Plan, start: Instant, tell: Sender<Tally>) -> impl FnMut(&mut Fired<'_>) + Send {
    let end = plan.end(start);
    let mut tally = Tally::default();
    move |fired| {
        let deadline = fired.deadline();
        plan.count(&mut tally, fired.now(), deadline);
        let periods = fired.forward(plan.interval);
        let next = deadline + plan.interval.saturating_mul(periods.min(1 << 31) as u32);
        if plan.is_done(tally.lateness.len(), next, end) {
            fired.stop();
            // An error means that the receiver has given up.
            let _ = tell.send(std::mem::take(&mut tally));
        } else {
            tally.missed += periods.saturating_sub(1);
        }
    }
}

/// A timer of either kind.
enum Armed {
    Hrtimer(HrTimer),
    Timeout(Timeout),
}

impl Armed {
    fn new(
        timers: &Timers,
        kind: Kind,
        base: CpuId,
        callback: impl FnMut(&mut Fired<'_>) + Send + 'static,
    ) -> Armed {
        match kind {
            Kind::Hrtimer => Armed::Hrtimer(timers.hrtimer(callback).pinned(base)),
            Kind::Timeout => Armed::Timeout(timers.timeout(callback).pinned(base)),
        }
    }

    fn start_at(&self, deadline: Instant) {
        let _ = match self {
            Armed::Hrtimer(timer) => timer.start_at(deadline),
            Armed::Timeout(timer) => timer.start_at(deadline),
        };
    }
}
