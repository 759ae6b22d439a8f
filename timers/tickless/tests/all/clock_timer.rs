//! H5 (clocks that step): timers on realtime and boottime while these clocks are set by hours in
//! either direction and the system is suspended. A timer is never early on its own clock, and never
//! later than the step.

use crate::support::{HOUR, Log, MS, Place, Rng, SECOND, rounds, seed, thread_names, wait_until};
use crate::support::{shared_count, shared_flag};
use TimeBase::{Boottime, Monotonic, Realtime};
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};
use tickless::callback::{Cancel, StartError, Started};
use tickless::clock::{ClockTimer, TimeBase, realtime};
use tickless::future::{ClockSleep, TimerSource};
use tickless::future::{clock_sleep, clock_timeout, clock_timeout_at};
use tickless::time::Instant;
use tickless::{CancelError, Timers, VirtualTime};

fn before(at: Instant, by: Duration) -> Instant {
    at.checked_sub(by).unwrap()
}

/// A timer that logs the time on its own clock when it fires.
fn noting(timers: &Timers, base: TimeBase) -> (ClockTimer, Log<Instant>) {
    let (log, noted) = Log::shared();
    (timers.clock_timer(base, move |fired| noted.push(fired.now())), log)
}

#[test]
fn forwarding_a_relative_timer_ignores_steps() {
    let time = VirtualTime::new();
    let log = Log::new();
    let (noted, timers) = (log.clone(), time.timers().clone());
    let timer = time.timers().clock_timer(Realtime, move |fired| {
        noted.push((timers.now(), fired.forward(HOUR)));
    });
    let begun = time.now();
    timer.start(HOUR).unwrap();
    time.advance(HOUR);
    time.set_realtime(time.now_on(Realtime) + HOUR * 1000);
    time.advance(HOUR);
    assert_eq!(log.take(), [(begun + HOUR, 1), (begun + HOUR * 2, 1)]);
}

#[test]
fn a_daily_timer_fires_once_a_day() {
    const DAY: Duration = Duration::from_secs(86_400);
    let time = VirtualTime::new();
    let (log, noted) = Log::shared();
    let daily = time.timers().clock_timer(Realtime, move |fired| {
        let due = fired.deadline();
        noted.push((due, fired.forward(DAY)));
    });
    let first = time.now_on(Realtime) + HOUR * 3;
    daily.start_at(first).unwrap();
    time.advance(DAY * 3);
    assert_eq!(log.take(), [(first, 1), (first + DAY, 1), (first + DAY * 2, 1)]);
    time.set_realtime(first + DAY * 10 + HOUR);
    assert_eq!(log.take(), [(first + DAY * 3, 8)], "seven were skipped");
    time.set_realtime(first + DAY * 9);
    time.advance(DAY + HOUR * 23);
    assert_eq!(log.len(), 0, "the eleventh has not come again");
    time.advance(HOUR);
    assert_eq!(log.take(), [(first + DAY * 11, 1)]);
}

#[test]
fn a_step_revives_no_cancelled_timer() {
    let time = VirtualTime::new();
    let far = time.now_on(Realtime) + HOUR;
    let (timer, log) = noting(time.timers(), Realtime);
    timer.start_at(far + HOUR * 2).unwrap();
    assert_eq!(timer.shutdown_sync(), Ok(Cancel::Pending));
    assert_eq!(timer.start_at(far), Err(StartError::Shut));
    time.set_realtime(far + HOUR * 9);
    assert_eq!((log.len(), timer.deadline()), (0, None));

    // Cancelled by its own callback, which had asked for a restart.
    let (place, own) = Place::<ClockTimer>::shared();
    place.put(time.timers().clock_timer(Realtime, move |fired| {
        fired.restart_at(fired.deadline() + HOUR);
        assert_eq!(own.with(ClockTimer::cancel_sync), Err(CancelError::OwnCallback));
        fired.stop();
    }));
    place.with(|timer| timer.start_at(Instant::from_nanos(1))).unwrap();
    time.advance(HOUR * 3);
    time.set_realtime(time.now_on(Realtime) + HOUR * 3);
    assert!(!place.with(ClockTimer::is_pending));
    assert_eq!((time.timers().stats().panics, time.timers().stats().pending()), (0, 0));
    drop(place.take());
}

/// The model's state of one timer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Twin {
    Idle,
    /// Armed for this time on its own clock.
    Own(Instant),
    /// Armed for this time on the timers' clock.
    Timers(Instant),
}

