//! Where the kernel's jiffies lie in time.
//!
//! Wheel timers are printed in jiffies, and no trace says what those are. Method:
//!
//! 1. HZ. The header's `HZ=` if there is one. Else each usual rate is tried on the pairs
//!    (time, jiffies) that `timer_start` and `timer_expire_entry` print: with the right one
//!    `time - jiffies * tick` hardly varies, with a wrong one it drifts by 17% of the trace's
//!    length or more. Too short a trace leaves the distance between two expirations of the
//!    tick.
//! 2. The place. Jiffies are read after they were advanced, never before, and an idle
//!    machine advances them late: so the smallest `time - jiffies * tick` belongs to the
//!    freshest reading, and jiffy J began at most one tick earlier.
//! 3. The very moment. Jiffies advance with the tick, so they begin on the lattice of the
//!    tick's own expiries: the place is moved down to the lattice. Then it is exact to the
//!    resolution of the trace, and otherwise to one tick; [`JiffyClock::late_max`] says.

use std::collections::HashMap;

use tickless_core::time::Ns;

use super::event::{Event, EventKind, Jiffy, TimerAddr};
use super::monotonic::{MonotonicOffset, tick_callbacks};
use super::names::Names;
use super::{Record, Records};

/// The rates a distribution's kernel has.
const USUAL_HZ: [u32; 4] = [100, 250, 300, 1000];

/// Ftrace cuts times to microseconds: a time may be printed this much too early.
const PRINTED_EARLY_NS: i64 = 1_000;

/// The kernel's tick rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hz {
    /// Ticks per second.
    pub value: u32,
    /// How it was found.
    pub source: HzSource,
}

/// How the tick rate was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HzSource {
    /// The trace says so.
    Header,
    /// From the jiffies that wheel events print.
    WheelEvents,
    /// From the distance between two expirations of the tick.
    TickPeriod,
}

impl Hz {
    /// The length of a tick, as the kernel rounds it.
    pub fn tick(&self) -> Ns {
        Ns((1_000_000_000 + u64::from(self.value) / 2) / u64::from(self.value.max(1)))
    }
}

/// Turns jiffies into times on the trace's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JiffyClock {
    /// A jiffy of the trace.
    pub anchor: Jiffy,
    /// When it began; before the trace clock's zero if negative.
    pub anchor_ns: i64,
    /// How long each lasts.
    pub tick: Ns,
    /// How much too late [`JiffyClock::time`] may be: zero, or one tick without tick events.
    pub late_max: Ns,
    /// How many bits jiffies have on that machine.
    pub width: JiffyWidth,
}

/// How many bits jiffies have: as many as the machine's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JiffyWidth {
    /// They wrap, the first time five minutes after boot.
    Bits32,
    /// They never wrap.
    Bits64,
}

impl JiffyWidth {
    /// Only a 64-bit machine prints larger jiffies. One that prints none reads alike either way,
    /// as long as no two are 2^31 ticks apart.
    fn of(records: &Records) -> JiffyWidth {
        const NARROW_MAX: u64 = u32::MAX as u64;
        let is_wide = |record: Record| match record.event {
            Event::TimerStart { expires, .. } => expires.0 > NARROW_MAX,
            Event::TimerExpireEntry { now, .. } => now.0 > NARROW_MAX,
            _ => false,
        };
        if readings(records).any(is_wide) { JiffyWidth::Bits64 } else { JiffyWidth::Bits32 }
    }

    /// Ticks from one jiffy to another, negative if the other is earlier.
    fn distance(self, from: Jiffy, to: Jiffy) -> i64 {
        let ticks = to.0.wrapping_sub(from.0);
        match self {
            JiffyWidth::Bits32 => i64::from(ticks as u32 as i32),
            JiffyWidth::Bits64 => ticks as i64,
        }
    }

    /// The jiffy `ticks` after another.
    fn after(self, from: Jiffy, ticks: i64) -> Jiffy {
        let jiffy = from.0.wrapping_add_signed(ticks);
        Jiffy(match self {
            JiffyWidth::Bits32 => jiffy & u64::from(u32::MAX),
            JiffyWidth::Bits64 => jiffy,
        })
    }
}

