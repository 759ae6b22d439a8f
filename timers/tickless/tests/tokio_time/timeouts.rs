//! How timeouts end.

use super::time::{self, Instant};
use crate::{HOUR, ms};
use std::time::Duration;

pub async fn timeouts() -> Vec<(Result<u32, String>, Duration)> {
    let mut ends = Vec::new();
    for (work, limit) in [(1, 2), (2, 1), (0, 0)] {
        let begin = Instant::now();
        let work = async {
            if work > 0 {
                time::sleep(HOUR * work).await;
            }
            work
        };
        let end = time::timeout(HOUR * limit, work).await;
        ends.push((end.map_err(|error| error.to_string()), begin.elapsed()));
    }
    let at = Instant::now() + HOUR;
    let never = std::future::pending::<u32>();
    let end = time::timeout_at(at, never).await.map_err(std::io::Error::from);
    let end = end.map_err(|error| format!("{:?}", error.kind()));
    ends.push((end, Instant::now() - at));
    ends.push((time::timeout(Duration::MAX, async { 7 }).await.map_err(|_| String::new()), HOUR));
    ends.push((Ok(time::timeout(HOUR, std::future::ready(9)).into_inner().await), HOUR));
    ends
}

/// A deadline at the same instant as the future's own, or one that has passed.
pub async fn timeouts_at_the_limit() -> Vec<bool> {
    let now = Instant::now();
    let mut seen = vec![
        time::timeout(Duration::ZERO, async {}).await.is_ok(),
        time::timeout(Duration::ZERO, std::future::pending::<()>()).await.is_ok(),
        time::timeout_at(now, std::future::pending::<()>()).await.is_ok(),
        time::timeout_at(now + ms(5), time::sleep_until(now + ms(5))).await.is_ok(),
    ];
    // A future that is always woken does not keep its timeout from firing.
    let busy = async {
        loop {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_micros(10)).await;
        }
    };
    seen.push(time::timeout(ms(5), busy).await.is_ok());
    seen
}
