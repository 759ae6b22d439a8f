//! Futures with deadlines that are centuries ahead, or that are reset across centuries.

use crate::support::woken::{poll, woken};
use crate::support::{HOUR, MS, rounds, wait_until};
use std::pin::{Pin, pin};
use std::time::Duration;
use tickless::future::{CoarseSleep, Sleep};
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

#[test]
fn futures_complete_centuries_ahead() {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    for begin in [1 << 40, (1 << 62) - 5, 1 << 62, (1 << 63) - 5, 1 << 63, 3 << 62] {
        for after in [Duration::from_secs(1), YEAR, 100 * YEAR, 140 * YEAR, 147 * YEAR] {
            let time = VirtualTime::new();
            time.advance_to(Instant::from_nanos(begin));
            let deadline = time.now() + after;
            if deadline.as_nanos() >= u64::MAX - (1 << 62) / 8 {
                continue;
            }
            let (count, waker) = woken();
            let mut exact = pin!(time.timers().sleep_until(deadline).slack(Duration::ZERO));
            let mut coarse = pin!(time.timers().coarse_sleep(after));
            assert!(poll(exact.as_mut(), &waker).is_pending(), "{begin} {after:?}");
            assert!(poll(coarse.as_mut(), &waker).is_pending(), "{begin} {after:?}");
            assert_eq!((exact.deadline(), coarse.deadline()), (deadline, deadline));
            time.advance_to(deadline - Duration::from_nanos(1));
            assert_eq!(count.count(), 0, "{begin} {after:?}: early");
            time.advance(Duration::from_nanos(1));
            assert!(poll(exact.as_mut(), &waker).is_ready(), "{begin} {after:?}");
            time.advance_to(Instant::from_nanos(
                deadline.as_nanos() + (deadline.as_nanos() - begin) / 7 + 2_000_000,
            ));
            assert!(poll(coarse.as_mut(), &waker).is_ready(), "{begin} {after:?}");
            assert_eq!(count.count(), 2);
        }
    }
}

#[test]
fn futures_can_be_reset_by_centuries() {
    fn check<S: Future<Output = ()>>(
        time: &VirtualTime,
        mut sleep: Pin<&mut S>,
        reset_at: fn(Pin<&mut S>, Instant),
    ) {
        let (count, waker) = woken();
        let (near, far) = (time.now() + HOUR, Instant::from_nanos(3 << 62));
        reset_at(sleep.as_mut(), far);
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        reset_at(sleep.as_mut(), near);
        time.advance(2 * HOUR);
        assert_eq!(count.count(), 1, "nearer");
        assert!(poll(sleep.as_mut(), &waker).is_ready());
        reset_at(sleep.as_mut(), time.now() + HOUR);
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        for later in [1 << 62, 3 << 62, 1 << 63, u64::MAX] {
            reset_at(sleep.as_mut(), Instant::from_nanos(later));
            time.advance(2 * HOUR);
            assert_eq!(count.count(), 1, "pushed out to {later}");
        }
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        reset_at(sleep.as_mut(), time.now() + HOUR);
        time.advance(2 * HOUR);
        assert_eq!(count.count(), 2);
        assert!(poll(sleep.as_mut(), &waker).is_ready());
        assert_eq!(time.timers().stats().pending(), 0);
    }
    let time = VirtualTime::new();
    check::<Sleep>(&time, pin!(time.timers().sleep(HOUR)), Sleep::reset_at);
    check::<CoarseSleep>(&time, pin!(time.timers().coarse_sleep(HOUR)), CoarseSleep::reset_at);
    // On real time, where pushing out is a compare-and-swap.
    let timers = Timers::builder().bases(1).start().unwrap();
    let mut coarse = pin!(timers.coarse_sleep(HOUR));
    let (count, waker) = woken();
    assert!(poll(coarse.as_mut(), &waker).is_pending());
    for round in 0..rounds(300) {
        coarse.as_mut().reset_at(Instant::from_nanos(round << 60));
        coarse.as_mut().reset(HOUR);
        if count.count() > 0 || coarse.is_elapsed() {
            // Its old deadline had passed, and its timer had fired.
            break;
        }
    }
    coarse.as_mut().reset_at(Instant::NEVER);
    assert_eq!(coarse.deadline(), Instant::NEVER);
    coarse.as_mut().reset(MS);
    let before = count.count();
    if poll(coarse.as_mut(), &waker).is_pending() {
        wait_until("it is woken", || count.count() > before);
    }
}
