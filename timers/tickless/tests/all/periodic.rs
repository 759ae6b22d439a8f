//! Periodic timers: the phase, missed periods, stops and restarts in callbacks and from outside.

use crate::support::{Log, MS, Place, Rng, rounds, seed, shared_count, shared_flag};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickless::callback::{Cancel, StartError};
use tickless::periodic::{Missed, PeriodError, Phase};
use tickless::time::Instant;
use tickless::{Periodic, Timers, VirtualTime};

/// Runs a periodic timer whose callback takes `takes[n]` nanoseconds at its n-th call. Returns the
/// deadline, time and overruns of each call, and the first deadline.
fn slow_callback(
    missed: Missed,
    period: Duration,
    takes: Vec<u64>,
) -> (Vec<(Instant, Instant, u64)>, Instant) {
    let time = Arc::new(VirtualTime::new());
    let log = Log::new();
    let (clock, written) = (Arc::clone(&time), log.clone());
    let calls = takes.len();
    let mut takes = takes.into_iter();
    let timer = time
        .timers()
        .periodic(move |p| {
            written.push((p.deadline(), p.now(), p.overruns()));
            clock.advance(Duration::from_nanos(takes.next().unwrap_or(0)));
        })
        .missed(missed);
    let first = time.now() + period;
    timer.start(period).unwrap();
    while log.len() < calls {
        assert!(time.advance_to_next());
    }
    assert_eq!(time.timers().stats().panics, 0);
    (log.take(), first)
}

fn takes(rng: &mut Rng, period: u64) -> Vec<u64> {
    // Mostly short, sometimes exactly whole periods, sometimes several of them.
    let one = |rng: &mut Rng| match rng.below(4) {
        0 => rng.below(6 * period),
        1 => rng.below(6) * period,
        _ => rng.below(period),
    };
    (0..5000).map(|_| one(rng)).collect()
}

/// Goal: a late callback is followed by what the setting says. `Skip`: the next deadline is the
/// first that has not passed, the phase stays, and the overruns are exactly the skipped periods.
/// `Burst`: every single expiry comes, however late, and the backlog is reported. `Delay`: there is
/// one full period between the start of a callback and the next deadline.
#[test]
fn missed_periods_are_handled_as_configured() {
    let mut rng = Rng::new(seed("periodic", "missed_periods_are_handled_as_configured"));
    let mut late = |missed| slow_callback(missed, MS, takes(&mut rng, 1_000_000));
    let (fired, first) = late(Missed::Skip);
    let mut total = 0;
    for pair in fired.windows(2) {
        let (deadline, now, overruns) = pair[0];
        let next = pair[1].0;
        assert_eq!(next, deadline + MS * (1 + overruns as u32));
        assert!(next > now && next - now <= MS, "{next:?} is the first deadline after {now:?}");
        total += 1 + overruns;
    }
    let last = fired.last().map(|last| last.0);
    assert_eq!(last, Some(first + MS * total as u32), "the phase stays");
    assert!(total > fired.len() as u64, "some were missed");

    let (fired, first) = late(Missed::Burst);
    for (n, &(deadline, now, overruns)) in fired.iter().enumerate() {
        assert_eq!(deadline, first + MS * n as u32);
        assert!(now >= deadline);
        assert_eq!(u128::from(overruns), (now - deadline).as_nanos() / MS.as_nanos());
    }

    let (fired, _) = late(Missed::Delay);
    assert!(fired.windows(2).all(|pair| pair[1].0 == pair[0].1 + MS));
}

/// Goal: P3 (windows move as a whole): both ends of the window move by the period.
#[test]
fn the_window_moves_as_a_whole() {
    for missed in [Missed::Skip, Missed::Burst, Missed::Delay] {
        let time = VirtualTime::new();
        let (log, written) = Log::shared();
        let timer = time
            .timers()
            .periodic(move |p| {
                written.push((p.deadline(), p.hard_deadline(), p.now()));
            })
            .missed(missed)
            .slack(MS * 2);
        let first = time.now() + MS;
        timer.start_at(first, MS * 10).unwrap();
        time.advance(MS * 13);
        // It fires at the end of its window, because no other timer has an event earlier.
        let fired = log.take();
        assert_eq!(fired[0], (first, first + MS * 2, first + MS * 2));
        let phase = if missed == Missed::Delay { MS * 12 } else { MS * 10 };
        assert_eq!(
            fired[1..],
            [(first + phase, first + phase + MS * 2, first + MS * 12)][..fired.len() - 1]
        );
    }
}

