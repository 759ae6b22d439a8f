//! W8: the lateness of a sleep of 1 ms with default settings on an idle machine.

use super::Choice;
use crate::effort::Effort;
use crate::latency::{Latencies, Recorder, Watch};
use crate::peers::tokio_sleep::multi_thread;
use crate::report::{Column, Table};
use crate::sample::{in_turn_unpinned, of_tokio};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

const MS: Duration = Duration::from_millis(1);
const SAMPLES: usize = 5;

const COLUMNS: &[Column<Latencies>] = &[
    ("p50", "us", |l| l.p50_us),
    ("p99", "us", |l| l.p99_us),
    ("max", "us", |l| l.max_us),
    ("CPU", "%", |l| l.cpu_percent),
    ("early", "", |l| l.early as f64),
];

type Sleeps<'a> = Box<dyn Fn(usize) -> Latencies + 'a>;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let many = multi_thread(2).enable_all().build().expect("a runtime starts");
    let one = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let mut sleepers: Vec<(&'static str, Sleeps)> = vec![
        ("**Sleep** on tokio, 2 workers", on(&many, || tickless::future::sleep(MS))),
        ("**Sleep** on tokio, current thread", on(&one, || tickless::future::sleep(MS))),
        (
            "**Sleep** on async-io's `block_on`",
            Box::new(|n| async_io::block_on(note(n, || tickless::future::sleep(MS)))),
        ),
        (of_tokio!("tokio `sleep`, 2 workers"), on(&many, || tokio::time::sleep(MS))),
        ("tokio `sleep`, current thread", on(&one, || tokio::time::sleep(MS))),
        (
            "async-io `Timer` on its `block_on`",
            Box::new(|n| {
                async_io::block_on(note(n, || async { _ = async_io::Timer::after(MS).await }))
            }),
        ),
        (
            "`thread::sleep`",
            Box::new(|n| async_io::block_on(note(n, || async { std::thread::sleep(MS) }))),
        ),
    ];
    sleepers.retain(|(name, _)| choice.wants(name));
    let about = "One after another, each made when the one before it has ended. Lateness includes \
                 leaving the CPU's idle state, which is the same for all.";
    let mut table = Table::new("W8", "lateness of a sleep of 1 ms, nothing set", about);
    let rows = in_turn_unpinned(sleepers, SAMPLES, |_, sleeps| sleeps(effort.sleeps));
    table.put_all(COLUMNS, &rows);
    let ours = rows.iter().filter(|(name, _)| name.starts_with("**"));
    let early: u64 = ours.flat_map(|(_, outcomes)| outcomes).map(|one| one.early).sum();
    assert_eq!(early, 0, "never early (W1)");
    vec![table]
}

fn on<'a, S>(runtime: &'a Runtime, sleep: impl Fn() -> S + Copy + Send + 'static) -> Sleeps<'a>
where
    S: Future<Output = ()> + Send + 'static,
{
    Box::new(move |n| runtime.block_on(async { tokio::spawn(note(n, sleep)).await }).expect("done"))
}

async fn note<S: Future<Output = ()>>(n: usize, sleep: impl Fn() -> S) -> Latencies {
    let recorder = Recorder::shared();
    let watch = Watch::warmed_up(&recorder);
    for _ in 0..n {
        let due = Instant::now() + MS;
        sleep().await;
        let now = Instant::now();
        recorder.lock().expect("nothing panics under this lock").note(due, now);
    }
    watch.finish(&recorder)
}
