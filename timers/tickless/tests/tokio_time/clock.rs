//! Instants, and a clock that is paused.

use super::time::{self, Instant, MissedTickBehavior};
use crate::{HOUR, ms};
use std::time::Duration;

pub async fn instants() -> Vec<Option<Duration>> {
    let now = Instant::now();
    let std: std::time::Instant = now.into();
    assert_eq!(Instant::from_std(std), now);
    assert_eq!(Instant::from(now.into_std() + HOUR), now + HOUR);
    let mut moved = now;
    moved += HOUR;
    moved -= ms(1);
    let mut hashed = std::collections::HashSet::new();
    assert!(hashed.insert(now) && !hashed.insert(now) && hashed.insert(moved));
    vec![
        Some(moved - now),
        Some(now - moved),
        moved.checked_duration_since(now),
        now.checked_duration_since(moved),
        Some(now.saturating_duration_since(moved)),
        Some(moved.duration_since(now)),
        now.checked_add(HOUR).map(|later| later - now),
        now.checked_add(Duration::MAX).map(|later| later - now),
        now.checked_sub(Duration::MAX).map(|earlier| now - earlier),
    ]
}

/// A paused clock does not advance by itself, can be advanced, and runs again.
pub async fn pausing() -> Vec<Duration> {
    let begin = Instant::now();
    let mut seen = vec![begin.elapsed()];
    time::advance(HOUR).await;
    seen.push(begin.elapsed());
    let sleep = tokio::spawn(time::sleep(HOUR));
    time::advance(HOUR).await;
    sleep.await.unwrap();
    seen.push(begin.elapsed());
    time::resume();
    assert!(Instant::now() >= begin + 2 * HOUR);
    time::pause();
    let stands = Instant::now();
    std::thread::sleep(ms(2));
    assert_eq!(Instant::now(), stands);
    seen
}

/// The ticks of a task that does not run between two advances of the clock.
pub async fn ticks_after_two_advances() -> Vec<Duration> {
    const SECOND: Duration = Duration::from_secs(1);
    let begin = Instant::now();
    let ticks = tokio::spawn(async move {
        let mut ticks = time::interval_at(begin + 50 * SECOND, 41 * SECOND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(ticks.tick().await - begin);
        }
        seen
    });
    tokio::task::yield_now().await;
    for _ in 0..2 {
        time::advance(50 * SECOND).await;
    }
    ticks.await.unwrap()
}
