//! Timers, futures and limiters of the process where the program moves the clock: in a runtime
//! whose clock is paused, and on a virtual clock that the thread has entered.

use crate::{HOUR, alone, ms, paused, paused_runtime};
use std::future::{Future, pending};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickless::bandwidth::{AcquireError, KeyedLimiter, Limiter};
use tickless::clock::{ClockKind, TimeBase};
use tickless::future::{self, TimerSource, deadline_scope, propagate_deadline, remaining};
use tickless::periodic::Missed;
use tickless::tokio_time::error::Elapsed;
use tickless::tokio_time::{Instant, advance, run_in_virtual_time, sleep, timeout, timers};
use tickless::{Timers, VirtualTime};

/// Runs a body on each of the clocks that a program moves.
fn on_moved_clocks<F: Future<Output: Send> + Send + 'static>(body: impl Fn() -> F) {
    paused(body());
    run_in_virtual_time(2, |_| body());
}

#[test]
fn futures_follow_the_callers_clock() {
    on_moved_clocks(|| async {
        let begin = Instant::now();
        assert_eq!(future::now(), begin.into());
        let work = future::coarse_timeout(ms(1_000), sleep(ms(2_000))).await;
        assert!(work.is_err(), "{:?}", begin.elapsed());
        assert!(future::timeout(HOUR, pending::<()>()).await.is_err());
        future::sleep(HOUR).await;
        future::coarse_sleep(HOUR).await;
        future::sleep_until(future::now() + HOUR).await;
        future::interval(HOUR).tick().await;
        future::clock_sleep(TimeBase::Realtime, HOUR).await;
        let source = TimerSource::process().unwrap();
        source.sleep(HOUR).await;
        assert!(timers().timeout_after(HOUR, pending::<()>()).await.is_err());
        let set = source.timers().unwrap();
        assert_eq!(set.now(), source.now());
        set.sleep(HOUR).await;
        assert_eq!(begin.elapsed(), ms(1_000) + 9 * HOUR);
        let work = async {
            let task = tokio::spawn(propagate_deadline(sleep(5 * HOUR)));
            assert_eq!(remaining(), Some(HOUR));
            assert!(timeout(3 * HOUR, pending::<()>()).await.is_err());
            (remaining(), task)
        };
        let (left, task) = deadline_scope(future::now() + HOUR, work).await.unwrap();
        assert_eq!(left, Some(Duration::ZERO));
        assert!(task.await.unwrap().unwrap_err().is_ambient);
        assert_eq!(begin.elapsed(), ms(1_000) + 10 * HOUR);
    });
}

#[test]
fn tokios_own_types_convert() {
    paused(async {
        advance(HOUR).await;
        let here = Instant::now();
        let there: tokio::time::Instant = here.into();
        assert_eq!(there, tokio::time::Instant::now());
        assert_eq!(Instant::from(there + HOUR), here + HOUR);
        let theirs = async || -> Result<(), Elapsed> {
            tokio::time::timeout(HOUR, pending()).await?;
            Ok(())
        };
        assert_eq!(Err(theirs().await.unwrap_err()), timeout(HOUR, pending::<()>()).await);
    });
}

