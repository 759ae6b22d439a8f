//! Ticks of intervals: missed, reset and polled.

use super::time::{self, Instant, MissedTickBehavior};
use crate::ms;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const BEHAVIORS: [MissedTickBehavior; 3] =
    [MissedTickBehavior::Burst, MissedTickBehavior::Delay, MissedTickBehavior::Skip];

/// Ticks that are ready after each advance, with each behavior. A step of zero resets the interval.
pub async fn polled_intervals(nth: usize) -> Vec<Vec<Duration>> {
    let begin = Instant::now();
    time::advance(ms(1)).await;
    let mut interval = time::interval_at(begin, ms(300));
    assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::default());
    interval.set_missed_tick_behavior(BEHAVIORS[nth]);
    assert_eq!((interval.missed_tick_behavior(), interval.period()), (BEHAVIORS[nth], ms(300)));
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
