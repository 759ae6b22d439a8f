//! embassy's own timers on the driver for std.

use embassy_time::{Duration, Instant, Ticker, Timer, with_timeout};
use tickless_embassy as _;

#[test]
fn a_timer_is_not_early() {
    let (begin, real) = (Instant::now(), std::time::Instant::now());
    pollster::block_on(Timer::after_millis(20));
    assert!(begin.elapsed() >= Duration::from_millis(20));
    assert!(real.elapsed() >= std::time::Duration::from_millis(19));
}

#[test]
fn a_timeout_passes() {
    let never = std::future::pending::<()>();
    assert!(pollster::block_on(with_timeout(Duration::from_millis(5), never)).is_err());
}

/// Goal: no wakeup is lost when several threads run tickers of different periods.
#[test]
fn tickers_on_several_threads_lose_no_wakeup() {
    std::thread::scope(|s| {
        for nth in 1..=8 {
            s.spawn(move || {
                let begin = Instant::now();
                let mut ticker = Ticker::every(Duration::from_micros(nth * 300));
                pollster::block_on(async {
                    for _ in 0..20 {
                        ticker.next().await;
                    }
                });
                assert!(begin.elapsed() >= Duration::from_micros(nth * 300 * 20));
            });
        }
    });
}
