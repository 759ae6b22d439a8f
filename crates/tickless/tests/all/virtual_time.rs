//! Virtual time: which timers fire, in which order, and what callbacks may do to the clock.

use crate::support::{Log, Place, Rng, seed};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{HrTimer, Timers, VirtualTime};

const MS: Duration = Duration::from_millis(1);

/// Goal: timers fire in order of expiry over bases and kinds; those of one base and kind with equal
/// deadlines fire in the order of arming. Method: thousands of timers on three bases, armed at
/// different times for a few instants.
#[test]
fn timers_fire_in_order_of_expiry_then_of_arming() {
    let mut rng = Rng::new(seed("virtual_time", "timers_fire_in_order_of_expiry_then_of_arming"));
    let time = VirtualTime::with_builder(Timers::builder().bases(3), Instant::from_secs(5));
    let log = Log::<(u64, u16, &str, Instant, Instant)>::new();
    let (mut timeouts, mut hrtimers, mut due) = (Vec::new(), Vec::new(), Vec::new());
    for armed in 0..3000u64 {
        if rng.below(20) == 0 {
            time.advance(Duration::from_micros(rng.below(3000)));
        }
        let base = rng.below(3) as u16;
        let deadline = time.now() + MS * rng.below(60) as u32;
        let log = log.clone();
        if rng.below(2) == 0 {
            let timer = time
                .timers()
                .timeout(move |f| log.push((armed, base, "coarse", f.deadline(), f.now())))
                .pinned(CpuId(base));
            timer.start_at(deadline).unwrap();
            timeouts.push(timer);
        } else {
            let timer = time
                .timers()
                .hrtimer(move |f| log.push((armed, base, "precise", f.deadline(), f.now())))
                .pinned(CpuId(base));
            timer.start_at(deadline).unwrap();
            hrtimers.push(timer);
        }
        due.push(deadline);
    }
    time.advance(Duration::from_secs(1));
    let fired = log.take();
    assert_eq!(fired.len(), due.len());
    let mut last_of = std::collections::HashMap::new();
    for pair in fired.windows(2) {
        assert!(pair[0].4 <= pair[1].4, "{:?} ran before {:?}", pair[0], pair[1]);
    }
    for (armed, base, family, deadline, now) in fired {
        assert_eq!(deadline, due[armed as usize]);
        assert!(now >= deadline, "early");
        assert!(family == "coarse" || now == deadline, "{family} {armed} at {now:?}");
        if let Some(earlier) = last_of.insert((base, family, deadline), armed) {
            assert!(earlier < armed, "{earlier} and {armed} changed places at {deadline:?}");
        }
    }
}

/// Goal: timers that a callback arms for the current instant fire at that instant, on its own base
/// and on others, in that order.
#[test]
fn timers_armed_for_the_current_instant_fire_at_it() {
    let time = VirtualTime::with_builder(Timers::builder().bases(3), Instant::from_secs(5));
    let log = Log::new();
    let others: Vec<HrTimer> = [0u16, 2, 1]
        .map(|base| {
            let log = log.clone();
            let timer = time.timers().hrtimer(move |f| log.push((f.base(), f.now())));
            timer.pinned(CpuId(base))
        })
        .into();
    let first = time.timers().hrtimer(move |f| {
        for other in &others {
            other.start_at(f.now()).unwrap();
        }
    });
    let first = first.pinned(CpuId(1));
    first.start(MS).unwrap();
    time.advance(MS * 3);
    let at = Instant::from_secs(5) + MS;
    // Base 1 finishes its expiry, then base 2 has its turn, then base 0 once more.
    assert_eq!(log.take(), [(CpuId(1), at), (CpuId(2), at), (CpuId(0), at)]);
    assert_eq!(time.now(), Instant::from_secs(5) + MS * 3);
}

