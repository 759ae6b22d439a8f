//! Wakers are somebody else's code: they may wait for a lock, or drop any future. Nothing waits for
//! the thread that runs them.

use crate::support::woken::{poll, woken};
use crate::support::{Log, rounds, wait_until};
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

const MS: Duration = Duration::from_millis(1);

/// Calls a closure when it is woken.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn calls(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Calls(wake)))
}

fn polled(mut sleep: Pin<Box<Sleep>>, waker: &Waker) -> Pin<Box<Sleep>> {
    assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(waker)), Poll::Pending);
    sleep
}

/// A waker that waits for a lock.
struct Wanting {
    lock: Arc<Mutex<()>>,
    /// Has it been woken?
    is_waking: Arc<AtomicBool>,
    waker: Waker,
}

impl Default for Wanting {
    fn default() -> Wanting {
        let (lock, is_waking) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (wanted, says_so) = (Arc::clone(&lock), Arc::clone(&is_waking));
        let waker = calls(move || {
            says_so.store(true, Ordering::SeqCst);
            drop(wanted.lock().unwrap_or_else(PoisonError::into_inner));
        });
        Wanting { lock, is_waking, waker }
    }
}

/// Ends in time, or the test fails; the thread is left alone then.
fn ends(what: &str, thread: JoinHandle<()>) {
    wait_until(what, || thread.is_finished());
    assert!(thread.join().is_ok(), "{what}: it panicked");
}

/// Goal: dropping a future that has just fired does not wait for a waker, which may want a lock
/// that the dropping thread has. Method: batches of as many as a driver might wake at once, and
/// one more or less; the waker of one of them waits for the lock, while the last one is dropped.
#[test]
fn a_drop_does_not_wait_for_wakers() {
    for (count, waits) in [(1, 0), (63, 0), (64, 0), (65, 0), (128, 0), (128, 64), (200, 150)] {
        let time = VirtualTime::new();
        let Wanting { lock, is_waking, waker: waiting } = Wanting::default();
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
            // The last one first: it is the one whose callback would be waking the others.
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

/// Goal: W1 (never early): a sleep whose old waker panics when a poll replaces it is neither ready
/// nor lost.
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

/// Goal: however many futures come due at once, no more than 64 of them wait with their wakers.
/// Method: each waker counts how many have fired that were not woken. In a driver, in an expiry
/// thread, and in who moves the clock.
#[test]
fn no_more_than_64_are_kept_waiting() {
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
        // Real time may have gone on between two of them.
        assert!((2..=64).contains(&most), "{most} were kept");
        drop(sleeps);
    }
}

/// Goal: two drivers whose wakers drop each other's futures do not wait for each other.
#[test]
fn wakers_may_drop_each_others_futures() {
    for count in [1, 64, 128] {
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
            let sleeps: Vec<_> = sleeps.collect();
            *own.lock().unwrap() = sleeps;
        }
        let movers = times.map(|time| std::thread::spawn(move || time.advance(2 * MS)));
        for mover in movers {
            ends("the wakers are through", mover);
        }
    }
}

/// Goal: dropping the last handle waits for callbacks, not for wakers, which may want a lock that
/// the dropping thread has. Method: with expiry threads and without.
#[test]
fn the_last_drop_does_not_wait_for_wakers() {
    for deferral in [Deferral::None, Deferral::OnExpiry] {
        let timers = Timers::builder().bases(2).deferral(deferral).start().unwrap();
        let Wanting { lock, is_waking, waker: waiting } = Wanting::default();
        let held = lock.lock().unwrap();
        let sleep = polled(Box::pin(timers.sleep(MS)), &waiting);
        wait_until("the waker runs", || is_waking.load(Ordering::SeqCst));
        let dropper = std::thread::spawn(move || drop((sleep, timers)));
        ends("the timers are dropped", dropper);
        drop(held);
    }
}

/// Goal: the same for whoever moves virtual time by itself.
#[test]
fn ending_auto_advance_does_not_wait_for_wakers() {
    let time = VirtualTime::new();
    let Wanting { lock, is_waking, waker: waiting } = Wanting::default();
    let held = lock.lock().unwrap();
    let sleep = polled(Box::pin(time.timers().sleep(MS)), &waiting);
    let moves = time.auto_advance();
    wait_until("the waker runs", || is_waking.load(Ordering::SeqCst));
    ends("it has stopped", std::thread::spawn(move || drop((moves, sleep))));
    drop(held);
}

/// Goal: when the last handle is gone, no callback runs any more, although wakers may.
#[test]
fn the_last_drop_waits_for_callbacks() {
    for _ in 0..rounds(50) {
        let timers = Timers::builder().bases(1).start().unwrap();
        let (inside, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (entered, called) = (Arc::clone(&inside), Arc::clone(&calls));
        let timer = timers.hrtimer(move |fired| {
            entered.fetch_add(1, Ordering::SeqCst);
            called.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
            entered.fetch_sub(1, Ordering::SeqCst);
            fired.restart(Duration::ZERO);
        });
        timer.start(Duration::ZERO).unwrap();
        let sleep = polled(Box::pin(timers.sleep(Duration::from_micros(50))), Waker::noop());
        wait_until("it is called", || calls.load(Ordering::SeqCst) > 3);
        drop((sleep, timer));
        drop(timers);
        assert_eq!(inside.load(Ordering::SeqCst), 0, "a callback runs on");
    }
}

/// Goal: wakers of a batch wait for its end, not for that of another set's batch that a callback
/// of theirs runs. Method: a callback of one set that advances the clock of another.
#[test]
fn a_callback_that_moves_other_time_wakes_nobody_of_its_own() {
    let (outer, inner) = (VirtualTime::new(), VirtualTime::new());
    let log = Log::new();
    let says = |word: &'static str| {
        let log = log.clone();
        calls(move || log.push(word))
    };
    let _own = polled(Box::pin(outer.timers().sleep(2 * MS)), &says("outer woken"));
    let _other = polled(Box::pin(inner.timers().sleep(MS)), &says("inner woken"));
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
