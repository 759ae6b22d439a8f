//! Two threads that wake each other through pipes. A timer, the *guard*, limits each wait.
//!
//! The guard is like the timeouts of servers: it is armed before every wait, cancelled after it,
//! and rarely fires. In the published test, the kernel's own tick had this role: it was stopped and
//! started again around every idle period. A current kernel no longer does that for a pipe, so here
//! the guard is a timer of the library.

use crate::error::LabError;
use crate::measure::{self, Usage, joined, stay_on, stay_within};
use rustix::fd::OwnedFd;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tickless::policy::Policy;
use tickless::stats::{BaseStats, DeviceCounts, Stats};
use tickless::{HrTimer, Timers};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub guard: Option<Guard>,
    pub trips: u32,
    pub cpus: [usize; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    pub by: By,
    pub after: Duration,
}

/// Whose timers the guards are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Library(Policy),
    /// Timerfds of this machine's kernel.
    Kernel,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Taken {
    pub trips: u32,
    /// How many round trips came before those that were measured.
    pub warmed: u32,
    pub usage: Usage,
    pub device: DeviceCounts,
    pub wake_calls: u64,
    /// How many guards fired, because a wait took longer than its guard.
    pub fired: u64,
}

struct Player {
    from: PipeReader,
    to: PipeWriter,
    guard: Option<Armed>,
}

enum Armed {
    Library(HrTimer, Duration),
    Kernel(OwnedFd, Duration),
}

impl Plan {
    pub fn play(&self) -> Result<Taken, LabError> {
        thread::scope(|scope| {
            // Driver threads inherit the CPUs of the thread that starts them, and there is a timer
            // base for each of these CPUs.
            let starter = scope.spawn(|| {
                stay_within(&self.cpus)?;
                self.play_here()
            });
            joined(starter, PLAYER)
        })
    }

    /// Plays with threads and timer bases that are limited to the CPUs of the calling thread.
    fn play_here(&self) -> Result<Taken, LabError> {
        let fired = Arc::new(AtomicU64::new(0));
        let timers = match self.guard {
            Some(Guard { by: By::Library(policy), .. }) => {
                Some(Timers::builder().policy(policy).start()?)
            }
            _ => None,
        };
        let guard = || -> Result<Option<Armed>, LabError> {
            let Some(guard) = self.guard else { return Ok(None) };
            let fired = Arc::clone(&fired);
            let count = move |_: &mut tickless::Fired<'_>| {
                fired.fetch_add(1, Ordering::Relaxed);
            };
            Ok(Some(match &timers {
                Some(timers) => Armed::Library(timers.hrtimer(count), guard.after),
                None => Armed::Kernel(timerfd()?, guard.after),
            }))
        };
        let (there, back) = (pipe()?, pipe()?);
        let ping = Player { from: back.0, to: there.1, guard: guard()? };
        let pong = Player { from: there.0, to: back.1, guard: guard()? };
        let [ping_cpu, pong_cpu] = self.cpus;
        let mut taken = thread::scope(|scope| {
            let pong = scope.spawn(move || {
                stay_on(pong_cpu)?;
                // The loop ends when the other thread has closed its end of the pipe.
                let mut pong = pong;
                while pong.wait()? {
                    pong.hand_over()?;
                }
                Ok(())
            });
            let ping = scope.spawn(|| {
                stay_on(ping_cpu)?;
                serve(ping, timers.as_ref(), self.trips)
            });
            let taken = joined(ping, PLAYER);
            joined(pong, PLAYER)?;
            taken
        })?;
        taken.fired = fired.load(Ordering::Relaxed);
        Ok(taken)
    }
}

/// Plays until the first guard causes no more device writes, then measures `trips` round trips.
fn serve(mut ping: Player, timers: Option<&Timers>, trips: u32) -> Result<Taken, LabError> {
    // Arming the first guard wakes a driver thread, which checks the first deadline and sleeps
    // again. On a busy machine that can take long, and a check writes to the device. So the
    // measurement begins after a stretch without a write. An eager guard has no such stretch.
    const STRETCH: u32 = 100;
    let writes = || timers.map(|timers| device(&timers.stats()).writes);
    let mut warmed = 0;
    for _ in 0..20 {
        let before = writes();
        warmed += STRETCH;
        for _ in 0..STRETCH {
            ping.round_trip()?;
        }
        if before > Some(0) && writes() == before {
            break;
        }
    }
    let before = timers.map(Timers::stats);
    let (done, usage) = measure::timed(|| (0..trips).try_for_each(|_| ping.round_trip()));
    done?;
    let mut taken = Taken { trips, warmed, usage, ..Taken::default() };
    if let (Some(timers), Some(before)) = (timers, before) {
        let after = timers.stats();
        taken.device = device(&after).since(device(&before));
        taken.wake_calls =
            sum(&after, |base| base.wake_calls) - sum(&before, |base| base.wake_calls);
    }
    Ok(taken)
}

