//! The kernel's own ways to sleep: threads in `clock_nanosleep`, and threads that read a timerfd.

use super::{Plan, Slice, Tally};
use crate::error::LabError;
use crate::measure::{joined, timed};
use rustix::io::{self, Errno};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{self, ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{Timespec, clock_gettime, timerfd_create};
use std::sync::Barrier;
use std::thread;
use tickless::time::Instant;

pub fn clock_nanosleep(plan: &Plan) -> Result<Slice, LabError> {
    sleepers(plan, || {
        Ok(|deadline| {
            let deadline = spec(deadline);
            io::retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &deadline))
        })
    })
}

pub fn timerfd(plan: &Plan) -> Result<Slice, LabError> {
    sleepers(plan, || {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(move |deadline| {
            let once = Itimerspec { it_interval: Timespec::default(), it_value: spec(deadline) };
            time::timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)?;
            io::retry_on_intr(|| io::read(&timer, &mut [0; 8])).map(drop)
        })
    })
}

/// Starts the threads of the plan. Each thread calls `sleep` once. The returned function then
/// sleeps until a deadline each time the thread calls it. Returns the wakeups of all threads.
fn sleepers<S: FnMut(Instant) -> Result<(), Errno>>(
    plan: &Plan,
    sleep: impl Fn() -> Result<S, Errno> + Sync,
) -> Result<Slice, LabError> {
    const SLEEP: &str = "the kernel refused to put a thread to sleep; leave that sleeper out";
    let ready = Barrier::new(plan.threads.len() + 1);
    thread::scope(|scope| {
        let (ready, sleep) = (&ready, &sleep);
        let one = |cpu: Option<usize>| {
            move || {
                let prepared = plan.prepare(cpu).and_then(|()| {
                    let sleep = sleep().map_err(LabError::system(SLEEP))?;
                    Ok((sleep, now()))
                });
                // Wait even after an error: otherwise the other threads would wait for ever.
                ready.wait();
                let (sleep, start) = prepared?;
                cycle(plan, start, sleep).map_err(LabError::system(SLEEP))
            }
        };
        let threads: Vec<_> = plan.threads.iter().map(|&cpu| scope.spawn(one(cpu))).collect();
        ready.wait();
        let (tallies, usage) = timed(|| {
            let tallies = threads.into_iter().map(|thread| joined(thread, "that sleeps"));
            tallies.collect::<Result<Vec<Tally>, LabError>>()
        });
        let mut tally = Tally::default();
        tallies?.iter().for_each(|one| tally.add(one));
        Ok(Slice { tally, usage, ..Slice::default() })
    })
}

/// Sleeps until each deadline in turn. Deadlines that pass before the next sleep count as missed.
fn cycle(
    plan: &Plan,
    start: Instant,
    mut sleep: impl FnMut(Instant) -> Result<(), Errno>,
) -> Result<Tally, Errno> {
    let end = plan.end(start);
    let mut tally = Tally::default();
    let mut next = plan.first(start);
    while !plan.is_done(tally.lateness.len(), next, end) {
        sleep(next)?;
        let now = now();
        plan.count(&mut tally, now, next);
        next += plan.interval;
        if next < now {
            let behind =
                ((now - next).as_nanos() as u64).div_ceil((plan.interval.as_nanos() as u64).max(1));
            tally.missed += behind;
            next += plan.interval.saturating_mul(behind.min(u64::from(u32::MAX)) as u32);
        }
    }
    Ok(tally)
}

fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn spec(at: Instant) -> Timespec {
    let after = at - Instant::ZERO;
    // A deadline of this clock is far from the 292 years that 64 bits of nanoseconds hold.
    Timespec { tv_sec: after.as_secs().cast_signed(), tv_nsec: after.subsec_nanos().into() }
}
