//! W7: a future that sleeps is made, polled once, and dropped.
//!
//! What a timeout around a request costs an async program, most of the time: the answer comes
//! before the deadline. By one thread and by two at once, each on a CPU of its own; wall time over
//! all operations of both.

use super::{Choice, contender};
use crate::affinity;
use crate::effort::Effort;
use crate::random::Random;
use crate::report::{Cell, Table};
use crate::sample::interleave;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about =
        "Deadlines 10 to 20 minutes away, at random. tokio within a runtime of two workers.";
    let mut table = Table::new("W7", "a sleep is made, polled once and dropped", about);
    let after = Random::new().many(effort.operations, 600, 1200);
    let timers = tickless::Timers::start().expect("timers start");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime starts");
    for threads in 1..=affinity::remember().min(2) {
        let column = table.column(&format!("{threads} threads"));
        let (after, timers, runtime) = (&after[..], &timers, &runtime);
        let contenders = vec![
            contender("**Sleep**, `future::sleep(d)`", move || {
                sample(threads, after, |after| once(pin!(tickless::future::sleep(after))))
            }),
            contender("**CoarseSleep**, `future::coarse_sleep(d)`", move || {
                sample(threads, after, |after| once(pin!(tickless::future::coarse_sleep(after))))
            }),
            contender("**Sleep**, `timers.sleep(d)`", move || {
                sample(threads, after, |after| once(pin!(timers.sleep(after))))
            }),
            contender("tokio `sleep`, 2 workers", move || {
                sample(threads, after, |after| {
                    let _in = runtime.enter();
                    once(pin!(tokio::time::sleep(after)));
                })
            }),
            contender("(entering tokio's runtime alone)", move || {
                sample(threads, after, |_| drop(runtime.enter()))
            }),
            contender("async-io `Timer`", move || {
                sample(threads, after, |after| {
                    let mut timer = async_io::Timer::after(after);
                    let cx = &mut Context::from_waker(Waker::noop());
                    assert!(Pin::new(&mut timer).poll(cx).is_pending());
                })
            }),
        ];
        let wanted = contenders.into_iter().filter(|one| choice.wants(one.name)).collect();
        for (name, figure) in interleave(wanted, effort.repetitions) {
            table.put(name, column, figure.map(Cell::ns));
        }
    }
    let total = timers.stats();
    assert_eq!(total.pending(), 0, "every sleep was dropped");
    vec![table]
}

/// Polls a future that is not ready.
fn once<F: Future>(future: Pin<&mut F>) {
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(matches!(future.poll(cx), Poll::Pending));
}

fn sample(threads: usize, after: &[Duration], operation: impl Fn(Duration) + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let work = |cpu| {
        affinity::pin(cpu);
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
