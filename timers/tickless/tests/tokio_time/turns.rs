//! Timers that are ready at once must not keep a current-thread runtime from its other tasks.

use super::time::{self, Instant};
use crate::ms;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

/// How many turns of a loop run before another task does. `nth` chooses what the loop awaits.
pub async fn turns_before_another_task(nth: usize) -> u64 {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    static STOPS: AtomicBool = AtomicBool::new(false);
    TURNS.store(0, Relaxed);
    STOPS.store(false, Relaxed);
    time::sleep(ms(2)).await;
    let past = Instant::now() - ms(1);
    let mut behind = time::interval_at(Instant::now(), Duration::from_micros(1));
    std::thread::sleep(ms(50));
    let other = tokio::spawn(async {
        STOPS.store(true, Relaxed);
        TURNS.load(Relaxed)
    });
    while !STOPS.load(Relaxed) && TURNS.fetch_add(1, Relaxed) < 100_000 {
        match nth {
            0 => time::sleep(Duration::ZERO).await,
            1 => time::sleep_until(past).await,
            2 => drop(time::timeout(Duration::ZERO, pending::<()>()).await),
            3 => drop(time::timeout_at(past, pending::<()>()).await),
            _ => drop(behind.tick().await),
        }
    }
    other.await.unwrap()
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