/// Goal: a callback takes virtual time by advancing the clock. Timers that come due by then fire
/// late, after it has returned; none fires inside it.
#[test]
fn a_callback_may_move_the_clock() {
    let time = Arc::new(VirtualTime::new());
    let begin = time.now();
    let log = Log::new();
    let (clock, written) = (Arc::clone(&time), log.clone());
    let slow = time.timers().hrtimer(move |f| {
        written.push(("slow begins", f.now() - begin));
        clock.advance(MS * 5);
        clock.advance_to(begin + MS * 7);
        assert!(clock.advance_to_next(), "there are others pending");
        written.push(("slow ends", f.now() - begin));
    });
    let start = |after: u32, what: &'static str| {
        let written = log.clone();
        let timer = time.timers().hrtimer(move |f| written.push((what, f.late_by())));
        timer.start(MS * after).unwrap();
        timer
    };
    let _others = [start(3, "first"), start(9, "second"), start(12, "third")];
    slow.start(MS).unwrap();
    time.advance(MS * 20);
    let expected = [
        ("slow begins", MS),
        ("slow ends", MS * 7),
        ("first", MS * 4),
        ("second", Duration::ZERO),
        ("third", Duration::ZERO),
    ];
    assert_eq!(log.take(), expected);
    assert_eq!((time.timers().stats().panics, time.now() - begin), (0, MS * 20));
}

/// Goal: X2 (no overlap) on virtual time: a callback that rearms its timer and advances the clock
/// past the new deadline does not run inside itself.
#[test]
fn a_callback_that_moves_the_clock_does_not_overlap_itself() {
    let time = Arc::new(VirtualTime::new());
    let (clock, place) = (Arc::clone(&time), Place::<HrTimer>::empty());
    let (own, depth) = (place.clone(), AtomicU64::new(0));
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    place.put(time.timers().hrtimer(move |_| {
        assert_eq!(depth.fetch_add(1, Ordering::Relaxed), 0, "overlaps itself");
        if counted.fetch_add(1, Ordering::Relaxed) < 3 {
            own.with(|timer| timer.start(MS)).unwrap();
            clock.advance(MS * 2);
        }
        depth.fetch_sub(1, Ordering::Relaxed);
    }));
    place.with(|timer| timer.start(MS)).unwrap();
    time.advance(MS * 10);
    assert_eq!((calls.load(Ordering::Relaxed), time.timers().stats().panics), (4, 0));
    drop(place.take());
}

/// Goal: X2 (no overlap) with two threads that advance one clock: one callback at a time, each
/// once.
#[test]
fn threads_that_move_the_clock_take_turns() {
    let time = VirtualTime::new();
    let (inside, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let timers: Vec<_> = (0..200)
        .map(|_| {
            let (inside, calls) = (Arc::clone(&inside), Arc::clone(&calls));
            let timer = time.timers().hrtimer(move |f| {
                assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two at once");
                std::thread::yield_now();
                calls.fetch_add(1, Ordering::Relaxed);
                f.restart(MS);
                inside.fetch_sub(1, Ordering::AcqRel);
            });
            timer.start(MS).unwrap();
            timer
        })
        .collect();
    let begin = time.now();
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| (0..10).for_each(|_| time.advance(MS)));
        }
    });
    assert_eq!(time.now() - begin, MS * 20, "each moved it by its own part");
    assert_eq!(calls.load(Ordering::Relaxed), 20 * timers.len() as u64);
    assert_eq!(time.timers().stats().panics, 0);
}

/// Goal: a callback on one clock may advance another clock, and drop timers of the first, including
/// its own.
#[test]
fn a_callback_may_advance_another_clock() {
    let (outer, inner) = (VirtualTime::new(), Arc::new(VirtualTime::new()));
    let (place, owned) = (Place::<HrTimer>::empty(), Arc::new(()));
    let (own, captured, clock) = (place.clone(), Arc::clone(&owned), Arc::clone(&inner));
    place.put(outer.timers().hrtimer(move |_| {
        let _captured = &captured;
        clock.advance(MS * 2);
        assert_eq!(Arc::strong_count(&captured), 2, "dropped while it runs");
    }));
    let killer = inner.timers().hrtimer(move |_| drop(own.take()));
    killer.start(MS).unwrap();
    place.with(|timer| timer.start(MS)).unwrap();
    outer.advance(MS);
    assert_eq!(Arc::strong_count(&owned), 1, "dropped when it ended");
    assert_eq!((outer.timers().stats().panics, outer.timers().stats().pending()), (0, 0));
}

