//! The SDK's sleeps and its clock on one virtual time.

use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use aws_smithy_async::time::SharedTimeSource;
use std::time::{Duration, Instant};
use tickless::VirtualTime;
use tickless_smithy::{TicklessSleep, VirtualTimeSource};

const HOUR: Duration = Duration::from_secs(3600);

/// Goal: the SDK's own timeout future passes after an hour of virtual time, at once.
#[test]
fn an_hour_of_the_sdk_timeout() {
    let time = VirtualTime::new();
    let sleep = SharedAsyncSleep::new(TicklessSleep::new(&time));
    let clock = SharedTimeSource::new(VirtualTimeSource::new(&time));
    let (begun, day) = (Instant::now(), clock.now());
    let never = std::future::pending::<()>();
    assert!(time.block_on(Timeout::new(never, sleep.sleep(HOUR))).is_err());
    let passed = clock.now().duration_since(day).expect("forward");
    assert!(passed >= HOUR && passed <= HOUR + Duration::from_millis(50), "{passed:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    time.assert_idle();
}

/// Goal: of the process, a real sleep is not early.
#[test]
fn a_real_sleep_is_not_early() {
    let sleep = TicklessSleep::of_process().expect("threads are to be had");
    let begun = Instant::now();
    VirtualTime::new().block_on(sleep.sleep(Duration::from_millis(20)));
    assert!(begun.elapsed() >= Duration::from_millis(20) - Duration::from_micros(10));
}
