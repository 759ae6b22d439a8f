//! When sleeps are ready, and when their tasks are woken.

use super::time::{self, Instant};
use crate::woken::{poll, woken};
use crate::{HOUR, ms};
use std::pin::{Pin, pin};
use std::task::Waker;
use std::time::Duration;

/// Whether a sleep is ready, and how often its task was woken, after each of these steps.
async fn stepped(mut sleep: Pin<&mut time::Sleep>, steps_us: &[u64]) -> Vec<(bool, u64)> {
    let (woken, waker) = woken();
    let mut seen = Vec::new();
    for step in steps_us.iter().map(Some).chain([None]) {
        let ready = poll(sleep.as_mut(), &waker).is_ready();
        seen.push((ready, woken.count()));
        if let Some(&step) = step {
            time::advance(Duration::from_micros(step)).await;
        }
    }
    seen
}

pub async fn small_advances() -> Vec<(bool, u64)> {
    let mut seen = stepped(pin!(time::sleep(ms(1))), &[250, 250, 250, 250]).await;
    seen.extend(stepped(pin!(time::sleep(ms(300))), &[100_000, 51_592, 1, 150_000]).await);
    seen
}

pub async fn resets_around_the_deadline() -> Vec<(bool, u64)> {
    let begin = Instant::now();
    let mut sleep = pin!(time::sleep_until(begin + ms(100)));
    assert_eq!((sleep.deadline(), sleep.is_elapsed()), (begin + ms(100), false));
    let mut seen = stepped(sleep.as_mut(), &[50_000]).await;
    sleep.as_mut().reset(begin + ms(110));
    seen.extend(stepped(sleep.as_mut(), &[55_000, 6_000]).await);
    assert!(sleep.is_elapsed());
    sleep.as_mut().reset(begin + ms(250));
    assert!(!sleep.is_elapsed());
    seen.extend(stepped(sleep.as_mut(), &[5_000]).await);
    sleep.as_mut().reset(begin + ms(200));
    seen.extend(stepped(sleep.as_mut(), &[50_000, 50_000]).await);
    sleep.as_mut().reset(begin + 10 * HOUR);
    drop(stepped(sleep.as_mut(), &[]).await);
    sleep.as_mut().reset(begin + 5 * HOUR);
    sleep.as_mut().await;
    assert!(begin.elapsed() < 6 * HOUR);
    sleep.as_mut().reset(begin);
    assert!(poll(sleep, Waker::noop()).is_ready(), "the deadline has passed");
    seen
}

/// A deadline that never comes, beside one that comes at once; and a sleep that is dropped
/// after a reset to the deadline of another one.
pub async fn the_near_and_the_far() -> Vec<bool> {
    let far = time::timeout(Duration::MAX, std::future::pending::<()>());
    let (mut far, mut never) = (pin!(far), pin!(time::sleep(Duration::MAX)));
    let waker = Waker::noop();
    let mut seen = vec![poll(far.as_mut(), waker).is_ready()];
    seen.push(poll(never.as_mut(), waker).is_ready());
    time::sleep(Duration::from_nanos(1)).await;
    time::advance(HOUR * 24 * 365 * 10).await;
    seen.push(poll(far, waker).is_ready());
    seen.push(poll(never, waker).is_ready());
    let begin = Instant::now();
    let [mut first, mut moved, mut last] = [5, 5, 10].map(|after| Box::pin(time::sleep(ms(after))));
    for sleep in [&mut first, &mut moved, &mut last] {
        seen.push(poll(sleep.as_mut(), waker).is_ready());
    }
    moved.as_mut().reset(begin + ms(10));
    first.await;
    seen.push(moved.is_elapsed());
    drop(moved);
    last.await;
    seen.push(begin.elapsed() < ms(12));
    seen
}

/// Data that is ready does not let the clock move.
pub async fn ready_sockets() -> Vec<Duration> {
    let begin = Instant::now();
    let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
    one.send(b"x").await.unwrap();
    let receives = tokio::spawn(async move {
        other.recv(&mut [0]).await.unwrap();
        begin.elapsed()
    });
    time::sleep(ms(100)).await;
    vec![receives.await.unwrap(), begin.elapsed()]
}