/// Goal: a callback that blocks in real time stops the clock, and takes no virtual time.
#[test]
fn a_callback_that_blocks_stops_the_clock() {
    let time = VirtualTime::new();
    let log = Log::new();
    let (tx, rx) = std::sync::mpsc::channel::<()>();
    let (blocked, written) = (log.clone(), log.clone());
    let first = time.timers().hrtimer(move |f| {
        rx.recv().unwrap();
        blocked.push(f.now());
    });
    let second = time.timers().hrtimer(move |f| written.push(f.now()));
    let begin = time.now();
    first.start(MS).unwrap();
    second.start(MS).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| {
            crate::support::wait_until("the first callback runs", || first.is_active());
            std::thread::sleep(MS * 20);
            assert_eq!(log.len(), 0, "others fired while the first was blocked");
            tx.send(()).unwrap();
        });
        time.advance(MS * 2);
    });
    assert_eq!(log.take(), [begin + MS, begin + MS]);
}

/// Goal: each step to the next expiry fires a timer, even if the expiry is years ahead and the
/// wheel moves the timer on the way; and only due timers fire.
#[test]
fn each_step_fires_a_timer() {
    let time = VirtualTime::new();
    let log = Log::new();
    let years = |n: u32| Duration::from_secs(365 * 86_400) * n;
    let timers: Vec<_> = [4, 2, 3, 1]
        .map(|n| {
            let log = log.clone();
            let timer = time.timers().timeout(move |_| log.push(n));
            timer.start(years(n)).unwrap();
            timer
        })
        .into();
    for n in 1..=timers.len() as u32 {
        assert!(time.advance_to_next());
        assert_eq!(log.take(), [n]);
    }
    assert!(!time.advance_to_next());
}

/// Goal: only explicit advances move the clock, and only forward.
#[test]
fn only_explicit_advances_move_the_clock() {
    let time = VirtualTime::with_builder(Timers::builder().bases(1), Instant::from_secs(7));
    time.advance_to(Instant::from_secs(3));
    assert_eq!(time.now(), Instant::from_secs(7));
    time.advance(Duration::ZERO);
    assert_eq!((time.now(), time.next_event()), (Instant::from_secs(7), None));
    assert!(!time.advance_to_next(), "nothing to advance to");
    let timer = time.timers().hrtimer(|_| {});
    timer.start_at(Instant::from_secs(1)).unwrap();
    assert_eq!(time.next_event(), Some(Instant::from_secs(1)), "due already");
    assert!(time.advance_to_next());
    assert_eq!((time.now(), timer.is_pending()), (Instant::from_secs(7), false));
}

/// Goal: timers that a callback arms for the current instant fire at that instant, on any base, and
/// no due timer is left when an advance has returned. Method: two bases; a callback on the second
/// one arms timers on the first, which has had its turn, including deferrable ones.
#[test]
fn an_advance_leaves_no_timer_overdue() {
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(1));
    for by in [Duration::ZERO, MS, Duration::from_secs(5)] {
        let log = Log::new();
        let (seen, clock) = (log.clone(), time.clone());
        let fourth = time.timers().timeout(move |_| seen.push(clock.now()));
        let fourth = fourth.pinned(CpuId(0)).deferrable();
        let (seen, clock) = (log.clone(), time.clone());
        let third = time.timers().hrtimer(move |_| {
            seen.push(clock.now());
            fourth.start_at(clock.now()).unwrap();
        });
        let third = third.pinned(CpuId(1));
        let (seen, clock) = (log.clone(), time.clone());
        let second = time.timers().timeout(move |_| {
            seen.push(clock.now());
            third.start_at(clock.now()).unwrap();
        });
        let second = second.pinned(CpuId(0)).deferrable();
        let (seen, clock) = (log.clone(), time.clone());
        let first = time.timers().hrtimer(move |_| {
            seen.push(clock.now());
            second.start_at(clock.now()).unwrap();
        });
        let first = first.pinned(CpuId(1));
        let due = time.now() + by;
        first.start_at(due).unwrap();
        time.advance(by);
        assert_eq!(log.take(), [due; 4], "advanced by {by:?}");
        assert_eq!(time.next_event(), None);
    }
}

