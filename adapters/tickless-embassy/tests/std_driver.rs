//! embassy's own timers on the driver for std.

use embassy_time::{Duration, Instant, Ticker, with_timeout};
use tickless_embassy as _;

#[test]
fn a_timeout_passes() {
    let never = std::future::pending::<()>();
    assert!(pollster::block_on(with_timeout(Duration::from_millis(5), never)).is_err());
}

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
