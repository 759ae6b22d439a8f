//! A timer that a callback creates in the memory of its own dropped timer is a different timer.

use crate::support::histories::end_after;
use crate::support::woken::woken;
use crate::support::{Log, MS, Place, rounds, wait_until};
use pin_project_lite::pin_project;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tickless::callback::{Cancel, Started};
use tickless::driver::CpuId;
use tickless::embed::{PinnedHrTimer, PinnedTimeout};
use tickless::future::{Sleep, labelled};
use tickless::{CancelError, Fired, Timers, VirtualTime};

/// A callback whose type has a name.
type Boxed = Box<dyn FnMut(&mut Fired<'_>) + Send>;

pin_project! {
    /// Memory for one timer after another. Each timer starts at the same address.
    #[project_ref = Timer]
    #[project = TimerMut]
    #[repr(u64)]
    enum Memory {
        Empty,
        Coarse { #[pin] timer: PinnedTimeout<Boxed> },
        Precise { #[pin] timer: PinnedHrTimer<Boxed> },
        Sleep { #[pin] sleep: Sleep },
    }
}

type PinnedMemory = Pin<Box<Memory>>;

fn precise(timers: &Timers, callback: impl FnMut(&mut Fired<'_>) + Send + 'static) -> Memory {
    Memory::Precise { timer: PinnedHrTimer::new(timers, Box::new(callback)) }
}

fn coarse(timers: &Timers, callback: impl FnMut(&mut Fired<'_>) + Send + 'static) -> Memory {
    Memory::Coarse { timer: PinnedTimeout::new(timers, Box::new(callback)) }
}

/// Runs an expression on the timer in some memory.
macro_rules! with {
    ($memory:expr, $timer:ident => $body:expr) => {
        match $memory.as_ref().project_ref() {
            Timer::Coarse { timer } => {
                let $timer = timer.timer();
                $body
            }
            Timer::Precise { timer } => {
                let $timer = timer.timer();
                $body
            }
            _ => panic!("no timer is here"),
        }
    };
}

fn start(memory: &PinnedMemory, after: Duration) -> Started {
    with!(memory, timer => timer.start(after)).unwrap()
}

/// The address of the core's timer.
fn address(memory: &PinnedMemory) -> usize {
    match memory.as_ref().project_ref() {
        Timer::Coarse { timer } => std::ptr::from_ref(timer.get_ref()).addr(),
        Timer::Precise { timer } => std::ptr::from_ref(timer.get_ref()).addr(),
        Timer::Sleep { sleep } => std::ptr::from_ref(sleep.get_ref()).addr(),
        Timer::Empty => panic!("no timer is here"),
    }
}

/// Replaces the timer in this memory, which drops the old one.
fn replace(memory: &mut PinnedMemory, new: Memory) {
    let old = address(memory);
    memory.as_mut().set(new);
    assert_eq!(address(memory), old, "this test needs the address to be used again");
}

/// Polls the sleep in this memory under a label.
fn poll_as(label: &'static str, memory: &mut PinnedMemory, waker: &Waker) -> Poll<()> {
    let TimerMut::Sleep { mut sleep } = memory.as_mut().project() else {
        panic!("no sleep is here");
    };
    let polled = pin!(labelled(label, std::future::poll_fn(move |cx| sleep.as_mut().poll(cx))));
    polled.poll(&mut Context::from_waker(waker))
}

/// Puts a timer of `make` into memory and starts it. Its callback calls `body` with that memory.
fn fires_and<F>(make: impl FnOnce(Boxed) -> Memory, mut body: F)
where
    F: FnMut(PinnedMemory) + Send + 'static,
{
    let place = Place::empty();
    let inside = place.clone();
    let memory = Box::pin(make(Box::new(move |_| {
        wait_until("its memory is in its place", || !inside.is_empty());
        body(inside.take().unwrap());
    })));
    start(&memory, MS);
    place.put(memory);
}

/// The result of each method that cancels a timer.
fn cancels(memory: &PinnedMemory) -> [Result<Cancel, CancelError>; 5] {
    let armed = |cancel: &dyn Fn() -> Result<Cancel, CancelError>| {
        start(memory, MS);
        cancel()
    };
    with!(memory, timer => [
        armed(&|| Ok(timer.cancel())),
        armed(&|| Ok(timer.try_cancel())),
        armed(&|| timer.cancel_sync()),
        armed(&|| timer.cancel_single_shot()),
        timer.cancel_sync(),
    ])
}

const PENDING: Result<Cancel, CancelError> = Ok(Cancel::Pending);
const IDLE: Result<Cancel, CancelError> = Ok(Cancel::Idle);

/// Goal: X4 (an address is no identity).
#[test]
fn a_timer_in_reused_memory_is_not_in_its_own_callback() {
    let time = VirtualTime::new();
    type Make = fn(&Timers, Boxed) -> Memory;
    let make: [Make; 2] = [
        |timers, callback| Memory::Coarse { timer: PinnedTimeout::new(timers, callback) },
        |timers, callback| Memory::Precise { timer: PinnedHrTimer::new(timers, callback) },
    ];
    let seen = Log::new();
    for (old, new) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (timers, log) = (time.timers().clone(), seen.clone());
        let first = |callback| make[old](time.timers(), callback);
        fires_and(first, move |mut memory| {
            replace(&mut memory, make[new](&timers, Box::new(|_: &mut Fired<'_>| ())));
            let is_active = with!(memory, timer => timer.is_active());
            log.push((is_active, cancels(&memory)));
            start(&memory, MS);
        });
        time.advance(10 * MS);
        assert_eq!(seen.take(), [(false, [PENDING, PENDING, PENDING, PENDING, IDLE])]);
        time.assert_idle();
    }
}

/// Goal: X4 (an address is no identity), X1 (a drop waits for the callback).
#[test]
fn a_drop_in_reused_memory_waits_for_the_callback() {
    let (time, timers) = (VirtualTime::new(), Timers::builder().bases(1).start().unwrap());
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (on, off) = (Arc::clone(&begun), Arc::clone(&ended));
    let first = |callback| precise(time.timers(), callback);
    fires_and(first, move |mut memory| {
        let (on, off, begun) = (Arc::clone(&on), Arc::clone(&off), Arc::clone(&on));
        replace(
            &mut memory,
            precise(&timers, move |_| {
                on.store(true, Ordering::SeqCst);
                std::thread::sleep(20 * MS);
                off.store(true, Ordering::SeqCst);
            }),
        );
        start(&memory, Duration::ZERO);
        wait_until("the new callback runs", || begun.load(Ordering::SeqCst));
    });
    time.advance(2 * MS);
    assert!(begun.load(Ordering::SeqCst) && ended.load(Ordering::SeqCst), "it did not wait");
}

/// Goal: X4 (an address is no identity) with nested callbacks: the inner callback's set replaces
/// the timer of the outer callback, whose frame is not the innermost, and the other way round.
#[test]
fn nested_callbacks_tell_timers_of_two_sets_apart() {
    let (outer, inner, seen) = (VirtualTime::new(), VirtualTime::new(), Log::new());
    let (timers, log) = (outer.timers().clone(), seen.clone());
    let first = |callback| precise(outer.timers(), callback);
    fires_and(first, move |memory| {
        let (timers, log, inner, place) =
            (timers.clone(), log.clone(), inner.clone(), Place::empty());
        let (outer_memory, own_timers) = (place.clone(), inner.timers().clone());
        place.put(memory);
        let second = |callback| coarse(inner.timers(), callback);
        let results = log.clone();
        fires_and(second, move |mut own: PinnedMemory| {
            let mut memory = outer_memory.take().unwrap();
            replace(&mut memory, precise(&own_timers, |_| ()));
            results.push(cancels(&memory));
            replace(&mut own, precise(&timers, |_| ()));
            results.push(cancels(&own));
            replace(&mut memory, coarse(&timers, |_| ()));
            results.push(cancels(&memory));
            outer_memory.put(memory);
        });
        inner.advance(10 * MS);
        log.push(cancels(&place.take().unwrap()));
    });
    outer.advance(2 * MS);
    assert_eq!(seen.take(), [[PENDING, PENDING, PENDING, PENDING, IDLE]; 4]);
}

/// Goal: X4 (an address is no identity).
#[test]
fn a_restart_of_a_dead_timer_is_ignored() {
    let (time, fired) = (VirtualTime::new(), Arc::new(AtomicU64::new(0)));
    let (place, kept, count) = (Place::empty(), Place::empty(), Arc::clone(&fired));
    let (inside, keeps, timers) = (place.clone(), kept.clone(), time.timers().clone());
    let first = precise(time.timers(), move |fired: &mut Fired<'_>| {
        fired.restart(MS);
        let (mut memory, count): (PinnedMemory, _) = (inside.take().unwrap(), Arc::clone(&count));
        start(&memory, MS);
        replace(&mut memory, precise(&timers, move |_| _ = count.fetch_add(1, Ordering::SeqCst)));
        assert_eq!(timers.stats().pending(), 0, "a timer is pending that has been dropped");
        keeps.put(memory);
        fired.forward(MS);
    });
    let memory = Box::pin(first);
    start(&memory, MS);
    place.put(memory);
    time.advance(40 * MS);
    let stats = time.timers().stats();
    assert_eq!((stats.total().fired, stats.pending()), (1, 0), "the next timer has been armed");
    kept.with(|memory| start(memory, MS));
    time.advance(2 * MS);
    assert_eq!((fired.load(Ordering::SeqCst), time.timers().stats().total().fired), (1, 2));
    drop(kept.take());
}

/// Goal: X4 (an address is no identity), D9 (relief).
#[test]
fn another_expiry_thread_fires_a_timer_in_reused_memory() {
    let timers = Timers::builder().bases(1).expiry_threads().patience(MS).start().unwrap();
    let (set, (tx, result)) = (timers.clone(), mpsc::channel());
    let first = |callback| coarse(&timers, callback);
    fires_and(first, move |mut memory| {
        let (fires, fired) = mpsc::channel();
        replace(&mut memory, coarse(&set, move |_| fires.send(()).unwrap_or(())));
        start(&memory, 2 * MS);
        tx.send(fired.recv_timeout(Duration::from_secs(10))).unwrap();
    });
    assert_eq!(result.recv(), Ok(Ok(())), "it waited for the callback of a dead timer");
}

/// Goal: X4 (an address is no identity), D8 (offline bases).
#[test]
fn a_timer_in_reused_memory_leaves_an_offline_base() {
    let timers = Timers::builder().bases(2).start().unwrap();
    // Timers armed here go to base 1, whatever CPU this thread runs on.
    timers.offline(CpuId(0)).unwrap();
    let (set, (tx, moved)) = (timers.clone(), mpsc::channel());
    let first = |callback| precise(&timers, callback);
    fires_and(first, move |mut memory| {
        replace(&mut memory, precise(&set, |_| ()));
        start(&memory, Duration::from_secs(3_600));
        set.online(CpuId(0)).unwrap();
        tx.send(set.offline(CpuId(1))).unwrap();
        set.online(CpuId(1)).unwrap();
    });
    assert_eq!(moved.recv(), Ok(Ok(1)), "it stayed for the callback of a dead timer");
}

/// Goal: X4 (an address is no identity).
#[test]
fn timers_in_reused_memory_have_their_own_labels() {
    let time = VirtualTime::with_builder(
        Timers::builder().time_callbacks(),
        tickless::time::Instant::ZERO,
    );
    let (kept, moved) = (Place::empty(), time.clone());
    let keeps = kept.clone();
    let first = |callback| precise(time.timers(), callback);
    fires_and(first, move |mut memory| {
        let sleep = moved.timers().sleep(Duration::from_secs(60));
        replace(&mut memory, Memory::Sleep { sleep });
        assert_eq!(poll_as("the next one", &mut memory, Waker::noop()), Poll::Pending);
        keeps.put(memory);
        moved.advance(3 * MS);
    });
    time.advance(2 * MS);
    let times = time.timers().stats().callbacks().unwrap();
    assert_ne!(times.longest_of, "the next one");
    drop(kept.take());
}

/// Goal: X1 (nothing runs after a cancel), X4 (an address is no identity). Method: timers that are
/// dropped in their callbacks, each followed by a sleep at its address that fires on another driver
/// while it is dropped. ThreadSanitizer and Miri detect an error here, and sometimes the allocator
/// does. `TICKLESS_SECONDS` sets the duration.
#[test]
fn sleeps_in_the_memory_of_dropped_timers_are_safe() {
    let until = end_after(Duration::ZERO);
    let mine = Timers::builder().bases(1).start().unwrap();
    let others = Timers::builder().bases(1).start().unwrap();
    let mut done = 0;
    while done < rounds(2_000) || Instant::now() < until {
        let (tx, died) = mpsc::channel();
        let (others, nth) = (others.clone(), done);
        let first = |callback| precise(&mine, callback);
        fires_and(first, move |mut memory| {
            // A waker on the heap, which the driver must not use after the drop.
            let (_, waker) = woken();
            let after = Duration::from_nanos(1_000 * (nth % 64));
            replace(&mut memory, Memory::Sleep { sleep: others.sleep(after) });
            let is_pending = poll_as("an heir", &mut memory, &waker) == Poll::Pending;
            let begun = Instant::now();
            while is_pending && begun.elapsed() < after + Duration::from_nanos(500 * (nth % 128)) {
                std::hint::spin_loop();
            }
            drop(memory);
            tx.send(()).unwrap();
        });
        died.recv().unwrap();
        done += 1;
    }
    println!("{done} timers died in their callbacks");
}
