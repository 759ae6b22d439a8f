//! embassy's own timers on a clock that the test moves.

use embassy_time::{Duration, Instant, Ticker, Timer, with_timeout};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use tickless_embassy::virtual_time;

/// Goal: hours of embassy's timers pass exactly, and take no real time. There is only one test,
/// because the process has one clock.
#[test]
fn hours_pass_in_no_time() {
    let real = std::time::Instant::now();
    let begin = Instant::now();
    virtual_time::block_on(async {
        Timer::after_secs(3600).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(3600));
        let never = std::future::pending::<()>();
        assert!(with_timeout(Duration::from_secs(60), never).await.is_err());
        assert_eq!(begin.elapsed(), Duration::from_secs(3660));
        let mut ticker = Ticker::every(Duration::from_secs(10));
        for nth in 1..=100 {
            ticker.next().await;
            assert_eq!(begin.elapsed(), Duration::from_secs(3660 + nth * 10));
        }
    });
    assert_eq!(virtual_time::next_expiry(), u64::MAX);

    let ticks = embassy_time::TICK_HZ;
    let waits = std::thread::spawn(|| pollster::block_on(Timer::after_secs(86_400)));
    while virtual_time::next_expiry() == u64::MAX {
        std::thread::yield_now();
    }
    virtual_time::advance(86_399 * ticks);
    assert!(!waits.is_finished());
    virtual_time::advance(ticks);
    waits.join().expect("no panic");

    // A waker that panics loses no other task's wakeup.
    let (panics, counts) = (Waker::from(Arc::new(Panics)), Arc::<Counts>::default());
    let counting = Waker::from(Arc::clone(&counts));
    let mut timers = [&panics, &counting].map(|waker| (Timer::after_secs(1), waker));
    for (timer, waker) in &mut timers {
        assert!(Pin::new(timer).poll(&mut Context::from_waker(waker)).is_pending());
    }
    assert!(std::panic::catch_unwind(|| virtual_time::advance(ticks)).is_err());
    assert_eq!(counts.0.load(Ordering::Relaxed), 1);
    assert!(real.elapsed() < std::time::Duration::from_secs(60));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

#[derive(Default)]
struct Counts(AtomicU64);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
