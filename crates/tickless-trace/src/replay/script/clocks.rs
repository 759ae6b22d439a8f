//! All times of a trace on one clock.
//!
//! The replay's clock is the trace's, shifted such that a jiffy of the kernel begins at a multiple
//! of the tick and has the kernel's number, modulo the wheel's coarsest granule. So the wheel's
//! buckets end at the same times as the kernel's.
//!
//! An hrtimer's expiry is on the clock for which the timer was set up. The distance of that clock
//! from the trace's is measured where timers on it expire, since such a record shows both. A timer
//! whose set-up was not recorded is on CLOCK_MONOTONIC; if that would be decades away, it is on
//! CLOCK_REALTIME.

use super::timers::Timers;
use crate::read::{ClockId, Event, HrtimerMode, Jiffy, JiffyClock, Trace};
use tickless_core::time::Ns;

/// No timer is armed for longer than this, and no machine runs for longer; CLOCK_REALTIME has
/// shown more since 1990.
const DECADES: Ns = Ns::from_secs(20 * 365 * 86_400);

/// Ticks in the wheel's coarsest granule: eight levels of eight.
const GRANULE_MAX_TICKS: i128 = 1 << 24;

#[derive(Debug)]
pub(super) struct Clocks {
    /// The replay's clock less the trace's.
    shift: Ns,
    jiffies: Option<JiffyClock>,
    /// By clock: how far the trace's clock is ahead.
    ahead: [Option<i64>; ClockId::ALL.len()],
}

impl Clocks {
    /// Measures the clocks of a trace. O(n).
    pub(super) fn measure(trace: &Trace, timers: &Timers) -> Clocks {
        let monotonic = trace.monotonic.map_or(0, |offset| offset.ns);
        let jiffies = trace.jiffies.map(with_interrupt);
        let mut clocks =
            Clocks { shift: shift(jiffies), jiffies, ahead: [None; ClockId::ALL.len()] };
        clocks.ahead[ClockId::Monotonic as usize] = Some(monotonic);
        let mut set_up = vec![None; timers.families.len()];
        for (place, record) in trace.records.iter().enumerate() {
            let Some(timer) = timers.of(place) else { continue };
            match record.event {
                Event::HrtimerSetup { clock, mode, .. } => {
                    set_up[timer as usize] = Some(effective(clock, mode));
                }
                Event::HrtimerExpireEntry { now, .. } => {
                    let clock = clocks.clock_of(set_up[timer as usize], now, record.time);
                    if clock != ClockId::Monotonic {
                        clocks.sample(clock, record.time, now);
                    }
                }
                _ => {}
            }
        }
        // These two differ only after a suspend.
        clocks.ahead[ClockId::Boottime as usize].get_or_insert(monotonic);
        clocks
    }

    /// Converts a time of the trace.
    pub(super) fn replay_time(&self, trace_time: Ns) -> Ns {
        trace_time.after(self.shift)
    }

    /// Returns the clock of a timer, which shows `time` when the trace's clock shows `now`.
    pub(super) fn clock_of(&self, set_up: Option<ClockId>, time: Ns, now: Ns) -> ClockId {
        let is_far = || time.since(now) > DECADES;
        set_up.unwrap_or_else(|| if is_far() { ClockId::Realtime } else { ClockId::Monotonic })
    }

    /// Converts a time of `clock`; `None` if the distance of that clock is not known.
    pub(super) fn convert(&self, clock: ClockId, time: Ns) -> Option<Ns> {
        let ahead = self.ahead[clock as usize]?;
        if time == Ns::NEVER {
            return Some(Ns::NEVER);
        }
        Some(self.replay_time(Ns(time.0.saturating_add_signed(ahead))))
    }

    /// Returns when a wheel timer is due that was started at `at`, in jiffy `now`; `None` if
    /// jiffies cannot be converted.
    ///
    /// Its caller meant "not before that many ticks from now": a time in jiffy `expires`.
    pub(super) fn deadline(&self, at: Ns, now: Jiffy, expires: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let ticks = clock.time(expires).since(clock.time(now));
        let begins = self.replay_time(clock.time(expires));
        // Times are cut to microseconds, so none is exactly at the beginning.
        Some(at.after(ticks).clamp(begins.after(Ns(1)), begins.after(clock.tick)))
    }

    /// Returns the earliest deadline that the wheel rounds up to the beginning of this jiffy.
    pub(super) fn bucket(&self, jiffy: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let begins = self.replay_time(clock.time(jiffy));
        Some(Ns(begins.0.saturating_sub(clock.tick.0)).after(Ns(1)))
    }

    /// Keeps the smallest sample: records are printed late, never early.
    fn sample(&mut self, clock: ClockId, trace_time: Ns, now: Ns) {
        let ahead = i128::from(trace_time.0) - i128::from(now.0);
        let Ok(ahead) = i64::try_from(ahead) else { return };
        let known = self.ahead[clock as usize].get_or_insert(ahead);
        *known = ahead.min(*known);
    }
}

/// Returns the clock that the kernel uses for a timer. Setting the clock must not move a relative
/// time, so such a timer is on the monotonic clock.
pub(super) fn effective(clock: ClockId, mode: HrtimerMode) -> ClockId {
    if clock == ClockId::Realtime && mode.is_relative() { ClockId::Monotonic } else { clock }
}

/// Jiffies that were not placed exactly begin where they were first read, which is after the
/// interrupt that advances them. They must not begin too late for what that interrupt expires.
fn with_interrupt(clock: JiffyClock) -> JiffyClock {
    const INTERRUPT_NS: i64 = 100_000;
    let early = if clock.late_max == Ns::ZERO { 0 } else { INTERRUPT_NS };
    JiffyClock { anchor_ns: clock.anchor_ns.saturating_sub(early), ..clock }
}

fn shift(jiffies: Option<JiffyClock>) -> Ns {
    let Some(clock) = jiffies else { return Ns::ZERO };
    let tick = i128::from(clock.tick.0.max(1));
    let anchor = i128::from(clock.anchor.0) * tick;
    Ns((anchor - i128::from(clock.anchor_ns)).rem_euclid(GRANULE_MAX_TICKS * tick) as u64)
}