#[test]
fn a_timer_can_be_restarted_with_another_period() {
    let time = VirtualTime::new();
    let (place, log) = (Place::<Periodic>::empty(), Log::new());
    let (own, written, begin) = (place.clone(), log.clone(), time.now());
    place.put(time.timers().periodic(move |p| {
        written.push((p.now() - begin).as_millis());
        if written.len() == 5 {
            own.with(|timer| timer.start(MS * 100)).unwrap();
        }
    }));
    place.with(|timer| timer.start(MS * 10)).unwrap();
    time.advance(MS * 25);
    place.with(|timer| timer.start(MS * 7)).unwrap();
    time.advance(MS * 300);
    assert_eq!(log.take(), [10, 20, 32, 39, 46, 146, 246]);
    assert_eq!(time.timers().stats().panics, 0);
    drop(place.take());
}

#[test]
fn a_cancel_in_its_callback_stops_a_timer() {
    let time = VirtualTime::new();
    let (place, log) = (Place::<Periodic>::empty(), Log::new());
    let (own, written) = (place.clone(), log.clone());
    place.put(time.timers().periodic(move |p| {
        let found = own.with(Periodic::cancel);
        p.restart(MS);
        written.push((found, own.with(Periodic::is_active)));
    }));
    for _ in 0..2 {
        place.with(|timer| timer.start(MS)).unwrap();
        assert!(place.with(Periodic::is_active));
        time.advance(MS * 10);
        assert_eq!(log.take(), [(Cancel::Running, false)]);
        assert_eq!(place.with(Periodic::cancel), Cancel::Idle);
    }
    drop(place.take());
}

#[test]
fn a_callback_chooses_its_next_deadline() {
    let time = VirtualTime::new();
    let log = Log::new();
    let (written, begin) = (log.clone(), time.now());
    let timer = time.timers().periodic(move |p| {
        written.push((p.now() - begin).as_millis());
        match written.len() {
            2 => p.restart(MS * 100),
            4 => p.stop(),
            _ => {}
        }
    });
    timer.start(MS * 10).unwrap();
    time.advance(MS * 1000);
    assert_eq!(log.take(), [10, 20, 120, 130]);
    assert!(!timer.is_active());
}

