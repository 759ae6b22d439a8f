//! Sleeps on smol's executor of one thread: a thousand tasks wait, and smol sees one timer.

// An example fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use async_executor::LocalExecutor;
use async_io::Timer;
use std::cell::Cell;
use std::future::pending;
use std::time::Duration;
use tickless::local::future::{Handle, Sleeps};
use tickless::local::system_clock;

const TASKS: u64 = 1_000;

/// A task that gives up on something that never comes, and then sleeps for as long as it waited.
async fn work(timers: Handle, patience: Duration) -> Duration {
    let begun = timers.now();
    let elapsed = timers.timeout(patience, pending::<()>()).await;
    assert!(elapsed.is_err());
    timers.sleep(patience).await;
    timers.now() - begun
}

fn main() {
    let sleeps = Sleeps::new(system_clock());
    let executor = LocalExecutor::new();
    let tasks: Vec<_> = (0..TASKS)
        .map(|nth| {
            let patience = Duration::from_micros(1_000 + nth * 7_919 % 20_000);
            (patience, executor.spawn(work(sleeps.handle(), patience)))
        })
        .collect();

    let timers_of_smol = Cell::new(0);
    let main = executor.run(async {
        for (patience, task) in tasks {
            assert!(task.await >= 2 * patience, "never early");
        }
    });
    async_io::block_on(sleeps.drive(
        main,
        || sleeps.now(),
        |deadline| {
            timers_of_smol.set(timers_of_smol.get() + 1);
            let timer = Timer::after(deadline - sleeps.now());
            async { _ = timer.await }
        },
    ));
    println!("{TASKS} tasks, {} timers of smol", timers_of_smol.get());
    assert_eq!(sleeps.pending(), 0);
}