/// Goal: H5 (clocks that step), W1 (never early). Method: random histories against a list.
#[test]
fn histories_fire_each_timer_by_its_own_clock() {
    let seed = seed("clock_timer", "histories_fire_each_timer_by_its_own_clock");
    let mut fired_by_steps = 0;
    for round in 0..rounds(60) {
        fired_by_steps += history(&mut Rng::new(seed.wrapping_add(round)));
    }
    assert!(cfg!(miri) || fired_by_steps > 20, "steps fired {fired_by_steps}");
}

fn history(rng: &mut Rng) -> u64 {
    const BASES: [TimeBase; 3] = [Monotonic, Boottime, Realtime];
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(50));
    let base_of = |id: usize| BASES[id % 3];
    let log = Log::<usize>::new();
    let timer = |id| {
        let log = log.clone();
        time.timers().clock_timer(base_of(id), move |_| log.push(id))
    };
    let timers: Vec<ClockTimer> = (0..9).map(timer).collect();
    let mut twins = [Twin::Idle; 9];
    let mut fired_by_steps = 0;
    for _ in 0..200 {
        let id = rng.below(9) as usize;
        let some = Duration::from_nanos(rng.of_any_size(44));
        let (own, real) = (time.now_on(base_of(id)), time.now_on(Realtime));
        let kind = rng.below(10);
        let relative = |after| match base_of(id) {
            Boottime => Twin::Own(own + after),
            _ => Twin::Timers(time.now() + after),
        };
        match kind {
            0 | 1 => {
                timers[id].start_at(own + some).unwrap();
                twins[id] = Twin::Own(own + some);
            }
            2 => {
                timers[id].start(some).unwrap();
                twins[id] = relative(some);
            }
            3 => {
                let was = match rng.below(2) == 0 {
                    true => timers[id].cancel_single_shot().unwrap(),
                    false => timers[id].cancel(),
                };
                assert_eq!(was == Cancel::Pending, twins[id] != Twin::Idle);
                twins[id] = Twin::Idle;
            }
            4 => time.set_realtime(real + some),
            5 => time.set_realtime(before(real, some.min(HOUR * 2))),
            6 => time.suspend(some),
            7 => {
                timers[id].start_from(before(time.now(), SECOND), some).unwrap();
                twins[id] = relative(some.saturating_sub(SECOND));
            }
            8 => {
                let keeps = match twins[id] {
                    Twin::Idle => false,
                    Twin::Own(at) => at - own <= some,
                    Twin::Timers(at) => at - time.now() <= some,
                };
                assert_eq!(timers[id].reduce(some).unwrap() == Started::Kept, keeps);
                if !keeps {
                    twins[id] = relative(some);
                }
            }
            _ => time.advance(some),
        }
        if matches!(kind, 0..=2 | 7 | 8) {
            // What is already due fires when the clock is next advanced.
            time.advance(Duration::ZERO);
        }
        let mut due: Vec<usize> =
            (0..9).filter(|&id| is_due(&time, base_of(id), twins[id])).collect();
        due.iter().for_each(|&id| twins[id] = Twin::Idle);
        let mut fired = log.take();
        fired_by_steps += if (4..=6).contains(&kind) { fired.len() as u64 } else { 0 };
        fired.sort();
        due.sort();
        assert_eq!(fired, due, "of kind {kind}, by {some:?}");
    }
    fired_by_steps
}

fn is_due(time: &VirtualTime, base: TimeBase, twin: Twin) -> bool {
    match twin {
        Twin::Idle => false,
        Twin::Own(at) => at <= time.now_on(base),
        Twin::Timers(at) => at <= time.now(),
    }
}

/// Goal: X4 (drops in a callback).
#[test]
fn clock_timers_may_be_dropped_in_callbacks() {
    let time = VirtualTime::new();
    let (other, log) = noting(time.timers(), Realtime);
    other.start(SECOND).unwrap();
    let (place, own) = Place::<(ClockTimer, ClockTimer)>::shared();
    let timer = time.timers().clock_timer(Boottime, move |fired| {
        fired.restart(SECOND);
        drop(own.take());
    });
    timer.start(MS).unwrap();
    place.put((timer, other));
    let timers = time.timers().clone();
    time.suspend(SECOND);
    assert_eq!((log.len(), timers.stats().pending()), (0, 0));
    time.set_realtime(time.now_on(Realtime) + HOUR);
    let (timer, _log) = noting(&timers, Realtime);
    timer.start_at(Instant::from_nanos(5)).unwrap();
    drop((time, timers));
    assert_eq!(timer.cancel_sync(), Ok(Cancel::Pending));
}