#[test]
fn limiters_follow_the_callers_clock() {
    on_moved_clocks(|| async {
        let limiter = || Timers::process().unwrap().limiter(1, ms(100));
        let keyed: KeyedLimiter<u32> = limiter().keyed().unwrap();
        keyed.try_acquire(&1, 1).unwrap();
        assert_eq!(keyed.try_acquire(&1, 1), Err(AcquireError::Empty));
        advance(ms(2_000)).await;
        keyed.try_acquire(&1, 1).unwrap();
        let begin = Instant::now();
        timeout(ms(5_000), keyed.limiter(&1).unwrap().acquire(1)).await.unwrap().unwrap();
        let limiter = limiter().start().unwrap();
        limiter.try_acquire(1).unwrap();
        for _ in 0..5 {
            timeout(ms(5_000), limiter.acquire(1)).await.unwrap().unwrap();
        }
        assert!((ms(500)..=ms(600)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
        assert!(limiter.retry_after(1).unwrap() <= ms(100));
    });
}

#[test]
fn callbacks_follow_the_callers_clock() {
    on_moved_clocks(|| async {
        let (timers, (fired, fires)) = (Timers::process().unwrap(), channel());
        let fire = |what: &'static str| {
            let (fired, begin) = (fired.clone(), timers.now());
            move |now| fired.send((what, now - begin)).unwrap()
        };
        let [one, two, three, four] = ["coarse", "precise", "periodic", "clock"].map(fire);
        let coarse = timers.timeout(move |timer| one(timer.now()));
        let precise = timers.hrtimer(move |timer| two(timer.now()));
        let periodic = timers.periodic(move |timer| three(timer.now()));
        let (clock, now) = (timers.clone(), timers.now_on(TimeBase::Realtime));
        let alarm = timers.clock_timer(TimeBase::Realtime, move |_| four(clock.now()));
        precise.start(2 * HOUR).unwrap();
        coarse.start(HOUR).unwrap();
        periodic.start(3 * HOUR).unwrap();
        alarm.start_at(now + 4 * HOUR).unwrap();
        sleep(5 * HOUR).await;
        let seen: Vec<_> = fires.try_iter().collect();
        let hours = [("coarse", 1), ("precise", 2), ("periodic", 3), ("clock", 4)];
        assert_eq!(seen, hours.map(|(what, hours)| (what, hours * HOUR)));
        assert_eq!(timers.now_on(TimeBase::Realtime) - now, 5 * HOUR);
        // A coarse timer fires at its deadline, although its bucket ends after that of another.
        let begin = Instant::now();
        precise.start(HOUR).unwrap();
        coarse.start(Duration::from_secs(3_500)).unwrap();
        periodic.start(ms(10)).unwrap();
        periodic.cancel();
        sleep(Duration::from_secs(3_550)).await;
        assert_eq!(fires.try_recv().unwrap().0, "coarse");
        assert_eq!(
            (begin.elapsed(), fires.try_recv().is_err()),
            (Duration::from_secs(3_550), true)
        );
    });
}

/// A limiter that exists already when its caller's clock is paused, such as a static one.
#[test]
fn limiters_of_another_clock_refuse_the_caller() {
    fn limiters(timers: &Timers) -> (Limiter, KeyedLimiter<u32>) {
        let builder = timers.limiter(1, ms(1));
        (builder.clone().start().unwrap(), builder.keyed().unwrap())
    }
    let real = limiters(&Timers::process().unwrap());
    // A limiter that has been used has permits that can be taken without its lock.
    real.0.try_acquire(1).unwrap();
    let one = paused_runtime();
    let of_another_runtime = one.block_on(async { limiters(&Timers::process().unwrap()) });
    let refused = |(limiter, keyed): &(Limiter, KeyedLimiter<u32>), error| {
        assert_eq!(limiter.try_acquire(1), Err(error));
        assert_eq!(pollster::block_on(limiter.acquire(1)), Err(error));
        assert_eq!(limiter.blocking_acquire(1), Err(error));
        assert_eq!(limiter.retry_after(1), Err(error));
        assert_eq!(limiter.available(), 0);
        assert_eq!(keyed.try_acquire(&1, 1), Err(error));
        assert_eq!(keyed.limiter(&1).map(drop), Err(error));
        assert_eq!(keyed.retry_after(&1, 1), Err(error));
        assert_eq!(keyed.available(&1), 0);
    };
    let refused_by = |caller| {
        let by = |permits| AcquireError::OtherClock { caller, permits };
        refused(&real, by(ClockKind::System));
        refused(&of_another_runtime, by(ClockKind::Runtime));
        // A virtual clock is chosen on purpose.
        let time = VirtualTime::new();
        limiters(time.timers()).0.try_acquire(1).unwrap();
    };
    paused(async { refused_by(ClockKind::Runtime) });
    let entered = VirtualTime::new().enter();
    refused_by(ClockKind::Virtual);
    let message = |limiter: &Limiter| limiter.try_acquire(1).unwrap_err().to_string();
    let both = "on a virtual clock, which the program moves, and the permits come by the ";
    assert!(message(&real.0).contains(&format!("{both}system's clock")));
    assert!(message(&of_another_runtime.0).contains(&format!("{both}clock of a tokio runtime")));
    drop(entered);
    let message = paused(async { message(&of_another_runtime.0) });
    assert!(message.contains("another one; create"), "{message}");
    drop(one);
    refused(&of_another_runtime, AcquireError::NoTimers);
    std::thread::sleep(ms(2));
    real.0.try_acquire(1).unwrap();
    real.1.try_acquire(&1, 1).unwrap();
}

/// Callers outside of the runtime wait for permits that never come.
#[test]
fn the_end_of_a_runtime_ends_the_waits_for_its_permits() {
    let runtime = paused_runtime();
    let limiter =
        runtime.block_on(async { Timers::process().unwrap().limiter(1, HOUR).start().unwrap() });
    limiter.try_acquire(1).unwrap();
    let (ended, ends) = channel();
    for _ in 0..3 {
        let (limiter, ended) = (limiter.clone(), ended.clone());
        std::thread::spawn(move || ended.send(limiter.blocking_acquire(1)));
    }
    while limiter.waiting() < 3 {
        std::thread::yield_now();
    }
    drop(runtime);
    for _ in 0..3 {
        assert_eq!(ends.recv_timeout(ms(60_000)), Ok(Err(AcquireError::NoTimers)));
    }
}

#[test]
fn the_end_of_a_runtime_is_the_last_tick_of_an_interval() {
    let runtime = paused_runtime();
    let ticks = runtime.block_on(async { future::interval(ms(10)) });
    let mut ticks = ticks.missed(Missed::Burst);
    let first = runtime.block_on(ticks.tick());
    drop(runtime);
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(last) = ticks.poll_tick(&mut cx) else { panic!("it waits") };
    assert_eq!((last.due - first.due, last.overruns), (ms(10), 0));
    assert!(ticks.poll_tick(&mut cx).is_pending());
}

/// Nothing of the library has noticed the paused clock yet when the limiter is asked. Method: a
/// process of its own, in which no other test has.
#[test]
fn a_limiter_refuses_its_first_caller_on_a_paused_clock() {
    if alone("moved_clocks::a_limiter_refuses_its_first_caller_on_a_paused_clock", &[""]).is_none()
    {
        return;
    }
    let limiter = Timers::process().unwrap().limiter(1, HOUR).start().unwrap();
    limiter.try_acquire(1).unwrap();
    // This call takes no lock: it finds that no permits are left.
    assert_eq!(limiter.try_acquire(1), Err(AcquireError::Empty));
    paused(async {
        tokio::time::advance(2 * HOUR).await;
        let (caller, permits) = (ClockKind::Runtime, ClockKind::System);
        let other = AcquireError::OtherClock { caller, permits };
        assert_eq!(limiter.try_acquire(1), Err(other));
    });
}

/// Nothing of the library has noticed the paused clock yet when a timeout has to wait there.
/// Method: as above, a process for each kind of timeout.
#[test]
fn a_first_timeout_follows_a_paused_clock() {
    let kinds = ["precise", "coarse", "tokio"];
    let Some(kind) = alone("moved_clocks::a_first_timeout_follows_a_paused_clock", &kinds) else {
        return;
    };
    assert!(crate::ours::differences::timeouts_without_a_driver());
    paused(async {
        let begin = tokio::time::Instant::now();
        let (one, two) = (future::timeout(HOUR, pending::<()>()), timeout(HOUR, pending::<()>()));
        let coarse = future::coarse_timeout(HOUR, pending::<()>());
        // Tokio's own function: the call is not seen here. The timeout counts from its first poll.
        tokio::time::advance(HOUR / 2).await;
        let ended = match kind.as_str() {
            "precise" => one.await.is_err(),
            "coarse" => coarse.await.is_err(),
            _ => two.await.is_err(),
        };
        assert!(ended);
        assert_eq!(begin.elapsed(), HOUR + HOUR / 2);
        let made = timeout(HOUR, pending::<()>());
        tokio::time::advance(HOUR / 2).await;
        assert!(made.await.is_err());
        assert_eq!(begin.elapsed(), 2 * HOUR + HOUR / 2, "it counts from the call");
    });
}

/// CPU time is real, whatever the caller's clock is.
#[cfg(target_os = "linux")]
#[test]
fn a_throttle_has_the_systems_clock() {
    paused(async {
        let throttle = Timers::process().unwrap().throttle(ms(1), ms(10)).start().unwrap();
        let mut worker = throttle.join().unwrap();
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {
            worker.check().unwrap();
        }
        assert!(throttle.counts().refills > 0, "{:?}", throttle.counts());
    });
}