impl JiffyClock {
    /// When jiffy `jiffy` begins: the moment a timer expiring then is due. Saturates at
    /// both ends.
    pub fn time(&self, jiffy: Jiffy) -> Ns {
        let ticks = i128::from(self.width.distance(self.anchor, jiffy));
        let ns = i128::from(self.anchor_ns) + ticks * i128::from(self.tick.0);
        Ns(ns.clamp(0, u64::MAX.into()) as u64)
    }

    /// Which jiffy `time` is in. Exact if the tick was not stopped for longer than that.
    pub fn jiffy(&self, time: Ns) -> Jiffy {
        let ns = i128::from(time.0) - i128::from(self.anchor_ns);
        let ticks = ns.div_euclid(i128::from(self.tick.0.max(1))) as i64;
        self.width.after(self.anchor, ticks)
    }
}

/// Finds the tick rate and the place of jiffies. O(n log n).
pub(super) fn measure(
    records: &Records,
    names: &Names,
    header_hz: Option<u32>,
    monotonic: Option<MonotonicOffset>,
) -> (Option<Hz>, Option<JiffyClock>) {
    let width = JiffyWidth::of(records);
    let readings = Readings::collect(records, width);
    let ticks = tick_expiries(records, names);
    let of_events = readings.as_ref().and_then(Readings::hz);
    let of_header = header_hz.map(|value| Hz { value, source: HzSource::Header });
    // The header is right unless the events say that it cannot be, and what it is instead.
    let is_wrong = |hz: &Hz| {
        let agrees = readings.as_ref().is_some_and(|readings| readings.agree_with(hz.value));
        of_events.is_some() && !agrees
    };
    let hz = of_header
        .filter(|hz| !is_wrong(hz))
        .or(of_events)
        .or_else(|| hz_of_ticks(&ticks))
        .or(of_header);
    let clock = hz.zip(readings).and_then(|(hz, readings)| {
        let latest = readings.freshest(hz.tick())?;
        let exact = monotonic.and_then(|offset| on_lattice(latest, &ticks, hz.tick(), offset));
        Some(JiffyClock {
            anchor: readings.first,
            anchor_ns: exact.unwrap_or(latest),
            tick: hz.tick(),
            late_max: if exact.is_some() { Ns::ZERO } else { hz.tick() },
            width,
        })
    });
    (hz, clock)
}

/// The events that print jiffies.
fn readings(records: &Records) -> impl Iterator<Item = Record> {
    records.of_kinds(&[EventKind::TimerStart, EventKind::TimerExpireEntry])
}

/// Every reading of jiffies in the trace: when, and how far from the first one.
struct Readings {
    first: Jiffy,
    readings: Vec<(i64, i64)>,
}

impl Readings {
    /// A shorter trace does not tell 250 Hz from 300 Hz.
    const SPAN_NS_MIN: i64 = 250_000_000;

    fn collect(records: &Records, width: JiffyWidth) -> Option<Readings> {
        let mut first = None;
        let mut readings = Vec::new();
        for record in self::readings(records) {
            if let Event::TimerStart { now, .. } | Event::TimerExpireEntry { now, .. } =
                record.event
            {
                let first = *first.get_or_insert(now);
                let time = i64::try_from(record.time.0).unwrap_or(i64::MAX);
                readings.push((time, width.distance(first, now)));
            }
        }
        first.map(|first| Readings { first, readings })
    }

    /// When the first jiffy would have begun, by each reading, in order.
    fn beginnings(&self, tick: Ns) -> Vec<i64> {
        let tick = i64::try_from(tick.0).unwrap_or(i64::MAX);
        let begin = |&(time, ticks): &(i64, i64)| time.saturating_sub(ticks.saturating_mul(tick));
        let mut beginnings: Vec<i64> = self.readings.iter().map(begin).collect();
        beginnings.sort_unstable();
        beginnings
    }