fn has_thread(kind: &str) -> bool {
    thread_names().iter().any(|found| found.starts_with(kind))
}

#[test]
fn no_timer_is_early_on_real_clocks() {
    if cfg!(miri) {
        return;
    }
    let timers = Timers::builder().bases(1).start().unwrap();
    let (log, noted) = (Log::new(), Log::new());
    let seen = log.clone();
    let timer = timers.clock_timer(Realtime, move |_| seen.push(SystemTime::now()));
    assert!(timers.clock_watch_fallback().is_none());
    let boot_seen = noted.clone();
    let boot = timers.clock_timer(Boottime, move |fired| {
        boot_seen.push((fired.now(), fired.deadline()));
    });
    let due = SystemTime::now() + MS * 20;
    timer.start_at(realtime(due)).unwrap();
    boot.start_at(timers.now_on(Boottime) + MS * 20).unwrap();
    wait_until("both fire", || log.len() == 1 && noted.len() == 1);
    assert!(log.take()[0] >= due);
    assert!(noted.take().iter().all(|(now, due)| now >= due));
    // Periodic, on its own clock.
    let again = noted.clone();
    let heart = timers.clock_timer(Realtime, move |fired| {
        again.push((fired.now(), fired.deadline()));
        fired.forward(MS);
    });
    heart.start(MS).unwrap();
    wait_until("it beats", || noted.len() > 10);
    assert!(has_thread("tickless-c/"), "it has its name");
    heart.cancel_sync().unwrap();
    drop((heart, timer, boot, timers));
    // A joined thread may still be listed for a moment.
    wait_until("the watching thread has ended", || !has_thread("tickless-c/"));

    let (timers, mut driver) = Timers::builder().start_in_loop_with(|_| {});
    let (timer, log) = noting(&timers, Realtime);
    // Longer than the interval at which timers check their clock if the system reports no steps.
    let due = timers.now_on(Realtime) + MS * 1_050;
    timer.start_at(due).unwrap();
    wait_until("it fires in the loop", || {
        driver.run();
        log.len() == 1
    });
    assert!(log.take()[0] >= due);
}

#[test]
fn sets_on_one_clock_share_its_steps() {
    let time = VirtualTime::new();
    time.set_realtime(time.now_on(Realtime) + HOUR * 5);
    time.suspend(HOUR);
    let others = time.add_timers(Timers::builder().bases(1));
    for base in [Monotonic, Boottime, Realtime] {
        assert_eq!(others.now_on(base), time.now_on(base), "{base:?}");
    }
    let (timer, log) = noting(&others, Realtime);
    let noon = time.now_on(Realtime) + HOUR * 12;
    timer.start_at(noon).unwrap();
    time.set_realtime(noon + SECOND);
    assert_eq!(log.take(), [noon + SECOND], "at once");
}

/// Goal: X10 (each arming fires, or is cancelled or replaced). Method: one thread moves the clocks,
/// so that the core often fires a timer whose deadline has moved; another arms and cancels it.
#[test]
fn every_arming_is_accounted_for_once() {
    let mut rng = Rng::new(seed("clock_timer", "every_arming_is_accounted_for_once"));
    let time = VirtualTime::new();
    let ((fired, count), (done, is_done)) = (shared_count(), shared_flag());
    let timer = time.timers().clock_timer(Realtime, move |_| _ = count.fetch_add(1, Relaxed));
    let (mut armed, mut cancelled) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                time.set_realtime(before(time.now_on(Realtime), MS));
                time.advance(MS * 2);
            }
        });
        for _ in 0..rounds(10_000) {
            let after = Duration::from_nanos(rng.below(3_000_000));
            let started = match rng.below(4) {
                0 => {
                    cancelled += u64::from(timer.try_cancel() == Cancel::Pending);
                    continue;
                }
                1 => timer.reduce(after),
                2 => timer.start(after),
                _ => timer.start_at(time.now_on(Realtime) + after),
            };
            armed += u64::from(started == Ok(Started::Idle));
        }
        done.store(true, Relaxed);
    });
    cancelled += u64::from(timer.cancel_sync() == Ok(Cancel::Pending));
    assert_eq!(armed, fired.load(Relaxed) + cancelled);
}

