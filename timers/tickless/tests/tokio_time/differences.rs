//! What differs, as the table in the module's documentation lists it.

use super::time::{self, Instant, MissedTickBehavior};
use crate::{HOUR, message, ms};
use std::panic::catch_unwind;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

/// Whether a sleep is ready when it is polled right after a reset to a time in the past.
pub async fn ready_after_a_reset_to_the_past() -> bool {
    let begin = Instant::now();
    let mut sleep = pin!(time::sleep(HOUR));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(cx).is_pending());
    time::advance(ms(5)).await;
    sleep.as_mut().reset(begin + ms(1));
    let at_once = sleep.as_mut().poll(cx).is_ready();
    sleep.await;
    assert_eq!(begin.elapsed(), ms(5));
    at_once
}

/// The message of a sleep in a runtime that enables nothing.
pub fn sleeps_without_a_driver() -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { message(|| drop(time::sleep(ms(1)))) })
}

/// Whether a timeout can be made in a runtime that enables nothing.
pub fn timeouts_without_a_driver() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let make = || drop(time::timeout(ms(1), std::future::pending::<()>()));
    runtime.block_on(async { catch_unwind(make).is_ok() })
}

pub fn sleeps_outside_of_a_runtime() -> bool {
    catch_unwind(|| drop(time::sleep(ms(1)))).is_ok()
}

pub async fn an_instant_out_of_range() -> bool {
    catch_unwind(|| Instant::now() + Duration::MAX).is_ok()
}

/// A consumer that is late by three and a half periods of a millisecond.
pub async fn short_periods() -> Vec<Duration> {
    let begin = Instant::now();
    let mut interval = time::interval(ms(1));
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval.tick().await;
    time::advance(Duration::from_micros(4_500)).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(interval.tick().await - begin);
    }
    seen
}

/// The order in which two sleeps of this many microseconds end.
pub async fn order_within_a_millisecond() -> Vec<u64> {
    let (end, mut ends) = tokio::sync::mpsc::unbounded_channel();
    for us in [1_600, 1_200] {
        let end = end.clone();
        tokio::spawn(async move {
            time::sleep(Duration::from_micros(us)).await;
            end.send(us)
        });
    }
    vec![ends.recv().await.unwrap(), ends.recv().await.unwrap()]
}

/// The order in which two sleeps end that are due at the same time. One was reset to that time
/// before the other was made, and was due between the two.
pub async fn order_after_a_reset() -> Vec<&'static str> {
    let begin = Instant::now();
    let (end, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let (first, other) = (end.clone(), end);
    tokio::spawn(async move {
        let mut sleep = pin!(time::sleep(ms(189)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        time::sleep(ms(176)).await;
        sleep.as_mut().reset(begin + ms(216));
        sleep.await;
        first.send("reset")
    });
    tokio::spawn(async move {
        time::sleep(ms(182)).await;
        time::sleep_until(begin + ms(216)).await;
        other.send("other")
    });
    vec![ends.recv().await.unwrap(), ends.recv().await.unwrap()]
}
