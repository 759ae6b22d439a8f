//! Timers that are ready at once must not keep a current-thread runtime from its other tasks.

use super::time::{self, Instant};
use crate::ms;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

/// How many turns of a loop run before another task does. `nth` chooses what the loop awaits.
pub async fn turns_before_another_task(nth: usize) -> u64 {
    time::sleep(ms(2)).await;
    let past = Instant::now() - ms(1);
    let mut behind = time::interval_at(Instant::now(), Duration::from_micros(1));
    std::thread::sleep(ms(50));
    turns(async || match nth {
        0 => time::sleep(Duration::ZERO).await,
        1 => time::sleep_until(past).await,
        2 => drop(time::timeout(Duration::ZERO, pending::<()>()).await),
        3 => drop(time::timeout_at(past, pending::<()>()).await),
        _ => drop(behind.tick().await),
    })
    .await
}

/// How often a task awaits the future `next` before another task has run.
pub async fn turns(mut next: impl AsyncFnMut()) -> u64 {
    let (other, mut turns) = (tokio::spawn(async {}), 0);
    while !other.is_finished() && turns < 100_000 {
        turns += 1;
        next().await;
    }
    turns
}

/// How many turns another task has during each of these numbers of sleeps of no time.
pub async fn turns_during_sleeps() -> Vec<u64> {
    let turns = Arc::new(AtomicU64::new(0));
    let other = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            other.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut seen = Vec::new();
    for count in [1, 10, 100] {
        let before = turns.load(Relaxed);
        for _ in 0..count {
            time::sleep(Duration::ZERO).await;
        }
        seen.push(turns.load(Relaxed) - before);
    }
    other.abort();
    seen
}

/// How many of a thousand ready timers can be polled in one turn of a task.
pub async fn ready_polls_in_one_turn() -> Vec<usize> {
    let mut sleep = pin!(time::sleep(ms(1)));
    sleep.as_mut().await;
    std::future::poll_fn(|cx| {
        let polls = (0..1000).map(|_| sleep.as_mut().poll(cx));
        Poll::Ready(vec![polls.take_while(Poll::is_ready).count()])
    })
    .await
}