#[test]
fn realtime_can_be_set_to_the_end_of_time() {
    let time = VirtualTime::new();
    let last = before(Instant::NEVER, Duration::from_nanos(1));
    let (timer, log) = noting(time.timers(), Realtime);
    for to in [last, Instant::from_nanos(5), before(last, SECOND), last] {
        time.set_realtime(to);
        assert_eq!(time.now_on(Realtime), to);
        timer.start_at(last).unwrap();
        time.advance(SECOND * 100);
        let is_due = to > before(last, HOUR);
        assert_eq!((log.take().len() == 1, timer.is_pending()), (is_due, !is_due), "{to:?}");
    }
    // A periodic one, whose next deadline would be beyond the end.
    let beat = time.timers().clock_timer(Realtime, |fired| _ = fired.forward(SECOND));
    beat.start_at(before(last, SECOND)).unwrap();
    time.advance(SECOND * 100);
    time.set_realtime(Instant::from_nanos(5));
    time.advance(HOUR);
    assert_eq!(time.now_on(Realtime), Instant::from_nanos(5) + HOUR);
}

/// Goal: sleeps and timeouts of tasks follow their clocks through steps and a suspend, as callbacks
/// do: absolute ones by the clock, durations by the time that passes.
#[test]
fn futures_follow_their_clocks() {
    let time = VirtualTime::new();
    let source = TimerSource::from(&time);
    let ahead = |base| time.now_on(base) + HOUR * 10;
    let mut sleeps = [
        source.clock_sleep_until(Realtime, ahead(Realtime)),
        source.clock_sleep_until(Boottime, ahead(Boottime)),
        source.clock_sleep_until(Monotonic, ahead(Monotonic)),
        source.clock_sleep(Realtime, HOUR * 10),
        source.clock_sleep(Boottime, HOUR * 10),
    ];
    let elapsed = |sleeps: &mut [ClockSleep; 5]| {
        sleeps.each_mut().map(|sleep| {
            let polled = Pin::new(&mut *sleep).poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled.is_ready(), sleep.is_elapsed());
            polled.is_ready()
        })
    };
    assert_eq!(elapsed(&mut sleeps), [false; 5]);
    time.suspend(HOUR * 5);
    time.set_realtime(before(time.now_on(Realtime), HOUR * 4));
    time.advance(HOUR * 5);
    assert_eq!(elapsed(&mut sleeps), [false, true, false, false, true]);
    time.set_realtime(time.now_on(Realtime) + HOUR * 4);
    assert_eq!(elapsed(&mut sleeps), [true, true, false, false, true]);
    time.advance(HOUR * 5);
    assert_eq!(elapsed(&mut sleeps), [true; 5]);
    let [on_realtime, on_boottime, ..] = &mut sleeps;
    on_boottime.reset(HOUR);
    on_realtime.reset_at(time.now_on(Realtime) + HOUR * 2);
    assert_eq!(elapsed(&mut sleeps), [false, false, true, true, true]);
    time.suspend(HOUR);
    assert_eq!(elapsed(&mut sleeps), [false, true, true, true, true]);
    drop(sleeps);
    time.assert_idle();
}

/// Goal: tasks are woken: by a driver thread, and in virtual time exactly at the deadline.
#[test]
fn tasks_sleep_on_other_clocks() {
    let time = VirtualTime::new();
    let (begun, timers) = (time.now(), time.timers());
    time.block_on(async {
        timers.clock_sleep(Boottime, HOUR).await;
        timers.clock_sleep_until(Realtime, time.now_on(Realtime) + HOUR).await;
        timers.clock_sleep_until(Realtime, Instant::ZERO).await;
    });
    assert_eq!(time.now() - begun, HOUR * 2);
    let begun = std::time::Instant::now();
    pollster::block_on(async {
        clock_sleep(Boottime, MS * 5).await;
        let at = realtime(SystemTime::now() + MS * 5);
        let elapsed = clock_timeout_at(Realtime, at, pending::<()>()).await.unwrap_err();
        assert_eq!((elapsed.deadline, elapsed.is_ambient), (at, false));
        let mut work = pin!(clock_timeout(Boottime, MS, clock_sleep(Monotonic, MS * 20)));
        work.as_mut().reset(HOUR);
        work.await.unwrap();
    });
    assert!(begun.elapsed() >= MS * 29, "{:?}", begun.elapsed());
}
