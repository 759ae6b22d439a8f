//! Wakers are code of the runtime or the program: they may wait for a lock, or drop any future. So
//! no operation waits for a thread that runs them.

use crate::support::woken::{calls, poll, woken};
use crate::support::{Log, MS, rounds, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;
use tickless::future::Sleep;
use tickless::policy::Deferral;
use tickless::{Timers, VirtualTime};

/// A short time in which a new sleep can be polled, which takes Miri some milliseconds.
const SHORT: Duration = if cfg!(miri) { Duration::from_millis(300) } else { MS };

fn polled(mut sleep: Pin<Box<Sleep>>, waker: &Waker) -> Pin<Box<Sleep>> {
    assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(waker)), Poll::Pending);
    sleep
}

/// A waker that waits for a lock.
struct LocksOnWake {
    lock: Arc<Mutex<()>>,
    /// Whether the waker was called.
    is_waking: Arc<AtomicBool>,
    waker: Waker,
}

impl Default for LocksOnWake {
    fn default() -> LocksOnWake {
        let (lock, is_waking) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (wanted, says_so) = (Arc::clone(&lock), Arc::clone(&is_waking));
        let waker = calls(move || {
            says_so.store(true, Ordering::SeqCst);
            drop(wanted.lock().unwrap_or_else(PoisonError::into_inner));
        });
        LocksOnWake { lock, is_waking, waker }
    }
}

/// Fails the test unless the thread ends in time; then the thread is detached.
fn ends(what: &str, thread: JoinHandle<()>) {
    wait_until(what, || thread.is_finished());
    assert!(thread.join().is_ok(), "{what}: it panicked");
}

/// Method: batches of the size that a driver wakes at once, and one more or less. One waker waits
/// for the lock while the last future is dropped.
#[test]
fn a_drop_does_not_wait_for_wakers() {
    let all = [(65, 0), (128, 64), (1, 0), (63, 0), (64, 0), (128, 0), (200, 150)];
    for (count, waits) in all.into_iter().take(rounds(7) as usize) {
        let time = VirtualTime::new();
        let LocksOnWake { lock, is_waking, waker: waiting } = LocksOnWake::default();
        let sleeps = (0..count).map(|nth| {
            let waker = if nth == waits { &waiting } else { Waker::noop() };
            polled(Box::pin(time.timers().sleep(MS)), waker)
        });
        let mut sleeps: Vec<_> = sleeps.collect();
        let held = lock.lock().unwrap();
        let moves = time.clone();
        let mover = std::thread::spawn(move || moves.advance(2 * MS));
        wait_until("a waker runs", || is_waking.load(Ordering::SeqCst));
        let dropper = std::thread::spawn(move || {
            // Drop the last one first: its callback would be the one that wakes the others.
            while sleeps.pop().is_some() {}
        });
        ends("the futures are dropped", dropper);
        drop(held);
        ends("the waker has its lock", mover);
        assert_eq!(time.timers().stats().panics, 0);
    }
}

/// Panics when it is dropped.
struct PanicsInDrop;

impl Wake for PanicsInDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a waker panics in its drop");
    }
}

/// Goal: W1 (never early).
#[test]
fn a_waker_that_panics_in_its_drop_makes_no_sleep_early() {
    let time = VirtualTime::new();
    let (woken, waker) = woken();
    let mut sleep =
        polled(Box::pin(time.timers().sleep(1_000 * MS)), &Waker::from(Arc::new(PanicsInDrop)));
    let poll = |sleep: &mut Pin<Box<Sleep>>| poll(sleep.as_mut(), &waker);
    let panicked = catch_unwind(AssertUnwindSafe(|| poll(&mut sleep)));
    assert!(panicked.is_err());
    assert_eq!(poll(&mut sleep), Poll::Pending, "early");
    time.advance(1_000 * MS);
    assert_eq!((woken.count(), poll(&mut sleep)), (1, Poll::Ready(())));
}

