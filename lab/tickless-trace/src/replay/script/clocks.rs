//! Converts all times of a trace to one clock, that of the replay.
//!
//! The replay's clock is the trace's clock, shifted such that the kernel's jiffies begin at
//! multiples of the tick, and that the replay counts the same jiffies as the kernel, modulo the
//! width of the timer wheel's coarsest buckets. So the buckets of both wheels end together.
//!
//! The expiry of a high-resolution timer is on the clock for which the timer was set up. The record
//! of an expiry shows the time on that clock and on the trace's clock, and thereby how far the two
//! clocks are apart. A timer whose set-up was not recorded is assumed to be on CLOCK_MONOTONIC, or
//! on CLOCK_REALTIME if its expiry is decades away from the current CLOCK_MONOTONIC.

use crate::read::{ClockId, Event, HrtimerMode, Jiffy, JiffyClock, Record, Trace};
use tickless_core::time::Ns;

/// Twenty years. No timer is armed for longer than this, and no machine runs for longer, so an
/// expiry that is further away is on CLOCK_REALTIME, which counts from 1970.
const DECADES: Ns = Ns::from_secs(20 * 365 * 86_400);

/// The width of the wheel's coarsest buckets in ticks: 8 to the power of 8.
const GRANULE_MAX_TICKS: i128 = 1 << 24;

#[derive(Debug)]
pub(super) struct Clocks {
    /// How far the replay's clock is ahead of the trace's.
    shift: Ns,
    jiffies: Option<JiffyClock>,
    /// For each clock, how far the trace's clock is ahead of it; `None` if unknown.
    ahead: [Option<i64>; ClockId::COUNT],
    /// For each timer, the clock of its last set-up so far.
    set_up: Vec<Option<ClockId>>,
}

impl Clocks {
    pub(super) fn new(trace: &Trace) -> Clocks {
        let jiffies = trace.jiffies.map(with_interrupt);
        let mut ahead = [None; ClockId::COUNT];
        ahead[ClockId::Monotonic as usize] = Some(trace.monotonic_ahead_ns.unwrap_or(0));
        Clocks { shift: shift(jiffies), jiffies, ahead, set_up: Vec::new() }
    }

    /// Takes the next record of a timer, which perhaps measures how far the trace's clock is ahead
    /// of the timer's.
    pub(super) fn follow(&mut self, record: &Record, timer: u32) {
        let timer = timer as usize;
        match record.event {
            Event::HrtimerSetup { clock, mode, .. } => {
                self.set_up.resize(self.set_up.len().max(timer + 1), None);
                self.set_up[timer] = Some(effective(clock, mode));
            }
            Event::HrtimerExpireEntry { now, .. } => {
                let set_up = self.set_up.get(timer).copied().flatten();
                let clock = self.clock_of(set_up, now, record.time);
                if clock != ClockId::Monotonic {
                    self.sample(clock, record.time, now);
                }
            }
            _ => {}
        }
    }

    pub(super) fn replay_time(&self, trace_time: Ns) -> Ns {
        trace_time.after(self.shift)
    }

    /// Returns the clock that a timer is on: the clock of its set-up, if known. Otherwise, it is
    /// CLOCK_REALTIME if `time`, on the timer's clock, is decades after `now`, on the trace's.
    pub(super) fn clock_of(&self, set_up: Option<ClockId>, time: Ns, now: Ns) -> ClockId {
        let is_far = || time.since(now) > DECADES;
        set_up.unwrap_or_else(|| if is_far() { ClockId::Realtime } else { ClockId::Monotonic })
    }

    /// Converts a time on `clock` to the replay's clock; `None` if it is not known how far `clock`
    /// is from the trace's clock.
    pub(super) fn convert(&self, clock: ClockId, time: Ns) -> Option<Ns> {
        // Without a measurement, take CLOCK_BOOTTIME for CLOCK_MONOTONIC, as before any suspend.
        let of = |clock: ClockId| self.ahead[clock as usize];
        let ahead = of(clock).or_else(|| match clock {
            ClockId::Boottime => of(ClockId::Monotonic),
            _ => None,
        })?;
        if time == Ns::NEVER {
            return Some(Ns::NEVER);
        }
        Some(self.replay_time(Ns(time.0.saturating_add_signed(ahead))))
    }

    /// Returns when a wheel timer is due that was started at `at`, in jiffy `now`; `None` if
    /// jiffies cannot be converted.
    ///
    /// The code that started the timer asked for a deadline at least `expires - now` ticks after
    /// `at`. The result is the time that many ticks after `at`, limited to jiffy `expires`.
    pub(super) fn deadline(&self, at: Ns, now: Jiffy, expires: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let ticks = clock.time(expires).since(clock.time(now));
        let begins = self.replay_time(clock.time(expires));
        // Recorded times are cut to microseconds, so the sum can be too early: move it after
        // `begins`.
        Some(at.after(ticks).clamp(begins.after(Ns(1)), begins.after(clock.tick)))
    }

    /// Returns the earliest deadline that the wheel rounds up to the beginning of this jiffy.
    pub(super) fn bucket(&self, jiffy: Jiffy) -> Option<Ns> {
        let clock = self.jiffies?;
        let begins = self.replay_time(clock.time(jiffy));
        Some(Ns(begins.0.saturating_sub(clock.tick.0)).after(Ns(1)))
    }

    /// Adds a measurement of how far the trace's clock is ahead of `clock`. Keeps the smallest: the
    /// record gets its time after `now` was read, so every measurement is a bit too large.
    fn sample(&mut self, clock: ClockId, trace_time: Ns, now: Ns) {
        let ahead = i128::from(trace_time.0) - i128::from(now.0);
        let Ok(ahead) = i64::try_from(ahead) else { return };
        let known = self.ahead[clock as usize].get_or_insert(ahead);
        *known = ahead.min(*known);
    }
}

/// Returns the clock that the kernel uses for a timer with this set-up. Setting CLOCK_REALTIME must
/// not change a duration, so a relative timer is on CLOCK_MONOTONIC instead.
pub(super) fn effective(clock: ClockId, mode: HrtimerMode) -> ClockId {
    if clock == ClockId::Realtime && mode.is_relative() { ClockId::Monotonic } else { clock }
}

/// Moves the beginnings of jiffies a little back if they are not known exactly. In that case they
/// are the times of events that followed the timer interrupt in which jiffies advanced. Without the
/// move, timers would not be due yet in the interrupt that expires them.
fn with_interrupt(clock: JiffyClock) -> JiffyClock {
    const INTERRUPT_NS: i64 = 100_000;
    let early = if clock.late_max == Ns::ZERO { 0 } else { INTERRUPT_NS };
    JiffyClock { anchor_ns: clock.anchor_ns.saturating_sub(early), ..clock }
}

/// Returns by how much the replay's clock is ahead of the trace's.
fn shift(jiffies: Option<JiffyClock>) -> Ns {
    let Some(clock) = jiffies else { return Ns::ZERO };
    let tick = i128::from(clock.tick.0.max(1));
    let anchor = i128::from(clock.anchor.0) * tick;
    Ns((anchor - i128::from(clock.anchor_ns)).rem_euclid(GRANULE_MAX_TICKS * tick) as u64)
}
