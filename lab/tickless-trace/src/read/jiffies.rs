//! Finds the time at which each of the kernel's jiffies (ticks) begins.
//!
//! Wheel timers are printed in jiffies, and no trace states the time of a jiffy. Method:
//!
//! 1. HZ. The header's `HZ=`, unless the events contradict it. Without it, each common rate is
//!    tried on the pairs (time, jiffies) that `timer_start` and `timer_expire_entry` print: with
//!    the right rate `time - jiffies * tick` hardly varies, with a wrong one it drifts by 17% of
//!    the trace's length or more. If the trace is too short for that, the rate is that of the
//!    shortest distance between two expiries of the tick.
//! 2. The tick. The kernel advances jiffies before anything reads them, and an idle machine
//!    advances them late. So `time - jiffies * tick` is never too small, and its smallest value is
//!    the best estimate: jiffies really begin at most one tick earlier.
//! 3. The exact time. Jiffies advance with the tick, so they begin when the tick expires: the
//!    result of step 2 is moved back to the last expiry of the tick. That is exact to the
//!    resolution of the trace. Without events of the tick, the result is exact to one tick; see
//!    [`JiffyClock::late_max`].

use rustc_hash::FxHashMap;
use tickless_core::time::Ns;

use super::Record;
use super::event::{Event, Jiffy, TimerAddr};
use super::monotonic::READINGS_MAX;
use super::names::NameId;

/// The rates that distributions choose.
const COMMON_HZ: [u32; 4] = [100, 250, 300, 1000];

/// Ftrace cuts times to microseconds, so a time can be printed this much too early.
const PRINTED_EARLY_NS: i64 = 1_000;

