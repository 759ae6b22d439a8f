//! Histories: sequences of operations on a set of timers. Random, or written for one check.

use crate::timers::{Cancel, Timers};
use fastrand::Rng;
use serde::Serialize;

/// One operation on a set of timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Op {
    /// Arms a timer, `delay` nanoseconds from the current time or, if negative, in the past.
    Arm { key: u32, delay: i64 },
    /// Moves a pending timer.
    PushOut { key: u32, delay: i64 },
    /// Cancels a timer.
    Cancel { key: u32 },
    /// Moves time, and fires what is due.
    Advance { by: u64 },
    /// Moves time to the next event, as a driver does that sleeps until then.
    Sleep,
    /// The next callback of the timer `key` cancels the timer `other`.
    CancelInCallback { key: u32, other: u32 },
    /// The next callback of the timer `key` arms the timer `other`, which can be `key` itself, at
    /// least a tick ahead of the current time.
    ArmInCallback { key: u32, other: u32, delay: i64 },
}

/// Returns a random history for the timers `T`.
///
/// Delays are drawn near the seams of timer wheels, where a timer gets into another bucket or
/// level: zero, a tick, and powers of 2, 64 and 256 ticks, each plus or minus one.
pub fn random<T: Timers>(rng: &mut Rng) -> Vec<Op> {
    let keys = rng.u32(1..=12);
    let scale = rng.u32(4..=24);
    let length = rng.usize(4..=120);
    let mut ops = Vec::with_capacity(length + 1);
    // One history in four begins just before a power of two ticks, where the tick number of a wheel
    // carries into a higher bit and timers can move between levels.
    if rng.u8(..4) == 0 {
        let far = (1_u64 << rng.u32(8..=24)).saturating_mul(T::GRANULARITY.max(1));
        ops.push(Op::Advance {
            by: (far - far.min(rng.u64(..=3 * T::GRANULARITY))).min(T::HORIZON),
        });
    }
    for _ in 0..length {
        let key = rng.u32(..keys);
        let other = rng.u32(..keys);
        let delay = delay::<T>(rng, scale);
        ops.push(match rng.u8(..20) {
            0..=7 => Op::Arm { key, delay },
            8..=10 => Op::PushOut { key, delay },
            11..=13 if T::CANCEL != Cancel::None => Op::Cancel { key },
            14 if T::REENTRANT && T::CANCEL != Cancel::None => Op::CancelInCallback { key, other },
            15 if T::REENTRANT => Op::ArmInCallback { key, other, delay },
            16..=17 => Op::Sleep,
            _ => Op::Advance { by: delay.unsigned_abs() },
        });
    }
    ops
}

pub(crate) fn one_tick<T: Timers>() -> i64 {
    i64::try_from(T::GRANULARITY.max(1)).unwrap_or(i64::MAX)
}

/// Draws a delay, often near powers of 64 or 256 ticks, where a wheel's levels usually begin.
fn delay<T: Timers>(rng: &mut Rng, scale: u32) -> i64 {
    let tick = one_tick::<T>();
    let horizon = i64::try_from(T::HORIZON).unwrap_or(i64::MAX);
    let ticks = match rng.u8(..8) {
        0 => 0,
        1 => rng.i64(1..=3),
        2 => 1_i64 << rng.u32(..scale),
        3 => 64_i64.saturating_pow(rng.u32(1..=scale / 6 + 1)),
        4 => 256_i64.saturating_pow(rng.u32(1..=scale / 8 + 1)),
        5 => rng.i64(..1 << scale),
        _ => rng.i64(..1 << (scale / 2)),
    };
    let near = ticks.saturating_add(rng.i64(-1..=1));
    let within_a_tick = if rng.u8(..3) == 0 { rng.i64(-tick..=tick) } else { 0 };
    near.saturating_mul(tick).saturating_add(within_a_tick).clamp(-tick, horizon)
}
