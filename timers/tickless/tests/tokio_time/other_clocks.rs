//! What is made from the timers of the process, where the program moves the caller's clock.

use crate::{HOUR, ms, paused};
use std::future::pending;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use tickless::bandwidth::{AcquireError, KeyedLimiter, Limiter};
use tickless::driver::StartTimersError;
use tickless::future::{
    TimerSource, coarse_sleep, coarse_timeout, deadline_scope, interval, now, sleep, sleep_until,
    timeout,
};
use tickless::tokio_time::{self as time, advance, timers};
use tickless::{Timers, VirtualTime};

/// Runs a body on a paused clock of tokio's, and on a virtual clock that the thread has entered.
fn on_moved_clocks(body: impl AsyncFn()) {
    paused(body());
    let clock = VirtualTime::new();
    let _entered = clock.enter();
    clock.block_on(body());
}

#[test]
fn futures_follow_a_clock_that_the_program_moves() {
    let began = Instant::now();
    on_moved_clocks(async || {
        let begin = now();
        sleep(HOUR).await;
        sleep_until(begin + 2 * HOUR).await;
        coarse_sleep(HOUR).await;
        let _ = interval(HOUR).tick().await;
        let _ = timeout(HOUR, pending::<()>()).await.unwrap_err();
        let _ = deadline_scope(now() + HOUR, pending::<()>()).await.unwrap_err();
        let source = TimerSource::process().unwrap();
        source.sleep(HOUR).await;
        assert!(source.timers().is_none() && source.now() >= begin + 7 * HOUR);
        let late = coarse_timeout(ms(1_000), time::sleep(ms(2_000)));
        let _ = late.await.expect_err("a timeout of 1 s around a sleep of 2 s");
    });
    assert!(began.elapsed() < HOUR);
}

#[test]
fn the_timers_of_the_process_are_refused_there() {
    on_moved_clocks(async || {
        let refused = Timers::process().unwrap_err();
        assert!(matches!(refused, StartTimersError::OtherClock), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("paused clock") && text.contains("the system's"), "{text}");
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(async { Timers::process() }).is_ok());
}

/// Never `Empty` or a time to wait, which would be true on the other clock only.
#[test]
fn a_limiter_in_real_time_is_refused_there() {
    let timers = Timers::process().unwrap();
    let limiter = || timers.limiter(1, HOUR);
    let (plain, keyed): (Limiter, KeyedLimiter<u8>) =
        (limiter().start().unwrap(), limiter().keyed().unwrap());
    let of_key = keyed.limiter(&0).unwrap();
    plain.try_acquire(1).unwrap();
    of_key.try_acquire(1).unwrap();
    let refused = Err(AcquireError::OtherClock);
    let keys = AtomicU8::new(1);
    on_moved_clocks(async || {
        let key = keys.fetch_add(1, Ordering::Relaxed);
        assert_eq!(keyed.try_acquire(&key, 1), Ok(()));
        advance(2 * HOUR).await;
        assert_eq!(keyed.try_acquire(&key, 1), refused);
        assert_eq!(keyed.try_acquire(&0, 1), refused);
        assert_eq!(plain.try_acquire(1), refused);
        assert_eq!(plain.acquire(1).await, refused);
        assert_eq!(time::timeout(HOUR, of_key.acquire(1)).await.unwrap(), refused);
        assert_eq!(plain.blocking_acquire(1), refused);
        assert_eq!(plain.retry_after(1), Err(AcquireError::OtherClock));
        assert_eq!(keyed.retry_after(&key, 1), Err(AcquireError::OtherClock));
        assert_eq!(plain.acquire(2).await, Err(AcquireError::NeverEnough { most: 1 }));
    });
}

#[test]
fn limiters_made_there_follow() {
    on_moved_clocks(async || {
        let keyed = timers().limiter(1, ms(1_000)).unwrap().keyed().unwrap();
        keyed.try_acquire(&7, 1).unwrap();
        assert_eq!(keyed.try_acquire(&7, 1), Err(AcquireError::Empty));
        assert!(keyed.retry_after(&7, 1).unwrap() <= ms(1_000));
        advance(ms(2_000)).await;
        keyed.try_acquire(&7, 1).unwrap();

        let limiter = timers().limiter(1, ms(100)).unwrap().start().unwrap();
        limiter.try_acquire(1).unwrap();
        let begin = time::Instant::now();
        time::timeout(ms(5_000), limiter.acquire(1)).await.unwrap().unwrap();
        assert!(begin.elapsed() <= ms(101), "{:?}", begin.elapsed());
    });
}

/// Neither grants permits nor waits.
#[test]
fn a_limiter_ends_with_its_runtime() {
    let mut waiting = None;
    let limiter = paused(async {
        let limiter = timers().limiter(1, HOUR).unwrap().start().unwrap();
        limiter.try_acquire(1).unwrap();
        let mut queued = Box::pin(limiter.acquire(1));
        let _ = time::timeout(ms(1), &mut queued).await.unwrap_err();
        waiting = Some(queued);
        limiter
    });
    assert_eq!(limiter.try_acquire(1), Err(AcquireError::NoTimers));
    assert_eq!(limiter.blocking_acquire(1), Err(AcquireError::NoTimers));
    assert_eq!(pollster::block_on(waiting.unwrap()), Err(AcquireError::NoTimers));
}
