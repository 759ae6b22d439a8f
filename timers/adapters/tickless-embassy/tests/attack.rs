//! Random histories of the queue beside a twin, and of embassy's timers on the driver for std.

#[path = "../../../tickless/tests/support/histories.rs"]
mod histories;
#[cfg(feature = "std")]
#[path = "../../../tickless/tests/support/sleeps.rs"]
mod sleeps;

use histories::{Rng, end_after, seed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};
use tickless_embassy::TimerQueue;

#[derive(Default)]
struct Task(AtomicU64);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Goal: each task is woken once, at its earliest time, and the results give the next alarm.
#[test]
fn the_queue_equals_its_twin() {
    let mut rng = Rng::new(seed("attack", "the_queue_equals_its_twin"));
    let end = end_after(Duration::from_millis(500));
    while Instant::now() < end {
        let mut queue = TimerQueue::new();
        let (mut now, mut alarm) = (0, u64::MAX);
        let task = || (Arc::<Task>::default(), None::<u64>, 0);
        let mut tasks: Vec<_> = (0..12).map(|_| task()).collect();
        for _ in 0..300 {
            let (waiting, at, expected) = &mut tasks[rng.below(12) as usize];
            match rng.below(8) {
                0..4 => {
                    // Some times have passed, some are far, and many are equal.
                    let time = (now + rng.of_any_size(40)).saturating_sub(4) & !rng.below(4);
                    let waker = Waker::from(Arc::clone(waiting));
                    if queue.schedule_wake(time, &waker) {
                        assert!(time <= alarm, "{time} is not before the alarm at {alarm}");
                        alarm = time;
                    }
                    assert!(
                        alarm <= time || at.is_some_and(|at| at <= time),
                        "no alarm for {time}"
                    );
                    *at = Some(at.map_or(time, |at| at.min(time)));
                }
                // A task ends; the queue keeps its waker until it is due.
                4 if at.is_none() => (*waiting, *expected) = (Arc::default(), 0),
                _ => {
                    now += rng.of_any_size(30);
                    let mut woken = 0;
                    alarm = queue.expire(now, |waker| {
                        woken += 1;
                        waker.wake();
                    });
                    for (waiting, at, expected) in &mut tasks {
                        if at.take_if(|at| *at <= now).is_some() {
                            *expected += 1;
                            woken -= 1;
                        }
                        assert_eq!(waiting.0.load(Ordering::Relaxed), *expected, "at {now}");
                    }
                    assert_eq!(woken, 0, "a task was woken that did not wait");
                    let next = tasks.iter().filter_map(|(_, at, _)| *at).min();
                    assert_eq!(alarm, next.unwrap_or(u64::MAX));
                }
            }
            assert_eq!(queue.len(), tasks.iter().filter(|(_, at, _)| at.is_some()).count());
        }
    }
}

#[cfg(feature = "std")]
mod on_the_driver {
    use crate::sleeps::{Kind, Sleeper, attack};
    use embassy_time::Timer;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Instant;

    struct OfEmbassy(Timer);

    impl Sleeper for OfEmbassy {
        // A poll that read the clock before its time registers again after the wakeup.
        const WAKES_ONCE: bool = false;

        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            Future::poll(Pin::new(&mut self.0), cx)
        }
    }

    /// Goal: timers are never early or lost, though any thread uses them, and wakers panic.
    #[test]
    fn timers_survive_an_attack() {
        attack(
            "attack",
            "timers_survive_an_attack",
            Kind {
                now: |_| Instant::now(),
                sleep_until: |_, deadline| {
                    let after = deadline.saturating_duration_since(Instant::now()).as_micros();
                    // Both the duration and embassy's current time are rounded down to a tick.
                    OfEmbassy(Timer::after_micros(after as u64 + 2))
                },
            },
        );
    }
}
