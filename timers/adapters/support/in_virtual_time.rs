//! Runs a test on tokio's current-thread runtime and a virtual clock.

use std::time::{Duration, Instant};
use tickless::VirtualTime;

/// Runs `test`. The clock advances when the runtime has nothing to run. Fails if the test takes a
/// minute of real time.
pub fn in_virtual_time<F: Future<Output = ()>>(test: impl FnOnce(VirtualTime) -> F) {
    let (time, begun) = (VirtualTime::new(), Instant::now());
    let idle = time.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .on_thread_park(move || {
            idle.idle();
        })
        .build()
        .expect("a runtime");
    runtime.block_on(test(time));
    assert!(begun.elapsed() < Duration::from_secs(60));
}
