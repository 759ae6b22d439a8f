//! W15: what a newcomer writes in a service on tokio, by each library's first form.

use super::{Choice, contender};
use crate::effort::Effort;
use crate::peers::executors::poll_once;
use crate::peers::tokio_sleep::{multi_thread, on_workers};
use crate::random::Random;
use crate::report::Table;
use crate::sample::of_tokio;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Once;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const COLUMNS: [&str; 3] =
    ["timeout around ready work", "around work that waits once", "sleep, dropped early"];

/// A library, and its operation in each column.
type Row = (&'static str, [fn(Duration); 3]);

macro_rules! forms {
    ($name:expr, $($module:ident)::+, $timeout:ident, $sleep:ident) => {
        ($name, [
            |after| is_ready(pin!($($module)::+::$timeout(after, async {}))),
            |after| {
                let mut timeout = pin!($($module)::+::$timeout(after, waits_once()));
                poll_once(timeout.as_mut());
                is_ready(timeout);
            },
            |after| poll_once(pin!($($module)::+::$sleep(after))),
        ])
    };
}

const ROWS: [Row; 5] = [
    ("(the loop alone)", [|after| _ = black_box(after); 3]),
    forms!("**tickless**, `future::timeout`", tickless::future, timeout, sleep),
    forms!("**tickless**, `coarse_timeout`", tickless::future, coarse_timeout, coarse_sleep),
    forms!("**tickless**, `tokio_time`", tickless::tokio_time, timeout, sleep),
    forms!(of_tokio!("tokio"), tokio::time, timeout, sleep),
];

type Waiting = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// A worker's timers that are due before all others: so no other wakes a driver.
    static FIRST: [Waiting; 3] = {
        let after = Duration::from_secs(300);
        let mut first: [Waiting; 3] = [
            Box::pin(tickless::future::sleep(after)),
            Box::pin(tickless::tokio_time::sleep(after)),
            Box::pin(tokio::time::sleep(after)),
        ];
        first.iter_mut().for_each(|sleep| poll_once(sleep.as_mut()));
        first
    };
}

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "In a task on a runtime's only worker, with `enable_all`. Deadlines 10 to 20 \
                 minutes away, at random; another timer is due before them.";
    let mut table = Table::new("W15", "what a newcomer writes in a service on tokio", about);
    let after = &Random::new().many(effort.operations, 600, 1200);
    for (nth, column) in COLUMNS.iter().enumerate() {
        let wanted = ROWS.iter().filter(|(name, _)| choice.wants(name));
        let contenders = wanted.map(|&(name, operations)| {
            contender(name, move || in_a_service(after, operations[nth]))
        });
        table.measure(column, contenders.collect(), effort.repetitions);
    }
    vec![table]
}

/// Does the operation of a row and a column this many times, for a program that counts the
/// instructions of [`counted`]. Returns its name; `None` if there is no such operation.
pub fn repeat([row, column, times]: [usize; 3]) -> Option<String> {
    static EARNED: Once = Once::new();
    let (name, operations) = ROWS.get(row)?;
    let operation = *operations.get(column)?;
    in_a_service(&Random::new().many(times, 600, 1200), move |after| {
        // Until the worker owns the bias of its base's lock, as in a steady state.
        EARNED.call_once(|| (0..300_000).for_each(|_| operation(after)));
        counted(operation, after);
    });
    Some(format!("{name}: {}", COLUMNS[column]))
}

#[inline(never)]
fn counted(operation: fn(Duration), after: Duration) {
    operation(after);
}

fn in_a_service(after: &[Duration], work: impl Fn(Duration) + Copy + Send + Sync + 'static) -> f64 {
    let work = move |after| FIRST.with(|_| work(after));
    on_workers(1, multi_thread(1).enable_all(), after, work)
}

fn is_ready<F: Future>(future: Pin<&mut F>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

fn waits_once() -> impl Future<Output = ()> {
    let mut has_waited = [false, true].into_iter();
    poll_fn(move |_| if has_waited.next() == Some(false) { Poll::Pending } else { Poll::Ready(()) })
}
