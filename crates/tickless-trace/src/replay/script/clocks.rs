//! All times of a trace on one clock.
//!
//! The replay's clock runs with the trace's, shifted so that a jiffy of the kernel begins at a
//! multiple of the tick and has the kernel's number, as far as the wheel's coarsest granule can
//! tell: so the wheel's buckets here end when they did there.
//!
//! An hrtimer's expiry is on the clock that the timer was set up for. How far that clock is from
//! the trace's is measured where timers on it expire, since such a record shows both. Where the
//! set-up was not recorded the timer is on CLOCK_MONOTONIC, unless that would be decades away:
//! then it is on CLOCK_REALTIME.

use super::numbers::Numbers;
use crate::read::{ClockId, Event, HrtimerMode, Jiffy, JiffyClock, Trace};
use tickless_core::time::Ns;

/// Nothing is armed for longer than this, and no machine runs for longer; CLOCK_REALTIME has
/// shown more since 1990.
const DECADES: Ns = Ns::from_secs(20 * 365 * 86_400);

/// Ticks in the wheel's coarsest granule: eight levels of eight.
const GRANULE_MAX_TICKS: i128 = 1 << 24;

#[derive(Debug)]
pub(super) struct Clocks {
    /// What is added to the trace's time.
    shift: Ns,
    jiffies: Option<JiffyClock>,
    /// By clock: how far the trace's clock is ahead.
    ahead: [Option<i64>; CLOCKS],
}

const CLOCKS: usize = 5;

impl Clocks {
    /// Measures the clocks of a trace. O(n).
    pub(super) fn measure(trace: &Trace, numbers: &Numbers) -> Clocks {
        let monotonic = trace.monotonic.map_or(0, |offset| offset.ns);
        let jiffies = trace.jiffies.map(with_interrupt);
        let mut clocks = Clocks { shift: shift(jiffies), jiffies, ahead: [None; CLOCKS] };
        clocks.ahead[place(ClockId::Monotonic)] = Some(monotonic);
        let mut set_up = vec![None; numbers.families.len()];
        for (place, record) in trace.records.iter().enumerate() {
            let Some(timer) = numbers.of(place) else { continue };
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
        // Without a suspend it is the same as the monotonic one.
        clocks.ahead[place(ClockId::Boottime)].get_or_insert(monotonic);
        clocks
    }

    /// A time of the trace on the replay's clock.
    pub(super) fn present(&self, trace_time: Ns) -> Ns {
        trace_time.after(self.shift)
    }

    /// Which clock a timer is on that shows `time` when the trace's shows `now`.
    pub(super) fn clock_of(&self, set_up: Option<ClockId>, time: Ns, now: Ns) -> ClockId {
        let is_far = || time.since(now) > DECADES;
        set_up.unwrap_or_else(|| if is_far() { ClockId::Realtime } else { ClockId::Monotonic })
    }

    /// A time of some clock on the replay's; `None` if where that clock is cannot be told.
    pub(super) fn place(&self, clock: ClockId, time: Ns) -> Option<Ns> {
        let ahead = self.ahead[place(clock)]?;
        if time == Ns::NEVER {
            return Some(Ns::NEVER);
        }
        Some(self.present(Ns(time.0.saturating_add_signed(ahead))))
    }

    /// When a wheel timer is due that was started at `at`, when jiffies were `now`; `None` if
    /// jiffies cannot be told.
    ///
    /// Its caller meant "not before that many ticks from now": some moment in jiffy `expires`.
    pub(super) fn deadline(&self, at: Ns, now: Jiffy, expires: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let ticks = clock.time(expires).since(clock.time(now));
        let begins = self.present(clock.time(expires));
        // Times are cut to microseconds, so that none is really at the very beginning.
        Some(at.after(ticks).clamp(begins.after(Ns(1)), begins.after(clock.tick)))
    }

    /// The earliest deadline that the wheel rounds up to the beginning of this jiffy.
    pub(super) fn bucket(&self, jiffy: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let begins = self.present(clock.time(jiffy));
        Some(Ns(begins.0.saturating_sub(clock.tick.0)).after(Ns(1)))
    }

    /// Of several samples the smallest counts: records are printed late, never early.
    fn sample(&mut self, clock: ClockId, trace_time: Ns, now: Ns) {
        let ahead = i128::from(trace_time.0) - i128::from(now.0);
        let Ok(ahead) = i64::try_from(ahead) else { return };
        let known = self.ahead[place(clock)].get_or_insert(ahead);
        *known = ahead.min(*known);
    }
}

/// The clock that a timer is really on: a time relative to now is not moved by setting the
/// clock, so the kernel puts it on the monotonic one.
pub(super) fn effective(clock: ClockId, mode: HrtimerMode) -> ClockId {
    if clock == ClockId::Realtime && mode.is_relative() { ClockId::Monotonic } else { clock }
}

fn place(clock: ClockId) -> usize {
    match clock {
        ClockId::Monotonic => 0,
        ClockId::Realtime => 1,
        ClockId::Boottime => 2,
        ClockId::Tai => 3,
        ClockId::Other => 4,
    }
}

/// Jiffies that could not be placed exactly begin where they were first read: after the
/// interrupt that advances them, which must not come too early for what it expires.
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
