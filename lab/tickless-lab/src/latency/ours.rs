//! Measures this library's timers: the callback, which runs on the thread that drives the timer,
//! reads the clock.

use super::{Plan, Sleeper, Slice, Tally};
use crate::error::LabError;
use crate::measure::{joined, timed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use tickless::driver::{CpuId, Wakeup};
use tickless::time::Instant;
use tickless::{Fired, Timers};

/// The time is longer than most machines need to wake a thread.
const SPIN: Wakeup = Wakeup::SpinBefore(Duration::from_micros(100));
/// The driver learns how much earlier to wake. It spins for at most a 20th of its CPU's time.
const AUTO: Wakeup = Wakeup::Auto { cpu_share: 0.05 };

/// Measures as many timers as the plan has threads, spread over the timer bases. If the plan binds
/// threads to CPUs, each driver thread is bound to the CPU of its base.
pub fn measure(plan: &Plan, sleeper: Sleeper) -> Result<Slice, LabError> {
    let settings = match sleeper {
        Sleeper::HrtimerSpin => Timers::builder().wakeup(SPIN),
        Sleeper::HrtimerAuto => Timers::builder().wakeup(AUTO),
        _ => Timers::builder(),
    };
    let pinned = plan.threads.iter().any(Option::is_some);
    let settings = if pinned { settings.pin_drivers() } else { settings };
    thread::scope(|scope| {
        // Start drivers from a new thread, because they inherit its priority and slack.
        let starter = scope.spawn(move || {
            plan.prepare(None)?;
            let timers = settings.start()?;
            run(plan, sleeper, &timers)
        });
        joined(starter, "that starts timers")
    })
}

/// Runs a periodic timer for each thread of the plan until all have ended, and sums their tallies.
fn run(plan: &Plan, sleeper: Sleeper, timers: &Timers) -> Result<Slice, LabError> {
    let bases = timers.stats().bases.len().max(1);
    let (tell, told) = mpsc::channel();
    let start = timers.now();
    let armed: Vec<StartAt> = (0..plan.threads.len())
        .map(|place| {
            let base = CpuId((place % bases) as u16);
            timer(timers, sleeper, base, cycle(plan.clone(), start, tell.clone()))
        })
        .collect();
    drop(tell);
    let (tally, usage) = timed(|| {
        // Arming fails only after a shut-down or on a missing base, and neither happens here.
        armed.iter().for_each(|start_at| start_at(plan.first(start)));
        let mut sum = Tally::default();
        let tallies = armed.iter().map(|_| told.recv().ok()).collect::<Option<Vec<Tally>>>()?;
        tallies.iter().for_each(|tally| sum.add(tally));
        Some(sum)
    });
    let tally = tally.ok_or(LabError::Thread { what: "that drives timers" })?;
    Ok(Slice { tally, usage, ..Slice::default() })
}

/// Returns a periodic timer's callback, which tallies its lateness and sends the tally at the end.
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
            // The send fails only if the receiver has given up. Then the tally is not needed.
            let _ = tell.send(std::mem::take(&mut tally));
        } else {
            tally.missed += periods.saturating_sub(1);
        }
    }
}

/// A function that arms the timer which it owns. Dropping the function drops the timer.
type StartAt = Box<dyn Fn(Instant)>;

fn timer(
    timers: &Timers,
    sleeper: Sleeper,
    base: CpuId,
    callback: impl FnMut(&mut Fired<'_>) + Send + 'static,
) -> StartAt {
    if sleeper == Sleeper::Timeout {
        let timer = timers.timeout(callback).pinned(base);
        Box::new(move |at| _ = timer.start_at(at))
    } else {
        let timer = timers.hrtimer(callback).pinned(base);
        Box::new(move |at| _ = timer.start_at(at))
    }
}
