//! The named checks, each of a situation that has broken timer implementations before.

use crate::history::{Op, one_tick, random};
use crate::timers::{Cancel, Timers};
use fastrand::Rng;

const YEAR: i64 = 365 * 24 * 3_600 * 1_000_000_000;

/// A check: its name, and its histories (sequences of operations).
pub(crate) type Check = (&'static str, fn() -> Vec<Vec<Op>>);

/// All checks that play histories, except the random ones. A check has no histories if the timers
/// do not promise what it needs.
pub(crate) fn checks<T: Timers>() -> Vec<Check> {
    let not_offered: fn() -> Vec<Vec<Op>> = Vec::new;
    let cancels = |histories| if T::CANCEL == Cancel::None { not_offered } else { histories };
    let reenters = |histories| if T::REENTRANT { histories } else { not_offered };
    vec![
        ("a deadline at the edge of a bucket", edges::<T>),
        ("cascades in small and large steps", cascades::<T>),
        ("time wraps around at powers of two", wraps::<T>),
        ("far deadlines", cancels(far::<T>)),
        ("a deadline in the past", past::<T>),
        ("an earlier deadline behind a later one", earlier::<T>),
        ("pushed out and pulled in", pushed::<T>),
        ("cancelled, then the next event", cancels(after_cancels::<T>)),
        ("cancel inside a callback", cancels(reenters(cancels_inside::<T>))),
        ("arm inside a callback", reenters(arms_inside::<T>)),
        ("the same key armed twice", if T::ARM_REPLACES { twice::<T> } else { not_offered }),
        ("time that stands still", standstill::<T>),
        ("time that jumps by years", jumps::<T>),
    ]
}

pub(crate) fn random_histories<T: Timers>(
    seed: u64,
    count: usize,
) -> impl Iterator<Item = Vec<Op>> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(move |_| random::<T>(&mut rng))
}

fn arm(key: u32, delay: i64) -> Op {
    Op::Arm { key, delay }
}

fn advance(by: i64) -> Op {
    Op::Advance { by: by.unsigned_abs() }
}

/// Returns delays in nanoseconds near the seams of timer wheels, where a timer gets into another
/// bucket or level: powers of two ticks, and one tick more or less; at most [`Timers::HORIZON`].
fn seams<T: Timers>() -> impl Iterator<Item = i64> {
    let tick = one_tick::<T>();
    let horizon = i64::try_from(T::HORIZON).unwrap_or(i64::MAX);
    (0..62)
        .map(|bits| 1_i64 << bits)
        .flat_map(|ticks| [ticks - 1, ticks, ticks + 1])
        .filter_map(move |ticks| ticks.checked_mul(tick))
        .take_while(move |&delay| delay <= horizon)
        // Do not use longer delays here: some wheels visit every tick up to the deadline, which
        // takes long. The check `far` uses a few longer ones.
        .take_while(move |&delay| delay / tick <= 1 << 20)
}

/// Timers at and beside each seam (edge of a wheel's buckets), and pairs around a seam.
fn edges<T: Timers>() -> Vec<Vec<Op>> {
    let exactly = |delay: i64| vec![arm(1, delay), advance(delay - 1), advance(1), Op::Sleep];
    let later = |delay: i64| vec![advance(one_tick::<T>()), arm(1, delay), Op::Sleep];
    let all = seams::<T>().collect::<Vec<_>>();
    let two = |pair: &[i64]| vec![arm(1, pair[1]), arm(2, pair[0]), Op::Sleep, Op::Sleep];
    let each = all.iter().flat_map(|&delay| [exactly(delay.max(1)), later(delay)]);
    each.chain(all.windows(2).map(two)).collect()
}

/// Timers at all seams (edges of a wheel's buckets), while time advances in different steps.
fn cascades<T: Timers>() -> Vec<Vec<Op>> {
    let all: Vec<i64> = seams::<T>().collect();
    let timers = || all.iter().zip(0..).map(|(&delay, key)| arm(key, delay));
    let steps = |by: i64, count: usize| timers().chain(vec![advance(by); count]).collect();
    let sleeps = timers().chain(vec![Op::Sleep; all.len()]).collect();
    let tick = one_tick::<T>();
    vec![steps(tick, 600), steps(63 * tick, 300), steps(1_000 * tick, 1_100), sleeps]
}

/// Timers that are armed just before the time reaches a seam (the edge of a wheel's buckets).
fn wraps<T: Timers>() -> Vec<Vec<Op>> {
    let near = |time: i64| {
        let tick = one_tick::<T>();
        let before = [(1, tick), (2, 3 * tick), (3, 300 * tick)].map(|(key, at)| arm(key, at));
        let after = [Op::Sleep, arm(4, tick), Op::Sleep, Op::Sleep, Op::Sleep];
        [advance(time - 2 * tick)].into_iter().chain(before).chain(after).collect()
    };
    seams::<T>().filter(|&time| time >= 2 * one_tick::<T>()).map(near).collect()
}

