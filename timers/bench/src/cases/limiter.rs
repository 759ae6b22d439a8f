//! W11: permits are taken from a rate limiter, or refused.
//!
//! A server does this with every request: it admits most, and under attack it refuses most.
//! Measured by one thread, and by two that share the limiter, each on a CPU of its own.

use super::threads::{Lap, at_once};
use super::{Choice, contender};
use crate::affinity;
use crate::effort::Effort;
use crate::report::Table;
use crate::sample::{Contender, Stopwatch, interleave};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

const OURS: &str = "**Limiter**, `try_acquire(1)`";
const OURS_BY_KEY: &str = "**KeyedLimiter**, `try_acquire(&key, 1)`";
const GOVERNOR: &str = "governor, `check()`";
const GOVERNOR_BY_KEY: &str = "governor, `check_key(&key)`";
const LEAKY_BUCKET: &str = "leaky-bucket, `try_acquire(1)`";

const HOUR: Duration = Duration::from_secs(3600);

const KEYS: u64 = 1_000;

/// Takes one permit of the limiter, for a request of this number. Returns whether it was there.
type Check<'a> = Box<dyn Fn(u64) -> bool + Sync + 'a>;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "By key: one of 1,000, in turn. One thread: its CPU time. Two threads: wall time \
                 over all operations of both. Refused: no permit is left. leaky-bucket is unfair \
                 on one thread, where that is faster; two threads lose its permits then.";
    let mut table = Table::new("W11", "a permit of a rate limiter", about);
    let about = "Each sample divided by governor's of the same turn. The target is 1.2.";
    let mut ratios = Table::new("W11", "the same over governor's", about);
    let timers = tickless::Timers::builder().start().expect("timers start");
    let mut kinds = vec![("taken", 1, true), ("refused", 1, false)];
    if affinity::remember() >= 2 {
        kinds.push(("taken by 2 threads", 2, true));
        kinds.push(("refused to 2 threads", 2, false));
    }
    for (title, threads, is_there) in kinds {
        let limiters = limiters(&timers, is_there, threads).into_iter();
        let wanted = limiters.filter(|(name, _)| choice.wants(name));
        let operations = effort.operations;
        let contenders =
            wanted.map(|(name, check)| sampled(name, check, threads, is_there, operations));
        let samples = interleave(contenders.collect(), effort.repetitions);
        table.put_beside(title, &samples, (&mut ratios, title), |name| match name {
            OURS => Some(GOVERNOR),
            OURS_BY_KEY => Some(GOVERNOR_BY_KEY),
            _ => None,
        });
    }
    vec![table, ratios]
}

fn limiters(
    timers: &tickless::Timers,
    is_there: bool,
    threads: usize,
) -> Vec<(&'static str, Check<'static>)> {
    let ours = || timers.limiter(if is_there { 1 << 40 } else { 1 }, HOUR);
    let direct = ours().start().expect("a good limit");
    let keyed = ours().keyed::<u64>().expect("a good limit");
    // One more every nanosecond, or every hour.
    let quota = Quota::with_period(if is_there { Duration::from_nanos(1) } else { HOUR });
    let quota = quota.expect("a good quota");
    let quota = if is_there { quota.allow_burst(NonZeroU32::MAX) } else { quota };
    let governor = RateLimiter::direct(quota);
    let governor_by_key = RateLimiter::keyed(quota);
    // An unfair one is faster, but two threads can lose all of its permits for good.
    let leaky = leaky_bucket::RateLimiter::builder()
        .initial(if is_there { usize::MAX / 4 } else { 0 })
        .max(usize::MAX / 2)
        .interval(HOUR)
        .fair(threads > 1)
        .build();
    let limiters: Vec<(&'static str, Check<'static>)> = vec![
        (OURS, Box::new(move |_| direct.try_acquire(1).is_ok())),
        (GOVERNOR, Box::new(move |_| governor.check().is_ok())),
        (LEAKY_BUCKET, Box::new(move |_| leaky.try_acquire(1))),
        (OURS_BY_KEY, Box::new(move |nth| keyed.try_acquire(&(nth % KEYS), 1).is_ok())),
        (GOVERNOR_BY_KEY, Box::new(move |nth| governor_by_key.check_key(&(nth % KEYS)).is_ok())),
    ];
    if !is_there {
        for (_, check) in &limiters {
            (0..KEYS).for_each(|nth| _ = check(nth));
        }
    }
    limiters
}

fn sampled<'a>(
    name: &'static str,
    check: Check<'a>,
    threads: usize,
    is_there: bool,
    operations: usize,
) -> Contender<'a> {
    let count = operations as u64;
    let work = move |check: &Check<'_>| {
        let taken = (0..count).filter(|&nth| check(nth)).count() as u64;
        assert_eq!(taken, if is_there { count } else { 0 }, "{name}");
    };
    contender(name, move || match threads {
        1 => {
            let watch = Stopwatch::start();
            work(&check);
            watch.ns_per(operations)
        }
        _ => {
            affinity::unpin();
            let one = |lap: &Lap| lap.time(|| work(&check));
            let ns = at_once(&[&one, &one]) / (2 * operations) as f64;
            affinity::pin(0);
            ns
        }
    })
}