/// Method: each waker counts the futures that have fired and were not woken. In a driver, in an
/// expiry thread, and in a thread that advances virtual time.
#[test]
#[cfg_attr(miri, ignore = "each waker sums all statistics, which takes Miri seconds")]
fn at_most_64_fired_futures_wait_for_their_wakers() {
    const COUNT: u64 = 1_000;
    let virtual_time = VirtualTime::new();
    let real = |deferral| Timers::builder().bases(1).deferral(deferral).start().unwrap();
    let all = [virtual_time.timers().clone(), real(Deferral::None), real(Deferral::OnExpiry)];
    for timers in all {
        let (woken, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (of, count, longest) = (timers.clone(), Arc::clone(&woken), Arc::clone(&most));
        let waker = calls(move || {
            let fired = of.stats().total().fired;
            let before = count.fetch_add(1, Ordering::SeqCst);
            longest.fetch_max(fired - before, Ordering::SeqCst);
        });
        let sleep = |_| {
            let mut sleep = Box::pin(timers.coarse_sleep(200 * MS));
            assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
            sleep
        };
        let sleeps: Vec<_> = (0..COUNT).map(sleep).collect();
        virtual_time.advance(300 * MS);
        wait_until("all are woken", || woken.load(Ordering::SeqCst) == COUNT);
        let most = most.load(Ordering::SeqCst);
        // Real time may have advanced between two of them.
        assert!((2..=64).contains(&most), "{most} were kept");
        drop(sleeps);
    }
}

#[test]
fn wakers_may_drop_each_others_futures() {
    for count in [1, 64, 128].into_iter().take(if cfg!(miri) { 2 } else { 3 }) {
        let times = [VirtualTime::new(), VirtualTime::new()];
        let meeting = Arc::new(Barrier::new(2));
        let [of_first, of_second] =
            [0, 1].map(|_| Arc::new(Mutex::new(Vec::<Pin<Box<Sleep>>>::new())));
        for (time, own, others) in
            [(&times[0], &of_first, &of_second), (&times[1], &of_second, &of_first)]
        {
            let (meeting, others) = (Arc::clone(&meeting), Arc::clone(others));
            let drops = calls(move || {
                meeting.wait();
                let taken = std::mem::take(&mut *others.lock().unwrap());
                drop(taken);
            });
            let sleeps = (0..count).map(|nth| {
                let waker = if nth == count - count.min(64) { &drops } else { Waker::noop() };
                polled(Box::pin(time.timers().sleep(MS)), waker)
            });
            *own.lock().unwrap() = sleeps.collect();
        }
        let movers = times.map(|time| std::thread::spawn(move || time.advance(2 * MS)));
        for mover in movers {
            ends("the wakers are through", mover);
        }
    }
}

/// Method: with and without expiry threads.
#[test]
fn the_last_drop_does_not_wait_for_wakers() {
    for deferral in [Deferral::None, Deferral::OnExpiry] {
        let timers = Timers::builder().bases(2).deferral(deferral).start().unwrap();
        let LocksOnWake { lock, is_waking, waker: waiting } = LocksOnWake::default();
        let held = lock.lock().unwrap();
        let sleep = polled(Box::pin(timers.sleep(SHORT)), &waiting);
        wait_until("the waker runs", || is_waking.load(Ordering::SeqCst));
        let dropper = std::thread::spawn(move || drop((sleep, timers)));
        ends("the timers are dropped", dropper);
        drop(held);
    }
}

/// Method: a callback of one set that advances the clock of another.
#[test]
fn a_nested_batch_does_not_call_the_wakers_of_the_outer_one() {
    let (outer, inner) = (VirtualTime::new(), VirtualTime::new());
    let log = Log::new();
    let logs = |word: &'static str| {
        let log = log.clone();
        calls(move || log.push(word))
    };
    let _own = polled(Box::pin(outer.timers().sleep(2 * MS)), &logs("outer woken"));
    let _other = polled(Box::pin(inner.timers().sleep(MS)), &logs("inner woken"));
    let (moved, lines) = (inner.clone(), log.clone());
    let mover = outer.timers().hrtimer(move |_| {
        lines.push("callback begins");
        moved.advance(2 * MS);
        lines.push("callback ends");
    });
    mover.start(3 * MS).unwrap();
    // Takes so long that the sleep and the callback above come due in one batch.
    let late = outer.clone();
    let takes_long = outer.timers().hrtimer(move |_| late.advance(5 * MS));
    takes_long.start(MS).unwrap();
    outer.advance(2 * MS);
    let order = ["callback begins", "inner woken", "callback ends", "outer woken"];
    assert_eq!(log.take(), order);
}
