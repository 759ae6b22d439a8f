//! Waits in three ways, each for a known time: 1,000 tasks of tokio, threads of std, and timers of
//! this library on its real clock. `waits FACTOR` waits longer. `ci/warp.sh` runs it warped.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let factor = std::env::args().nth(1).map_or(1, |factor| factor.parse().unwrap());
    let units = move |count: u32| Duration::from_millis(1) * count * factor;
    let start = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> =
            (1..=1_000).map(|count| tokio::spawn(tokio::time::sleep(units(count)))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let after_tasks = start.elapsed();
    let threads: Vec<_> =
        (1..=20).map(|count| thread::spawn(move || thread::sleep(units(10 * count)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let timers = tickless::Timers::process().unwrap();
    let (tx, rx) = mpsc::channel();
    let precise = timers.hrtimer(move |_| tx.send("precise").unwrap_or(()));
    precise.start(units(100)).unwrap();
    assert_eq!(rx.recv(), Ok("precise"));
    let took = start.elapsed();
    assert!(after_tasks >= units(1_000) && took >= units(1_300), "{after_tasks:?} {took:?}");
    println!("{}", took.as_secs());
}
