//! Counters, lists of pending timers, and the owners in them.

use crate::support::{HOUR, MS, Place};
use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tickless::callback::{Cancel, Started};
use tickless::driver::CpuId;
use tickless::time::Instant;
use tickless::{Fired, Timeout, Timers, VirtualTime};

fn poll_once(future: std::pin::Pin<&mut impl Future>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn pending_by_level_and_cancelled_by_state() {
    let time = VirtualTime::new();
    let timers = time.timers();
    let after = [MS, 5 * MS, 100 * MS, HOUR, 300 * HOUR];
    let timeouts: Vec<Timeout> = after.map(|_| timers.timeout(|_| {})).into();
    timeouts.iter().zip(after).for_each(|(timeout, after)| _ = timeout.start(after).unwrap());
    let lazy = timers.timeout(|_| {}).deferrable();
    lazy.start(HOUR).unwrap();
    let precise = timers.hrtimer(|_| {});
    precise.start(MS).unwrap();
    let base = timers.stats().bases[0];
    assert_eq!((base.coarse, base.precise), (6, 1));
    assert_eq!(base.levels(), [2, 1, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!((base.deferrable, base.coarse_due), (1, 0));
    assert_eq!(base.armed_for, time.now() + MS);

    assert_eq!(timeouts[0].cancel(), Cancel::Pending);
    assert_eq!(timeouts[0].cancel(), Cancel::Idle);
    assert_eq!(timeouts[0].cancel_sync(), Ok(Cancel::Idle));
    assert_eq!(precise.try_cancel(), Cancel::Pending);
    let (own, found) = Place::<Timeout>::shared();
    own.put(timers.timeout(move |_| {
        assert_eq!(found.with(Timeout::cancel), Cancel::Running);
    }));
    own.with(|timeout| timeout.start(2 * MS)).unwrap();
    time.advance(2 * MS);
    drop(own.take());
    drop(timeouts);
    let stats = timers.stats();
    assert_eq!(stats.panics, 0);
    let found = stats.bases.iter().map(|base| (base.cancels_idle, base.cancels_running));
    let found = found.reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1));
    assert_eq!((stats.total().cancelled, found), (6, Some((2, 1))));
}

#[test]
fn lateness_and_overdue_expiries_are_counted() {
    let time = VirtualTime::with_builder(
        Timers::builder().bases(2).slow_after(5 * MS).coarse_like_real(),
        Instant::from_secs(1),
    );
    let clock = Arc::new(time);
    let own = Arc::downgrade(&clock);
    let held_up = clock.timers().hrtimer(move |_| own.upgrade().unwrap().advance(10 * MS));
    let (late, coarse) = (clock.timers().hrtimer(|_| {}), clock.timers().timeout(|_| {}));
    let other = clock.timers().hrtimer(|_| {}).pinned(CpuId(1));
    // Neither is overdue: `barely` is late by less than the limit, and `rounded` fires late after
    // its deadline, but in time for the deadline as the wheel rounded it.
    let barely = clock.timers().hrtimer(|_| {}).pinned(CpuId(0));
    let rounded = clock.timers().timeout(|_| {}).pinned(CpuId(0));
    barely.start(9 * MS).unwrap();
    rounded.start(1_001 * MS).unwrap();
    let on_first = |timer: tickless::HrTimer| timer.pinned(CpuId(0));
    let (held_up, late, coarse) = (on_first(held_up), on_first(late), coarse.pinned(CpuId(0)));
    held_up.start(MS).unwrap();
    late.start(2 * MS).unwrap();
    coarse.start(2 * MS).unwrap();
    other.start(20 * MS).unwrap();
    clock.advance(2_000 * MS);
    let [first, second] = [0, 1].map(|base| clock.timers().stats().bases[base]);
    // 9 ms are between 2^23 and 2^24 ns.
    assert_eq!((first.late_precise.counts()[0], first.late_precise.counts()[24]), (1, 1));
    assert_eq!((first.late_coarse.counts()[24], first.late_coarse.total()), (1, 2));
    assert!(
        first.late_coarse.quantile(1000) > Some(Duration::from_millis(20)),
        "the wheel's rounding"
    );
    assert_eq!((second.late_precise.counts()[0], second.late_precise.total()), (1, 1));
    assert_eq!((first.overdue, second.overdue), (2, 0));
    let all = clock.timers().stats();
    assert_eq!((all.late_precise().total(), all.late_coarse().total()), (4, 2));
    assert_eq!(all.late_precise().quantile(990), Some(Duration::from_nanos((1 << 24) - 1)));
    assert!(clock.timers().stats().to_string().contains("late p99"));
}

#[test]
fn callbacks_are_timed_on_request() {
    for times in [true, false] {
        let builder = Timers::builder().bases(1).slow_after(4 * MS);
        let builder = if times { builder.time_callbacks() } else { builder };
        let time = Arc::new(VirtualTime::with_builder(builder, Instant::from_secs(1)));
        let takes = |ms: u32| {
            let clock = Arc::downgrade(&time);
            move |_: &mut Fired<'_>| {
                clock.upgrade().unwrap().advance(ms * MS);
                assert!(ms != 5, "on purpose");
            }
        };
        let timers = [3, 5, 4].map(|ms| time.timers().timeout(takes(ms)));
        let [three, five, four] = timers;
        let five = five.labelled("the one that takes five");
        for timer in [&three, &five, &four] {
            timer.start(MS).unwrap();
            time.advance(MS);
        }
        let callbacks = time.timers().stats().callbacks();
        assert_eq!(time.timers().stats().panics, 1);
        let Some(callbacks) = callbacks else {
            assert!(!times);
            continue;
        };
        assert!(times);
        assert_eq!((callbacks.count, callbacks.slow), (3, 2));
        assert_eq!((callbacks.total, callbacks.longest), (12 * MS, 5 * MS));
        assert_eq!(callbacks.longest_of, "the one that takes five");
    }
}

