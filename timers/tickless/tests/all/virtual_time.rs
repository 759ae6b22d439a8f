//! Virtual time: which timers fire, in which order, and what callbacks may do to the clock.

use crate::support::woken::calls;
use crate::support::{Log, MS, Rng, seed};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Fired, Timeout, Timers, VirtualTime};

/// Method: thousands of timers on three bases, armed at different times for a few instants.
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
        let note = |family| {
            let log = log.clone();
            move |f: &mut Fired<'_>| log.push((armed, base, family, f.deadline(), f.now()))
        };
        if rng.below(2) == 0 {
            let timer = time.timers().timeout(note("coarse")).pinned(CpuId(base));
            timer.start_at(deadline).unwrap();
            timeouts.push(timer);
        } else {
            let timer = time.timers().hrtimer(note("precise")).pinned(CpuId(base));
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

/// Goal: a callback takes virtual time by advancing the clock. Timers that come due by then fire
/// late, after it has returned; none fires inside it. All have fired when the outer advance
/// returns, on every base, including those that are due after the time to which it goes.
#[test]
fn a_callback_may_move_the_clock() {
    let builder = Timers::builder().bases(2);
    let time = Arc::new(VirtualTime::with_builder(builder, Instant::from_secs(1)));
    let (log, begin) = (Log::new(), time.now());
    let (clock, written) = (Arc::clone(&time), log.clone());
    let slow = time.timers().hrtimer(move |f| {
        written.push(("slow begins", f.now() - begin));
        clock.advance(MS * 5);
        clock.advance_to(begin + MS * 7);
        assert!(clock.advance_to_next(), "there are others pending");
        written.push(("slow ends", f.now() - begin));
    });
    let start = |after: u32, base: u16, what: &'static str| {
        let written = log.clone();
        let timer = time.timers().hrtimer(move |f| written.push((what, f.late_by())));
        let timer = timer.pinned(CpuId(base));
        timer.start(MS * after).unwrap();
        timer
    };
    let _others = [start(3, 1, "first"), start(9, 0, "second"), start(12, 1, "third")];
    let slow = slow.pinned(CpuId(0));
    slow.start(MS).unwrap();
    time.advance(MS * 2);
    let late = [("slow ends", MS * 7), ("first", MS * 4)];
    assert_eq!(log.take(), [&[("slow begins", MS)], &late[..]].concat());
    assert_eq!((time.timers().stats().panics, time.now() - begin), (0, MS * 7));
    time.advance(MS * 5);
    assert_eq!(log.take(), [("second", Duration::ZERO), ("third", Duration::ZERO)]);
}

/// Goal: X2 (no overlap) with two threads that advance one clock.
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

/// Method: two bases; a callback on the second one arms timers on the first, which has had its
/// turn, including deferrable ones.
#[test]
fn an_advance_leaves_no_timer_overdue() {
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(1));
    for (by, steps) in [(Duration::ZERO, false), (MS, false), (MS * 5_000, false), (MS, true)] {
        let log = Log::new();
        let note = || {
            let (seen, clock) = (log.clone(), time.clone());
            move || {
                seen.push(clock.now());
                clock.now()
            }
        };
        let [one, two, three, four] = [note(), note(), note(), note()];
        // A step leaves deferrable timers to the next event.
        let deferrable = |timeout: Timeout| if steps { timeout } else { timeout.deferrable() };
        let fourth = deferrable(time.timers().timeout(move |_| _ = four()).pinned(CpuId(0)));
        let third = time.timers().hrtimer(move |_| _ = fourth.start_at(three()).unwrap());
        let third = third.pinned(CpuId(1));
        let second = time.timers().timeout(move |_| _ = third.start_at(two()).unwrap());
        let second = deferrable(second.pinned(CpuId(0)));
        let first = time.timers().hrtimer(move |_| _ = second.start_at(one()).unwrap());
        let first = first.pinned(CpuId(1));
        let due = time.now() + by;
        first.start_at(due).unwrap();
        match steps {
            true => assert!(time.advance_to_next()),
            false => time.advance(by),
        }
        assert_eq!(log.take(), [due; 4], "advanced by {by:?}, {steps}");
        assert_eq!(time.next_event(), None);
    }
}

#[test]
fn time_may_be_advanced_while_a_thread_ends() {
    struct AtTheEnd(RefCell<Option<(VirtualTime, Log<&'static str>)>>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let Some((time, log)) = self.0.take() else { return };
            let woken = log.clone();
            let waker = calls(move || woken.push("woken"));
            let mut sleep = Box::pin(time.timers().sleep(Duration::from_secs(1)));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            let timer = time.timers().timeout(move |_| log.push("fired"));
            timer.start(Duration::from_secs(2)).unwrap();
            time.advance(Duration::from_secs(10));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
    }
    thread_local! {
        static EARLY: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
        static LATE: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
    }
    let (log, written) = Log::shared();
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

/// Method: dropped by a thread with little stack.
#[test]
fn a_clock_with_thousands_of_sets_ends() {
    let time = VirtualTime::new();
    let count = if cfg!(miri) { 10 } else { 3_000 };
    (0..count).for_each(|_| drop(time.add_timers(Timers::builder().bases(1))));
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(move || drop(time)).unwrap().join().unwrap();
}