fn device(stats: &Stats) -> DeviceCounts {
    stats.bases.iter().fold(DeviceCounts::default(), |sum, base| sum.plus(base.device))
}

fn sum(stats: &Stats, counter: fn(&BaseStats) -> u64) -> u64 {
    stats.bases.iter().map(counter).sum()
}

impl Player {
    fn round_trip(&mut self) -> Result<(), LabError> {
        self.hand_over()?;
        self.wait()?;
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), LabError> {
        self.to.write_all(&[1]).map_err(LabError::system(PIPE))
    }

    /// Arms the guard, waits for a byte and cancels the guard. Returns whether a byte has arrived.
    fn wait(&mut self) -> Result<bool, LabError> {
        if let Some(guard) = &self.guard {
            guard.arm()?;
        }
        let read = self.from.read(&mut [0]).map_err(LabError::system(PIPE))?;
        if let Some(guard) = &self.guard {
            guard.disarm()?;
        }
        Ok(read > 0)
    }
}

impl Armed {
    fn arm(&self) -> Result<(), LabError> {
        match self {
            // Arming fails only after a shut-down, and there is none.
            Armed::Library(timer, after) => {
                let _ = timer.start(*after);
                Ok(())
            }
            Armed::Kernel(timer, after) => set(timer, *after),
        }
    }

    fn disarm(&self) -> Result<(), LabError> {
        match self {
            Armed::Library(timer, _) => {
                timer.cancel();
                Ok(())
            }
            Armed::Kernel(timer, _) => set(timer, Duration::ZERO),
        }
    }
}

/// Arms a timerfd; disarms it with a time of zero.
fn set(timer: &OwnedFd, after: Duration) -> Result<(), LabError> {
    let seconds = after.as_secs().cast_signed();
    let it_value = Timespec { tv_sec: seconds, tv_nsec: after.subsec_nanos().into() };
    let once = Itimerspec { it_interval: Timespec::default(), it_value };
    let set = timerfd_settime(timer, TimerfdTimerFlags::empty(), &once);
    set.map(drop).map_err(LabError::system(TIMERFD))
}

fn timerfd() -> Result<OwnedFd, LabError> {
    timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .map_err(LabError::system(TIMERFD))
}

const TIMERFD: &str = "a timerfd failed; raise the limit on open files (ulimit -n)";

const PIPE: &str = "a pipe between two threads failed; raise the limit on open files (ulimit -n)";

fn pipe() -> Result<(PipeReader, PipeWriter), LabError> {
    io::pipe().map_err(LabError::system(PIPE))
}

const PLAYER: &str = "that plays ping-pong";

impl Taken {
    /// Converts seconds of the whole run to microseconds per round trip.
    pub fn us(&self, seconds: f64) -> f64 {
        seconds * 1e6 / f64::from(self.trips)
    }

    /// Converts a count of the whole run to the count per round trip.
    pub fn count(&self, count: u64) -> f64 {
        count as f64 / f64::from(self.trips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(policy: Policy) -> Taken {
        let cpus = measure::cpus();
        let guard = Some(Guard { by: By::Library(policy), after: Duration::from_secs(60) });
        Plan { guard, trips: 300, cpus: [cpus[0], *cpus.last().unwrap()] }.play().unwrap()
    }

    /// Goal: under the lazy policy a cancelled guard does not program the device; under the eager
    /// one it does, on both waits of a round trip (R2, R12: which operations program the device).
    #[test]
    fn lazy_leaves_the_device_alone_and_eager_does_not() {
        let lazy = play(Policy::Lazy);
        // The count can exceed 0: on a busy machine, the driver's first check can find nothing due.
        assert!(lazy.device.writes < 30, "{lazy:?}");
        assert_eq!(lazy.fired, 0);
        let eager = play(Policy::Eager);
        assert!(eager.device.writes >= 2 * 300, "{eager:?}");
        assert_eq!(eager.fired, 0);
        assert!(lazy.usage.switches() >= 300 && lazy.usage.real_s > 0.0, "{lazy:?}");
    }

    #[test]
    fn a_guard_that_is_too_short_fires() {
        let cpus = measure::cpus();
        let guard = Some(Guard { by: By::Library(Policy::Lazy), after: Duration::ZERO });
        let plan = Plan { guard, trips: 100, cpus: [cpus[0]; 2] };
        // On a busy machine a run can be over before the driver has had a CPU.
        assert!((0..100).any(|_| plan.play().unwrap().fired > 0));
    }

    #[test]
    fn a_guard_of_the_kernel_is_armed_and_disarmed() {
        let guard = Armed::Kernel(timerfd().unwrap(), Duration::from_secs(60));
        let Armed::Kernel(timer, _) = &guard else { unreachable!() };
        let left = || rustix::time::timerfd_gettime(timer).unwrap().it_value;
        guard.arm().unwrap();
        assert!((50..=60).contains(&left().tv_sec), "{:?}", left());
        guard.disarm().unwrap();
        assert_eq!(left(), Timespec::default());
    }
}
