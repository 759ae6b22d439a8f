//! Ticks of intervals: missed, reset and polled.

use super::time::{self, Instant, MissedTickBehavior};
use crate::ms;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const BEHAVIORS: [MissedTickBehavior; 3] =
    [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip];

/// When ticks are due and are taken, by a consumer that is slow in between, with each behavior.
pub async fn ticks(nth: usize) -> Vec<(Duration, Duration)> {
    let behavior = BEHAVIORS[nth];
    let begin = Instant::now();
    let mut interval = time::interval(ms(100));
    assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::default());
    interval.set_missed_tick_behavior(behavior);
    assert_eq!((interval.missed_tick_behavior(), interval.period()), (behavior, ms(100)));
    let mut seen = Vec::new();
    for busy in [0, 30, 370, 0, 0, 0, 103, 0, 250, 0, 0] {
        let due = interval.tick().await;
        seen.push((due - begin, begin.elapsed()));
        time::sleep(ms(busy)).await;
    }
    seen
}

/// Ticks that are ready after each advance, with each behavior. A step of zero resets the interval.
pub async fn polled_intervals(nth: usize) -> Vec<Vec<Duration>> {
    let begin = Instant::now();
    time::advance(ms(1)).await;
    let mut interval = time::interval_at(begin, ms(300));
    interval.set_missed_tick_behavior(BEHAVIORS[nth]);
    let mut seen = Vec::new();
    for step in [100, 200, 400, 500, 650, 100, 201, 250, 0, 250, 50, 2000, 300] {
        if step == 0 {
            interval.reset();
        }
        let mut ready = Vec::new();
        let cx = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(tick) = interval.poll_tick(cx) {
            ready.push(tick - begin);
        }
        seen.push(ready);
        time::advance(ms(step)).await;
    }
    seen
}
