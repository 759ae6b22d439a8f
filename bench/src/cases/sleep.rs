//! W7: a future that sleeps is made, polled once, and dropped.
//!
//! This is the usual cost of a timeout around a request in an async program: the answer comes
//! before the deadline. By one thread and by two at once, each on a CPU of its own; wall time over
//! all operations of both.

use super::{Choice, contender};
use crate::affinity;
use crate::effort::Effort;
use crate::random::Random;
use crate::report::{Cell, Table};
use crate::sample::{Contender, Figure, interleave_samples};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

const TOKIO: &str = "tokio `sleep`, 2 workers";

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about =
        "Deadlines 10 to 20 minutes away, at random. tokio inside a runtime of two workers.";
    let mut table = Table::new("W7", "a sleep is made, polled once and dropped", about);
    let after = Random::new().many(effort.operations, 600, 1200);
    let timers = tickless::Timers::builder().start().expect("timers start");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime starts");
    let mut ratios = Table::new(
        "W7",
        "the same over tokio's",
        "Each sample divided by tokio's of the same turn. The target is 0.5.",
    );
    for threads in 1..=affinity::remember().min(2) {
        let title = format!("{threads} threads");
        let (column, ratio) = (table.column(&title), ratios.column(&format!("{title} / tokio")));
        let after = &after[..];
        let wanted = contenders(threads, after, &timers, &runtime).into_iter();
        let wanted = wanted.filter(|one| choice.wants(one.name)).collect();
        let samples = interleave_samples(wanted, effort.repetitions);
        let tokios = samples.iter().find(|(name, _)| *name == TOKIO);
        for (name, of_this) in &samples {
            table.put(name, column, Figure::of(of_this.clone()).map(Cell::ns));
            if let Some((_, tokios)) = tokios.filter(|_| name.starts_with("**")) {
                let figure = Figure::of_ratios(of_this, tokios);
                ratios.put(name, ratio, figure.map(|figure| Cell { figure, unit: "x" }));
            }
        }
    }
    let total = timers.stats();
    assert_eq!(total.pending(), 0, "every sleep was dropped");
    vec![table, ratios]
}

fn contenders<'a>(
    threads: usize,
    after: &'a [Duration],
    timers: &'a tickless::Timers,
    runtime: &'a tokio::runtime::Runtime,
) -> Vec<Contender<'a>> {
    let alone = || ();
    vec![
        contender("**Sleep**, `future::sleep(d)`", move || {
            sample(threads, after, alone, |after| once(pin!(tickless::future::sleep(after))))
        }),
        contender("**CoarseSleep**, `future::coarse_sleep(d)`", move || {
            sample(threads, after, alone, |after| once(pin!(tickless::future::coarse_sleep(after))))
        }),
        contender("**Sleep**, `timers.sleep(d)`", move || {
            sample(threads, after, alone, |after| once(pin!(timers.sleep(after))))
        }),
        contender(TOKIO, move || {
            let inside = || runtime.enter();
            sample(threads, after, inside, |after| once(pin!(tokio::time::sleep(after))))
        }),
        contender("async-io `Timer`", move || {
            sample(threads, after, alone, |after| {
                let mut timer = async_io::Timer::after(after);
                let cx = &mut Context::from_waker(Waker::noop());
                assert!(Pin::new(&mut timer).poll(cx).is_pending());
            })
        }),
    ]
}

/// Polls a future that is not ready.
fn once<F: Future>(future: Pin<&mut F>) {
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(matches!(future.poll(cx), Poll::Pending));
}

/// Measures many operations inside one guard that `around` returns.
fn sample<G>(
    threads: usize,
    after: &[Duration],
    around: impl Fn() -> G + Sync,
    operation: impl Fn(Duration) + Sync,
) -> f64 {
    let barrier = Barrier::new(threads);
    let work = |cpu| {
        affinity::pin(cpu);
        let _around = around();
        barrier.wait();
        let begun = Instant::now();
        after.iter().for_each(|after| operation(*after));
        begun.elapsed()
    };
    let longest = std::thread::scope(|s| {
        let threads: Vec<_> = (0..threads).map(|cpu| s.spawn(move || work(cpu))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no operation fails")).max()
    });
    longest.unwrap_or_default().as_nanos() as f64 / (threads * after.len()) as f64
}