/// Goal: timers that come due while a callback advances the clock fire before the outer advance
/// returns, in order, even if they are due after the time to which that advance goes.
#[test]
fn a_long_callback_leaves_no_timer_overdue() {
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(1));
    let (log, begun) = (Log::new(), time.now());
    let clock = time.clone();
    let slow = time.timers().hrtimer(move |_| clock.advance(Duration::from_secs(10)));
    slow.start(Duration::from_secs(1)).unwrap();
    let late: Vec<_> = [(7, 0), (3, 1), (5, 0), (9, 1)]
        .map(|(after, base)| {
            let seen = log.clone();
            let timer = time.timers().hrtimer(move |_| seen.push(after)).pinned(CpuId(base));
            timer.start(Duration::from_secs(after)).unwrap();
            timer
        })
        .into();
    time.advance(Duration::from_secs(1));
    assert_eq!(time.now(), begun + Duration::from_secs(11));
    let mut order = log.take();
    order.sort_unstable();
    assert_eq!(order, [3, 5, 7, 9], "all have run");
    drop(late);
}

/// Goal: a step fires all timers that its instant brings about, on any base.
#[test]
fn a_step_fires_all_timers_of_its_instant() {
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(1));
    let log = Log::new();
    let (seen, clock) = (log.clone(), time.clone());
    let second = time.timers().hrtimer(move |_| seen.push(clock.now())).pinned(CpuId(0));
    let (seen, clock) = (log.clone(), time.clone());
    let first = time.timers().hrtimer(move |_| {
        seen.push(clock.now());
        second.start_at(clock.now()).unwrap();
    });
    let first = first.pinned(CpuId(1));
    first.start(Duration::from_secs(1)).unwrap();
    assert!(time.advance_to_next());
    assert_eq!(log.take(), [time.now(); 2]);
}

/// Goal: virtual time may be advanced in the destructor of a thread-local, whichever other
/// thread-locals have been destroyed.
#[test]
fn time_may_be_advanced_while_a_thread_ends() {
    struct AtTheEnd(RefCell<Option<(VirtualTime, Log<&'static str>)>>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let Some((time, log)) = self.0.take() else { return };
            let waker = Waker::from(Arc::new(LogsWake(log.clone())));
            let mut sleep = Box::pin(time.timers().sleep(Duration::from_secs(1)));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            let timer = time.timers().timeout(move |_| log.push("fired"));
            timer.start(Duration::from_secs(2)).unwrap();
            time.advance(Duration::from_secs(10));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
    }
    struct LogsWake(Log<&'static str>);
    impl Wake for LogsWake {
        fn wake(self: Arc<Self>) {
            self.0.push("woken");
        }
    }
    thread_local! {
        static EARLY: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
        static LATE: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
    }
    let log = Log::new();
    let written = log.clone();
    let ended = std::thread::spawn(move || {
        // One before the library initializes a thread-local of this thread, one after it.
        EARLY.with(|end| *end.0.borrow_mut() = Some((VirtualTime::new(), written.clone())));
        let time = VirtualTime::new();
        let mut sleep = Box::pin(time.timers().sleep(Duration::from_secs(1)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        for _ in 0..5_000 {
            time.advance(Duration::from_nanos(1));
        }
        LATE.with(|end| *end.0.borrow_mut() = Some((time, written)));
    });
    assert!(ended.join().is_ok());
    assert_eq!(log.take(), ["woken", "fired", "woken", "fired"]);
}

/// Goal: rearming a timer for the current instant forever is a panic with that reason, and the
/// clock can be advanced again once the timer has been dropped. A long but finite chain at one
/// instant does not panic.
#[test]
fn rearming_for_the_current_instant_forever_panics() {
    let time = VirtualTime::new();
    let mut left = 100_000;
    let chain = time.timers().hrtimer(move |fired| {
        left -= 1;
        if left > 0 {
            fired.restart(Duration::ZERO);
        }
    });
    chain.start(Duration::from_secs(1)).unwrap();
    time.advance(Duration::from_secs(2));
    assert_eq!(time.timers().stats().total().fired, 100_000);
    let endless = time.timers().hrtimer(|fired| fired.restart(Duration::ZERO));
    let ways: [fn(&VirtualTime); 2] =
        [|time| time.advance(Duration::from_secs(2)), |time| _ = time.advance_to_next()];
    for advance in ways {
        endless.start(Duration::from_secs(1)).unwrap();
        let advanced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| advance(&time)));
        let why = advanced.expect_err("it never ends");
        assert!(why.downcast_ref::<String>().is_some_and(|why| why.contains("does not advance")));
        endless.cancel();
    }
    time.advance(Duration::from_secs(2));
}