/// Returns the length of a tick.
pub(crate) fn tick(hz: u32) -> Ns {
    Ns((1_000_000_000 + u64::from(hz) / 2) / u64::from(hz.max(1)))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JiffyClock {
    pub anchor: Jiffy,
    /// When jiffy `anchor` began, in ns; negative if that was before the trace clock's zero.
    pub anchor_ns: i64,
    pub tick: Ns,
    /// How much too late [`JiffyClock::time`] can be: zero, or a tick if no tick was recorded.
    pub late_max: Ns,
}

/// Returns the number of ticks from one jiffy to another; negative if the other is earlier. Jiffies
/// of 32 bits wrap, the first time five minutes after boot. If both numbers fit into 32 bits, they
/// are assumed to be jiffies of 32 bits. This is also right on a 64-bit machine if they are less
/// than 2^31 ticks apart.
fn ticks_between(from: Jiffy, to: Jiffy) -> i64 {
    let ticks = to.0.wrapping_sub(from.0);
    match from.0.max(to.0) <= u64::from(u32::MAX) {
        true => i64::from(ticks as u32 as i32),
        false => ticks as i64,
    }
}

impl JiffyClock {
    /// Returns when a jiffy begins. A timer that expires in this jiffy is due then. The result is
    /// limited to what [`Ns`] can hold.
    pub fn time(&self, jiffy: Jiffy) -> Ns {
        let ticks = i128::from(ticks_between(self.anchor, jiffy));
        let ns = i128::from(self.anchor_ns) + ticks * i128::from(self.tick.0);
        Ns(ns.clamp(0, u64::MAX.into()) as u64)
    }
}

/// What the events show of jiffies and of the tick.
#[derive(Default)]
pub(super) struct Readings {
    first: Option<Jiffy>,
    /// The times at which events first show that jiffies have changed: (time, ticks since `first`).
    /// Others of the same jiffy are later, and many of one would outweigh the rest.
    readings: Vec<(i64, i64)>,
    /// For each CPU's tick timer, the first expiries for which it was armed.
    ticks: FxHashMap<TimerAddr, Vec<u64>>,
}

impl Readings {
    /// A trace that is shorter than this does not distinguish 250 Hz from 300 Hz.
    const SPAN_NS_MIN: i64 = 250_000_000;

    pub(super) fn see(&mut self, record: &Record, tick_functions: [Option<NameId>; 2]) {
        const TICKS_MAX: usize = 1 << 14;
        match record.event {
            Event::TimerStart { now, .. } | Event::TimerExpireEntry { now, .. }
                if self.readings.len() < READINGS_MAX =>
            {
                let first = *self.first.get_or_insert(now);
                let time = i64::try_from(record.time.0).unwrap_or(i64::MAX);
                let ticks = ticks_between(first, now);
                if self.readings.last().is_none_or(|last| last.1 != ticks) {
                    self.readings.push((time, ticks));
                }
            }
            Event::HrtimerStart { timer, expires, function, .. }
                if tick_functions.contains(&Some(function)) =>
            {
                let of_timer = self.ticks.entry(timer).or_default();
                of_timer.extend(Some(expires.0).filter(|_| of_timer.len() < TICKS_MAX));
            }
            _ => {}
        }
    }

    /// Finds the tick rate, and at which time each jiffy began. O(n log n).
    pub(super) fn measure(
        &self,
        header_hz: Option<u32>,
        monotonic_ahead_ns: Option<i64>,
    ) -> (Option<u32>, Option<JiffyClock>) {
        let of_events = self.hz();
        // The header's HZ is wrong if the events contradict it and show another rate.
        let is_wrong = |hz: &u32| of_events.is_some() && !self.agree_with(*hz);
        let hz = header_hz
            .filter(|hz| !is_wrong(hz))
            .or(of_events)
            .or_else(|| hz_of_ticks(&self.ticks))
            .or(header_hz);
        let clock = hz.map(tick).zip(self.first).and_then(|(tick, anchor)| {
            let latest = self.earliest(tick)?;
            let exact =
                monotonic_ahead_ns.and_then(|ahead| at_tick(latest, &self.ticks, tick, ahead));
            Some(JiffyClock {
                anchor,
                anchor_ns: exact.unwrap_or(latest),
                tick,
                late_max: if exact.is_some() { Ns::ZERO } else { tick },
            })
        });
        (hz, clock)
    }

    /// Returns when jiffy `first` began according to each reading, for ticks of this length.
    fn beginnings(&self, tick: Ns) -> Vec<i64> {
        let tick = i64::try_from(tick.0).unwrap_or(i64::MAX);
        let begin = |&(time, ticks): &(i64, i64)| time.saturating_sub(ticks.saturating_mul(tick));
        self.readings.iter().map(begin).collect()
    }

    /// Returns the common rate with which the readings agree best, if they agree with any.
    fn hz(&self) -> Option<u32> {
        let (first, last) = (self.readings.first()?.0, self.readings.last()?.0);
        let quarter = self.readings.len() / 4;
        let middle = [quarter, self.readings.len() - 1 - quarter].map(|at| self.readings[at].0);
        if last.saturating_sub(first) < Self::SPAN_NS_MIN
            || middle[1].saturating_sub(middle[0]) < Self::SPAN_NS_MIN / 4
        {
            return None;
        }
        let best = COMMON_HZ.into_iter().min_by_key(|&hz| (self.spread(tick(hz)), hz))?;
        (self.agree_with(best) && self.readings.len() >= 4).then_some(best)
    }

    /// Returns how much [`Readings::beginnings`] vary with this tick (their interquartile range).
    /// With the right tick they hardly vary.
    fn spread(&self, tick: Ns) -> i64 {
        let mut all = self.beginnings(tick);
        let quarter = all.len() / 4;
        let Some(last) = all.len().checked_sub(1 + quarter) else { return 0 };
        let last = *all.select_nth_unstable(last).1;
        last.saturating_sub(*all.select_nth_unstable(quarter).1)
    }

    /// Returns whether jiffies can have advanced at this rate.
    fn agree_with(&self, hz: u32) -> bool {
        self.spread(tick(hz)) <= 2 * tick(hz).0 as i64
    }

    /// Returns the smallest of [`Readings::beginnings`] that has others near it. A beginning far
    /// from all others comes perhaps from a damaged number, and must not move all jiffies.
    fn earliest(&self, tick: Ns) -> Option<i64> {
        let mut sorted = self.beginnings(tick);
        sorted.sort_unstable();
        let company = if sorted.len() < 4 { 0 } else { (sorted.len() / 50).max(1) };
        let tick = i64::try_from(tick.0).unwrap_or(i64::MAX);
        let has_company = |at: &usize| {
            sorted.get(at + company).is_some_and(|far| far.saturating_sub(sorted[*at]) <= tick)
        };
        let place = (0..sorted.len()).find(has_company).unwrap_or(0);
        sorted.get(place).copied()
    }
}

/// Returns the rate whose tick is the shortest distance between two expiries of a tick timer.
fn hz_of_ticks(ticks: &FxHashMap<TimerAddr, Vec<u64>>) -> Option<u32> {
    let steps = ticks.values().flat_map(|expiries| expiries.windows(2));
    let shortest = steps.map(|pair| pair[1].saturating_sub(pair[0])).filter(|&ns| ns > 0).min()?;
    // The distance equals the tick to the nanosecond; 0.1% allows for kernels that round otherwise.
    COMMON_HZ.into_iter().find(|&hz| tick(hz).0.abs_diff(shortest) <= shortest / 1_000)
}

/// Returns the last time not after `latest` at which the tick expired, on the trace's clock.
/// Expiries repeat with the tick, at the offset (phase) that most recorded ones have.
fn at_tick(
    latest: i64,
    ticks: &FxHashMap<TimerAddr, Vec<u64>>,
    tick: Ns,
    monotonic_ahead_ns: i64,
) -> Option<i64> {
    let mut phases: Vec<u64> = ticks.values().flatten().map(|expiry| expiry % tick.0).collect();
    phases.sort_unstable();
    let phase = phases.chunk_by(|one, other| one == other).max_by_key(|run| run.len())?[0];
    let phase = (phase as i64).saturating_add(monotonic_ahead_ns);
    let tick = i64::try_from(tick.0).ok()?;
    let latest = latest.saturating_add(PRINTED_EARLY_NS);
    Some(latest.saturating_sub(latest.saturating_sub(phase).rem_euclid(tick)))
}