#[test]
fn starts_and_stops_during_callbacks_never_mix() {
    let mut rng = Rng::new(seed("periodic", "starts_and_stops_during_callbacks_never_mix"));
    let timers = Timers::builder().bases(2).start().unwrap();
    // The time of the start, the first deadline, and the period.
    let starts = Arc::new(Mutex::new(Vec::<(Instant, Instant, Duration)>::new()));
    let (begun, ended, astray) = <[Arc<AtomicU64>; 3]>::default().into();
    let (known, counts) = (Arc::clone(&starts), [&begun, &ended, &astray].map(Arc::clone));
    let timer = timers.periodic(move |p| {
        counts[0].fetch_add(1, Ordering::SeqCst);
        let belongs = |&(_, first, period): &(Instant, Instant, Duration)| {
            p.deadline() >= first && (p.deadline() - first).as_nanos() % period.as_nanos() == 0
        };
        // Ignore starts after `found_at`: if the driver loses its CPU here, there may be many.
        let known = known.lock().unwrap();
        let newest = known.partition_point(|&(made, ..)| made <= p.found_at());
        let is_known = known[newest.saturating_sub(2)..].iter().any(belongs);
        drop(known);
        counts[2].fetch_add(u64::from(!is_known), Ordering::SeqCst);
        counts[1].fetch_add(1, Ordering::SeqCst);
    });
    let until = std::time::Instant::now() + MS * 300;
    let mut stops = 0;
    while std::time::Instant::now() < until {
        let period = Duration::from_nanos(1_000 + rng.below(50_000));
        let first = timers.now() + Duration::from_nanos(rng.below(30_000));
        starts.lock().unwrap().push((timers.now(), first, period));
        timer.start_at(first, period).unwrap();
        for _ in 0..rng.below(2000) {
            std::hint::spin_loop();
        }
        if rng.below(3) == 0 {
            let before = begun.load(Ordering::SeqCst);
            let found = timer.cancel();
            let mut most = begun.load(Ordering::SeqCst);
            if found == Cancel::Running {
                // Its callback may be just before the line that counts it.
                most += 1;
            }
            for _ in 0..rng.below(2000) {
                std::hint::spin_loop();
            }
            let after = begun.load(Ordering::SeqCst);
            assert!(after <= most, "{before} before a cancel that found {found:?}, {after} after");
            assert_ne!(timer.cancel(), Cancel::Pending, "it has been stopped");
            stops += 1;
        }
    }
    timer.cancel();
    drop(timer);
    println!("{} callbacks, {stops} stops", begun.load(Ordering::SeqCst));
    assert_eq!(begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
    assert_eq!((astray.load(Ordering::SeqCst), timers.stats().panics), (0, 0));
    assert!(begun.load(Ordering::SeqCst) > 0 && stops > 0);
}

#[test]
fn shutdown_is_final_and_try_cancel_spares_a_running_callback() {
    let time = VirtualTime::new();
    let (own, found) = Place::<Periodic>::shared();
    own.put(time.timers().periodic(move |_| {
        let states =
            found.with(|timer| (timer.try_cancel(), timer.is_pending(), timer.is_active()));
        assert_eq!(states, (Cancel::Running, false, true));
    }));
    own.with(|timer| timer.start(MS)).unwrap();
    assert!(own.with(Periodic::is_pending));
    time.advance(3 * MS);
    assert_eq!((time.timers().stats().total().fired, time.timers().stats().panics), (3, 0));
    assert_eq!(own.with(Periodic::try_cancel), Cancel::Pending);
    assert_eq!(
        (own.with(Periodic::try_cancel), own.with(Periodic::is_pending)),
        (Cancel::Idle, false)
    );
    drop(own.take());

    let timer = time.timers().periodic(|_| {}).phase(Phase::Spread);
    timer.start(MS).unwrap();
    assert_eq!(timer.shutdown_sync(), Ok(Cancel::Pending));
    assert_eq!(timer.start(MS), Err(PeriodError::Start(StartError::Shut)));
    assert_eq!((timer.is_pending(), timer.is_active()), (false, false));
    assert_eq!(time.timers().phase_count(MS), 0);
}

/// Goal: X10 (each arming fires or is cancelled), for starts and cancels while another thread fires
/// the timer.
#[test]
fn every_start_fires_or_is_cancelled() {
    let mut rng = Rng::new(seed("periodic", "every_start_fires_or_is_cancelled"));
    let time = VirtualTime::new();
    let ((fired, count), (done, is_done)) = (shared_count(), shared_flag());
    let timer = time.timers().periodic(move |period| {
        count.fetch_add(1, Ordering::Relaxed);
        period.stop();
    });
    let (starts, mut cancelled) = (rounds(10_000), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                time.advance(MS);
            }
        });
        for _ in 0..starts {
            timer.start_at(time.now() + Duration::from_nanos(rng.below(2_000_000)), MS).unwrap();
            (0..rng.below(300)).for_each(|_| std::hint::spin_loop());
            let found = match rng.below(4) {
                0 => timer.cancel_sync().unwrap(),
                1 => timer.try_cancel(),
                _ => timer.cancel(),
            };
            cancelled += u64::from(found == Cancel::Pending);
            // A start during the callback could be cancelled by a call that returns `Running`.
            if found == Cancel::Running {
                assert_ne!(timer.cancel_sync(), Ok(Cancel::Pending));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(starts, fired.load(Ordering::Relaxed) + cancelled);
}