/// A timer that is far away, beside one that is due soon.
fn far<T: Timers>() -> Vec<Vec<Op>> {
    let horizon = i64::try_from(T::HORIZON).unwrap_or(i64::MAX);
    let tick = one_tick::<T>();
    let days = [1, 10, 24, 49, 50, 365, 3_650].map(|days| days * (YEAR / 365));
    let delays =
        days.into_iter().chain([horizon / 2, horizon - tick]).filter(|&far| far <= horizon);
    // A timer that is due soon must fire although a far timer is pending. The far timer must not
    // fire before it is cancelled.
    delays
        .map(|delay| {
            let near = arm(2, 5 * tick);
            vec![arm(1, delay), near, Op::Sleep, advance(1_000 * tick), Op::Cancel { key: 1 }]
        })
        .collect()
}

/// Timers whose deadline is now or has passed.
fn past<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    [0, -1, -tick, -100 * tick, -1_000_000 * tick]
        .into_iter()
        .map(|delay| {
            vec![advance(1_000_000 * tick), arm(1, delay), arm(2, 2 * tick), Op::Sleep, Op::Sleep]
        })
        .collect()
}

/// Timers with earlier deadlines than those that were armed before them.
fn earlier<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let behind =
        |late: i64| vec![arm(1, late), arm(2, late / 2), arm(3, 2 * tick), Op::Sleep, Op::Sleep];
    // The timer with the later deadline is put into a slot of a wheel. Then time moves, and a timer
    // with an earlier deadline is put into a slot before that one.
    let moved = |late: i64| {
        let before = [arm(1, late), advance(late / 3), arm(2, late / 3), Op::Sleep];
        before.into_iter().chain([arm(3, tick), Op::Sleep, Op::Sleep]).collect()
    };
    let lates = || seams::<T>().filter(|&late| late > 4 * one_tick::<T>());
    lates().map(behind).chain(lates().map(moved)).collect()
}

/// Timers that are pushed out (moved to a new deadline), one of them again and again.
fn pushed<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let out = |key, delay| Op::PushOut { key, delay };
    let often = (1..200).flat_map(|_| [out(1, 100 * tick), advance(tick)]);
    seams::<T>()
        .map(|far| {
            vec![arm(1, far), arm(2, 3 * tick), out(2, far), out(1, tick), Op::Sleep, Op::Sleep]
        })
        .chain([[arm(1, 100 * tick)].into_iter().chain(often).chain([Op::Sleep]).collect()])
        .collect()
}

/// Timers beside others that were cancelled, which leave empty slots.
fn after_cancels<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let some = |far: i64| {
        let [one, three] = [1, 3].map(|key| Op::Cancel { key });
        vec![arm(1, tick), arm(2, far), one, Op::Sleep, arm(3, far), three]
    };
    let all = (0..100).map(|key| arm(key, i64::from(key) * 7 * tick));
    let none = all.chain((0..100).rev().map(|key| Op::Cancel { key })).collect();
    seams::<T>().map(some).chain([none]).collect()
}

fn cancels_inside<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let history = |key, other, gap: i64| {
        let arms = (1..=3).map(|key| arm(key, 2 * tick + i64::from(key - 1) * gap));
        arms.chain([Op::CancelInCallback { key, other }, advance(100 * tick)]).collect()
    };
    // A callback cancels its own timer, or one that is due in the same tick, in the next one, or
    // much later: `gap` is the time between two deadlines.
    [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3)]
        .into_iter()
        .flat_map(|(key, other)| [0, tick, 70 * tick].map(|gap| history(key, other, gap)))
        .collect()
}

/// A callback arms its own timer or another one.
fn arms_inside<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let history = |other, delay: i64, by: i64| {
        let inside = Op::ArmInCallback { key: 1, other, delay };
        vec![arm(1, tick), arm(2, 3 * tick), inside, advance(by), Op::Sleep, Op::Sleep]
    };
    [1, 3]
        .into_iter()
        .flat_map(|other| [tick, 2 * tick, 64 * tick, 5_000 * tick].map(|delay| (other, delay)))
        .flat_map(|(other, delay)| [tick, 1_000 * tick].map(|by| history(other, delay, by)))
        .collect()
}

/// A pending timer is armed again, for later, earlier or the same time.
fn twice<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    [(5, 9), (9, 5), (5, 5), (5, 1_000), (1_000, 5)]
        .map(|(first, then)| {
            vec![arm(1, first * tick), arm(1, then * tick), Op::Sleep, advance(2_000 * tick)]
        })
        .to_vec()
}

/// While the time does not change, no timer is allowed to fire.
fn standstill<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let still = vec![advance(0); 5];
    let history = |delay: i64| {
        let arms = vec![arm(1, delay), arm(2, delay + tick)];
        [&arms, &still, &vec![Op::Sleep], &still, &vec![Op::Sleep]]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    };
    seams::<T>().map(history).collect()
}

/// The time jumps far ahead.
fn jumps<T: Timers>() -> Vec<Vec<Op>> {
    let tick = one_tick::<T>();
    let horizon = i64::try_from(T::HORIZON).unwrap_or(i64::MAX);
    [YEAR / 365, YEAR, 10 * YEAR]
        .into_iter()
        .filter(|&jump| jump < horizon)
        .map(|jump| {
            vec![arm(1, 3 * tick), arm(2, jump / 2), advance(jump), arm(3, 3 * tick), Op::Sleep]
        })
        .collect()
}