#[test]
fn the_list_names_every_pending_timer() {
    fn named(_: &mut Fired<'_>) {}
    let time = VirtualTime::with_builder(Timers::builder().bases(2), Instant::from_secs(1));
    let timers = time.timers();
    let idle = timers.timeout(named).deferrable().pinned(CpuId(0));
    let conn = timers.timeout(|_| {}).labelled("conn idle").pinned(CpuId(0));
    let period = timers.periodic(|_| {}).labelled("refill");
    let window = timers.hrtimer(|_| {}).pinned(CpuId(1));
    let mut sleep = std::pin::pin!(timers.sleep(3 * HOUR));
    idle.start(10 * MS).unwrap();
    conn.start(HOUR).unwrap();
    period.start(20 * MS).unwrap();
    let soft = time.now() + 5 * MS;
    window.start_range(soft, soft + MS).unwrap();
    poll_once(sleep.as_mut());

    let list = timers.timer_list();
    assert_eq!((list.now, list.timers.len(), list.is_whole), (time.now(), 5, true));
    assert!(list.timers.is_sorted_by_key(|timer| (timer.base, timer.due)), "{list}");
    let find = |label: &str| {
        let found = list.timers.iter().find(|timer| timer.label.ends_with(label));
        *found.unwrap_or_else(|| panic!("no {label} in {list}"))
    };
    assert_eq!((find("named").is_deferrable(), find("named").level()), (true, Some(0)));
    let listed = find("conn idle");
    assert_eq!((listed.soft, listed.is_deferrable()), (time.now() + HOUR, false));
    assert!(!listed.is_precise() && find("refill").is_precise());
    assert!(!find("refill").is_deferred() && find("refill").level().is_none());
    assert_eq!(find("the_list_names_every_pending_timer").due, soft + MS);
    assert_eq!(find("tickless::future::Sleep").soft, time.now() + 3 * HOUR);
    let text = list.to_string();
    assert_eq!(text.lines().filter(|line| line.contains("+")).count(), 5 + 2, "{text}");
    for part in ["clock Manual", "base 1: ", "+5ms", "+6ms", "level 0", "deferrable"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    drop(conn);
    assert!(!timers.timer_list().to_string().contains("conn idle"));
}

#[test]
fn leaks_are_named() {
    let time = VirtualTime::new();
    time.assert_idle();
    let timeouts = [0, 1, 2].map(|_| time.timers().timeout(|_| {}).labelled("conn idle"));
    let line = line!() + 1;
    let arm = |timeout: &Timeout| timeout.start(HOUR);
    assert_eq!(timeouts.each_ref().map(arm), [Ok(Started::Idle); 3]);
    let forgotten = Box::pin(time.timers().sleep(MS));
    let mut forgotten = std::mem::ManuallyDrop::new(forgotten);
    poll_once(forgotten.as_mut());
    let leaks = time.timers().leaks();
    assert_eq!(leaks.iter().map(|leak| leak.count).collect::<Vec<_>>(), [3, 1]);
    let first = leaks[0];
    assert_eq!((first.label, first.due >= time.now() + HOUR), ("conn idle", true));
    if cfg!(debug_assertions) {
        assert_eq!(first.armed_at.map(|at| (at.file(), at.line())), Some((file!(), line)));
        assert!(leaks[1].armed_at.is_some_and(|at| at.file() == file!()));
    }
    let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| time.assert_idle()));
    let message = message.expect_err("something is pending");
    let message = message.downcast_ref::<String>().expect("a text");
    assert!(message.starts_with("4 timers pending"), "{message}");
    assert!(message.contains("3 x conn idle"), "{message}");
    drop(timeouts);
    time.advance(2 * MS);
    time.assert_idle();
}

#[test]
fn futures_are_armed_where_they_are_awaited() {
    if !cfg!(debug_assertions) {
        return;
    }
    let time = VirtualTime::new();
    let timers = time.timers();
    let first = line!() + 1;
    let mut sleep = std::pin::pin!(async { timers.sleep(HOUR).await });
    let mut tick = std::pin::pin!(async { timers.interval(HOUR).tick().await });
    let mut deadline = std::pin::pin!(async { timers.timeout_after(HOUR, pending::<()>()).await });
    poll_once(sleep.as_mut());
    poll_once(tick.as_mut());
    poll_once(deadline.as_mut());
    let leaks = timers.leaks();
    let mut lines: Vec<u32> = leaks.iter().filter_map(|leak| Some(leak.armed_at?.line())).collect();
    lines.sort_unstable();
    assert_eq!(lines, [first, first + 1, first + 2]);
    assert!(leaks.iter().all(|leak| leak.armed_at.is_some_and(|at| at.file() == file!())));
}

#[test]
fn labels_are_not_inherited() {
    let time = VirtualTime::new();
    for round in 0..100 {
        let label = if round % 2 == 0 { "even" } else { "unused" };
        let timer = time.timers().timeout(|_| {});
        let timer = if round % 2 == 0 { timer.labelled(label) } else { timer };
        timer.start(MS).unwrap();
        let listed: Vec<&str> = time.timers().timer_list().timers.iter().map(|t| t.label).collect();
        assert_eq!((listed.len(), listed[0] == "even"), (1, round % 2 == 0), "{listed:?}");
    }
}
