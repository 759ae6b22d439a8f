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
use std::sync::{LazyLock, Once};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickless::{Timeout, Timers};

const COLUMNS: [&str; 3] =
    ["timeout around ready work", "around work that waits once", "sleep or timer, ended early"];

/// A library, and its operation in each column.
type Row = (&'static str, [Option<fn(Duration)>; 3]);

macro_rules! forms {
    ($name:expr, $($module:ident)::+, $timeout:ident, $sleep:ident) => {
        ($name, [
            Some(|after| is_ready(pin!($($module)::+::$timeout(after, async {})))),
            Some(|after| {
                let mut timeout = pin!($($module)::+::$timeout(after, waits_once()));
                poll_once(timeout.as_mut());
                is_ready(timeout);
            }),
            Some(|after| poll_once(pin!($($module)::+::$sleep(after)))),
        ])
    };
}

const ROWS: [Row; 6] = [
    ("(the loop alone)", [Some(|after| _ = black_box(after)); 3]),
    forms!("**tickless**, `future::timeout`, `sleep`", tickless::future, timeout, sleep),
    forms!(
        "**tickless**, `future::coarse_timeout`, `coarse_sleep`",
        tickless::future,
        coarse_timeout,
        coarse_sleep
    ),
    forms!("**tickless**, `tokio_time`", tickless::tokio_time, timeout, sleep),
    ("**Timeout**, `start(d)` and `cancel()`", [None, None, Some(start_and_cancel)]),
    forms!(of_tokio!("tokio, `time::timeout`, `sleep`"), tokio::time, timeout, sleep),
];

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "In a task on a runtime's only worker, with `enable_all`. Deadlines 10 to 20 \
                 minutes away, at random.";
    let mut table = Table::new("W15", "what a newcomer writes in a service on tokio", about);
    let after = Random::new().many(effort.operations, 600, 1200);
    for (nth, column) in COLUMNS.iter().enumerate() {
        let of_row = |&(name, operations): &Row| {
            let (operation, after) = (operations[nth]?, &after);
            let work = move || on_workers(1, multi_thread(1).enable_all(), after, operation);
            choice.wants(name).then(|| contender(name, work))
        };
        table.measure(column, ROWS.iter().filter_map(of_row).collect(), effort.repetitions);
    }
    vec![table]
}

/// Does the operation of a row and a column this many times, for a program that counts the
/// instructions of [`counted`]. Returns its name; `None` if there is no such operation.
pub fn repeat([row, column, times]: [usize; 3]) -> Option<String> {
    static EARNED: Once = Once::new();
    let (name, operations) = ROWS.get(row)?;
    let operation = (*operations.get(column)?)?;
    let operation = move |after| {
        // Until the worker owns the bias of its base's lock, as in a steady state.
        EARNED.call_once(|| (0..300_000).for_each(|_| operation(after)));
        counted(operation, after);
    };
    on_workers(1, multi_thread(1).enable_all(), &Random::new().many(times, 600, 1200), operation);
    Some(format!("{name}: {}", COLUMNS[column]))
}

#[inline(never)]
fn counted(operation: fn(Duration), after: Duration) {
    operation(after);
}

fn start_and_cancel(after: Duration) {
    static SPARE: LazyLock<Timeout> =
        LazyLock::new(|| Timers::process().expect("they have started").timeout(|_| ()));
    SPARE.start(after).expect("not shut down");
    SPARE.cancel();
}

fn is_ready<F: Future>(future: Pin<&mut F>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

async fn waits_once() {
    let mut has_waited = false;
    let poll = |_: &mut Context<'_>| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    };
    poll_fn(poll).await;
}
