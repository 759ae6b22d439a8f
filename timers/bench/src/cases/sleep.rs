//! W7: a future that sleeps is made, polled once, and dropped; and a timeout with a callback is
//! made, used, and dropped.
//!
//! This is the usual cost of a timeout around a request: the answer comes before the deadline. By
//! one thread and by two at once, each on a CPU of its own; wall time over
//! all operations of both.

use super::threads::{Lap, Work, at_once};
use super::{Choice, contender};
use crate::affinity;
use crate::effort::Effort;
use crate::peers::executors::poll_once;
use crate::peers::tokio_sleep::{multi_thread, on_workers};
use crate::random::Random;
use crate::report::Table;
use crate::sample::{Contender, Figure, interleave, of_tokio};
use std::pin::pin;
use std::time::Duration;
use tickless::callback::{Cancel, Started};

const TOKIO: &str = of_tokio!("tokio `sleep`, a task on each worker");

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Sleeps are polled once. Deadlines 10 to 20 minutes away, at random.";
    let mut table = Table::new("W7", "a timer is made, used and dropped", about);
    let after = Random::new().many(effort.operations, 600, 1200);
    let timers = tickless::Timers::builder().start().expect("timers start");
    let mut over_tokio = Table::new(
        "W7",
        "the same over tokio's",
        "Each sample divided by tokio's of the same turn. The target is 0.5 for a sleep, and 0.35 \
         for a timeout on two threads.",
    );
    let mut over_one = Table::new(
        "W7",
        "the same, two threads over one",
        "Each sample of two threads divided by that of one thread in the same turn, both per \
         operation. Perfect scaling gives 0.5.",
    );
    let most = affinity::remember().min(2);
    let all = (1..=most).flat_map(|threads| contenders(threads, &after, &timers));
    let wanted: Vec<_> = all.filter(|(name, _)| choice.wants(name)).collect();
    let rows = wanted.len() / most;
    let samples = interleave(wanted, effort.repetitions);
    for (threads, of_these) in (1..).zip(samples.chunks(rows.max(1))) {
        let title = format!("{threads} threads");
        let ratio = (&mut over_tokio, &*format!("{title} / tokio"));
        let is_ours = |name: &str| name.starts_with("**");
        table.put_beside(&title, of_these, ratio, |name| is_ours(name).then_some(TOKIO));
    }
    if let (2, (one, two)) = (most, samples.split_at(rows)) {
        let column = over_one.column("2 threads / 1 thread");
        for ((name, one), (_, two)) in one.iter().zip(two) {
            over_one.put(name, column, "x", Figure::of_ratios(two, one));
        }
    } else {
        over_one.skip("this program may use one CPU only");
    }
    let total = timers.stats();
    assert_eq!(total.pending(), 0, "every sleep was dropped");
    vec![table, over_tokio, over_one]
}

fn contenders<'a>(
    threads: usize,
    after: &'a [Duration],
    timers: &'a tickless::Timers,
) -> Vec<Contender<'a>> {
    vec![
        contender("**Sleep**, `future::sleep(d)`", move || {
            sample(threads, after, |after| poll_once(pin!(tickless::future::sleep(after))))
        }),
        contender("**CoarseSleep**, `future::coarse_sleep(d)`", move || {
            sample(threads, after, |after| poll_once(pin!(tickless::future::coarse_sleep(after))))
        }),
        contender("**Sleep**, `timers.sleep(d)`", move || {
            sample(threads, after, |after| poll_once(pin!(timers.sleep(after))))
        }),
        contender("**Timeout**, made and dropped", move || {
            sample(threads, after, |_| drop(timers.timeout(|_| ())))
        }),
        contender("**Timeout**, made, armed and dropped", move || {
            sample(threads, after, |after| {
                let timeout = timers.timeout(|_| ());
                assert_eq!(timeout.start(after), Ok(Started::Idle));
            })
        }),
        contender("**Timeout**, made, armed, cancelled and dropped", move || {
            sample(threads, after, |after| {
                let timeout = timers.timeout(|_| ());
                assert_eq!(timeout.start(after), Ok(Started::Idle));
                assert_eq!(timeout.cancel(), Cancel::Pending);
            })
        }),
        contender(TOKIO, move || {
            let runtime = &mut multi_thread(threads);
            on_workers(threads, runtime, after, |after| poll_once(pin!(tokio::time::sleep(after))))
        }),
        contender("async-io `Timer`", move || {
            sample(threads, after, |after| poll_once(pin!(async_io::Timer::after(after))))
        }),
    ]
}

/// Measures an operation for each duration, on each thread.
fn sample(threads: usize, after: &[Duration], operation: impl Fn(Duration) + Sync) -> f64 {
    let work = |lap: &Lap| lap.time(|| after.iter().for_each(|after| operation(*after)));
    let ns = at_once(&vec![&work as Work<'_>; threads]);
    ns / (threads * after.len()) as f64
}