    /// The usual rate with which the readings agree best, if they do at all.
    fn hz(&self) -> Option<Hz> {
        let (first, last) = (self.readings.first()?.0, self.readings.last()?.0);
        if last.saturating_sub(first) < Self::SPAN_NS_MIN {
            return None;
        }
        let spread = |&value: &u32| {
            let (spread, tick) = self.spread(value);
            (spread, value, tick)
        };
        let (spread, value, tick) = USUAL_HZ.iter().map(spread).min()?;
        let agree = spread <= 2 * tick.0 as i64 && self.readings.len() >= 4;
        agree.then_some(Hz { value, source: HzSource::WheelEvents })
    }

    /// How far half of all readings are apart that should begin at one moment, with this rate.
    fn spread(&self, value: u32) -> (i64, Ns) {
        let tick = Hz { value, source: HzSource::WheelEvents }.tick();
        let sorted = self.beginnings(tick);
        let quarter = sorted.len() / 4;
        let Some(last) = sorted.len().checked_sub(1 + quarter) else { return (0, tick) };
        (sorted[last].saturating_sub(sorted[quarter]), tick)
    }

    /// Whether jiffies can have advanced at this rate.
    fn agree_with(&self, value: u32) -> bool {
        let (spread, tick) = self.spread(value);
        spread <= 2 * tick.0 as i64
    }

    /// The smallest beginning that is not alone: a damaged number must not place all others.
    fn freshest(&self, tick: Ns) -> Option<i64> {
        let sorted = self.beginnings(tick);
        let company = if sorted.len() < 4 { 0 } else { (sorted.len() / 50).max(1) };
        let tick = i64::try_from(tick.0).unwrap_or(i64::MAX);
        let has_company = |at: &usize| {
            sorted.get(at + company).is_some_and(|far| far.saturating_sub(sorted[*at]) <= tick)
        };
        let place = (0..sorted.len()).find(has_company).unwrap_or(0);
        sorted.get(place).copied()
    }
}

/// The expiries the tick was armed for, per tick timer: one per CPU.
fn tick_expiries(records: &Records, names: &Names) -> HashMap<TimerAddr, Vec<u64>> {
    let callbacks = tick_callbacks(names);
    let mut expiries: HashMap<TimerAddr, Vec<u64>> = HashMap::new();
    for record in records.of_kinds(&[EventKind::HrtimerStart]) {
        if let Event::HrtimerStart { timer, expires, function, .. } = record.event
            && callbacks.contains(&Some(function))
        {
            expiries.entry(timer).or_default().push(expires.0);
        }
    }
    expiries
}

/// The rate whose tick is the shortest distance between two expiries of one tick timer.
fn hz_of_ticks(ticks: &HashMap<TimerAddr, Vec<u64>>) -> Option<Hz> {
    let steps = ticks.values().flat_map(|expiries| expiries.windows(2));
    let shortest = steps.map(|pair| pair[1].saturating_sub(pair[0])).filter(|&ns| ns > 0).min()?;
    let rates = USUAL_HZ.iter().map(|&value| Hz { value, source: HzSource::TickPeriod });
    // A step is as long as the tick to the nanosecond; 0.1% allows for other roundings.
    rates.into_iter().find(|hz| hz.tick().0.abs_diff(shortest) <= shortest / 1_000)
}

/// The last moment of the tick's lattice that is not after `latest`, on the trace's clock.
fn on_lattice(
    latest: i64,
    ticks: &HashMap<TimerAddr, Vec<u64>>,
    tick: Ns,
    monotonic: MonotonicOffset,
) -> Option<i64> {
    let mut phases: Vec<u64> = ticks.values().flatten().map(|expiry| expiry % tick.0).collect();
    phases.sort_unstable();
    let phase = phases.chunk_by(|one, other| one == other).max_by_key(|run| run.len())?[0];
    let phase = (phase as i64).saturating_add(monotonic.ns);
    let tick = i64::try_from(tick.0).ok()?;
    let latest = latest.saturating_add(PRINTED_EARLY_NS);
    Some(latest.saturating_sub(latest.saturating_sub(phase).rem_euclid(tick)))
}
