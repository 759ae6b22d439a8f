//! H4 (forks, exits, drops): timers in a forked child, and in its parent.

#![expect(unsafe_code, reason = "fork(2) has no safe function")]
// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "support/in_child.rs"]
mod in_child;
mod support;

use in_child::in_child;
use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use support::{Place, shared_count, shared_flag, wait_until};
use tickless::bandwidth::AcquireError;
use tickless::callback::{Cancel, StartError};
use tickless::clock::TimeBase;
use tickless::embed::PinnedHrTimer;
use tickless::periodic::Phase;
use tickless::{Fired, Timers, VirtualTime};

const MS: Duration = Duration::from_millis(1);

fn beating(timers: &Timers) -> (tickless::Periodic, Arc<AtomicU64>) {
    let (beats, counted) = shared_count();
    let heart = timers.periodic(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
    heart.start(MS).unwrap();
    (heart, beats)
}

fn assert_beats(beats: &AtomicU64) {
    let before = beats.load(Ordering::Relaxed);
    wait_until("it keeps beating", || beats.load(Ordering::Relaxed) > before + 2);
}

#[test]
fn in_a_child_all_timers_are_shut_down() {
    let timers = Timers::builder().bases(2).start().unwrap();
    let (heart, beats) = beating(&timers);
    let (timeout, idle) = (timers.timeout(|_| {}), timers.hrtimer(|_| {}));
    // This thread takes the lock of its base so often that the lock is biased towards it.
    for _ in 0..300_000 {
        timeout.cancel();
        timeout.start(Duration::from_secs(60)).unwrap();
    }
    let mut all = Some((heart, timeout, idle, timers));
    in_child(|| {
        let (heart, timeout, idle, timers) = all.take().expect("the child has a copy");
        let before = timers.now();
        let beaten = beats.load(Ordering::Relaxed);
        assert!(!timeout.is_pending() && !timeout.is_active() && !heart.is_active());
        assert_eq!(
            (timeout.cancel(), idle.cancel(), heart.cancel()),
            (Cancel::Idle, Cancel::Idle, Cancel::Idle)
        );
        assert_eq!(timeout.start(MS), Err(StartError::Shut));
        assert_eq!(idle.start(MS), Err(StartError::Shut));
        assert!(heart.start(MS).is_err());
        let fresh = timers.timeout(|_| {});
        assert_eq!(fresh.reduce(MS), Err(StartError::Shut));
        assert!(timers.stats().bases.is_empty());
        std::thread::sleep(MS * 5);
        assert!(timers.now() - before >= MS * 5, "the clock advances");
        assert_eq!(beats.load(Ordering::Relaxed), beaten);
        drop((heart, fresh, timers, timeout, idle));
    });
    assert_beats(&beats);
    let (heart, timeout, ..) = all.as_ref().expect("the parent has kept them");
    assert!(heart.is_active());
    assert_eq!(timeout.cancel(), Cancel::Pending);
}

/// A callback whose type has a name.
type Boxed = Box<dyn FnMut(&mut Fired<'_>) + Send>;

/// Goal: X4 (an address is no identity) in a child that a callback has forked.
#[test]
fn a_child_of_a_callback_uses_the_memory_of_its_timer_again() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let (place, forked) = (Place::empty(), Arc::new(AtomicBool::new(false)));
    let (inside, done) = (place.clone(), Arc::clone(&forked));
    let callback = move |_: &mut Fired<'_>| {
        wait_until("the timer is in its place", || !inside.is_empty());
        in_child(|| {
            let mut memory: Pin<Box<PinnedHrTimer<Boxed>>> = inside.take().expect("it is there");
            let own = Timers::builder().bases(1).start().expect("a child has its own timers");
            let (begun, ended) = <[Arc<AtomicBool>; 2]>::default().into();
            let (on, off) = (Arc::clone(&begun), Arc::clone(&ended));
            let slow = move |_: &mut Fired<'_>| {
                on.store(true, Ordering::SeqCst);
                std::thread::sleep(20 * MS);
                off.store(true, Ordering::SeqCst);
            };
            memory.set(PinnedHrTimer::new(&own, Box::new(slow)));
            memory.as_ref().timer().start(Duration::ZERO).expect("it is not shut down");
            wait_until("the new callback runs", || begun.load(Ordering::SeqCst));
            drop(memory);
            assert!(ended.load(Ordering::SeqCst), "the drop did not wait");
        });
        done.store(true, Ordering::SeqCst);
    };
    let memory = Box::pin(PinnedHrTimer::<Boxed>::new(&timers, Box::new(callback)));
    memory.as_ref().timer().start(Duration::ZERO).unwrap();
    place.put(memory);
    wait_until("the child has ended", || forked.load(Ordering::SeqCst));
    drop(place.take());
}

/// Ends the process with success when it is dropped.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        // SAFETY: ends the process immediately.
        unsafe { libc::_exit(0) }
    }
}

/// Returns objects of all kinds, of which the timers are pending.
fn objects(timers: &Timers) -> Vec<Box<dyn Any>> {
    let timeout = timers.timeout(|_| {});
    let alarm = timers.clock_timer(TimeBase::Realtime, |_| {});
    let limiter = timers.limiter(1, MS * 1_000).start().unwrap();
    let keyed = timers.limiter(1, MS * 1_000).keyed::<u32>().unwrap();
    timeout.start(MS * 1_000).unwrap();
    alarm.start(MS * 1_000).unwrap();
    limiter.try_acquire(1).unwrap();
    let sleeps = [timers.sleep(MS * 1_000), tickless::future::sleep(MS * 1_000)].map(|sleep| {
        let mut sleep = Box::pin(sleep);
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        sleep
    });
    let time = VirtualTime::new();
    let moves = (time.busy(), time.auto_advance());
    let on_loop = Timers::builder().start_in_loop().unwrap();
    vec![
        Box::new((timeout, alarm, beating(timers), timers.clone())),
        Box::new((limiter, keyed, sleeps, on_loop)),
        Box::new((moves, time)),
    ]
}

/// Goal: K4 (locks at a fork). The child ends as a program does: the thread-locals of its thread
/// are destroyed.
#[test]
fn a_child_does_not_wait_for_locks() {
    thread_local! {
        static LAST: Cell<Option<Last>> = const { Cell::new(None) };
        static OBJECTS: Cell<Vec<Box<dyn Any>>> = const { Cell::new(Vec::new()) };
    }
    let timers = Timers::builder().bases(1).start().unwrap();
    // The last one to be used first is the first to be destroyed.
    LAST.set(Some(Last));
    OBJECTS.set(objects(&timers));
    let (_heart, beats) = beating(&timers);
    let often = timers.periodic(|_| {});
    let done = AtomicBool::new(false);
    // A thread that starts holds a lock of `std`, for which `exit` waits in a child.
    let have_started = Barrier::new(3);
    std::thread::scope(|s| {
        s.spawn(|| {
            have_started.wait();
            let pool: Vec<_> = (0..100).map(|_| timers.timeout(|_| {})).collect();
            while !done.load(Ordering::Relaxed) {
                for timer in &pool {
                    timer.start(Duration::from_secs(10)).unwrap();
                }
                pool.iter().for_each(|timer| assert_ne!(timer.cancel(), Cancel::Running));
            }
        });
        s.spawn(|| {
            have_started.wait();
            while !done.load(Ordering::Relaxed) {
                often.start(Duration::from_secs(1)).unwrap();
            }
        });
        have_started.wait();
        let forks = || {
            for _ in 0..50 {
                let mut mine = Some((timers.timeout(|_| {}), timers.clone()));
                mine.as_ref().map(|(timer, _)| timer.start(Duration::from_secs(1)));
                in_child(|| {
                    let (timer, timers) = mine.take().expect("the child has a copy");
                    assert_eq!((timer.cancel(), often.cancel()), (Cancel::Idle, Cancel::Idle));
                    assert!(often.start_at(timers.now(), MS).is_err() && !often.is_active());
                    assert_eq!(
                        (often.cancel_sync(), often.phase_offset()),
                        (Ok(Cancel::Idle), None)
                    );
                    assert!(timers.now() > tickless::time::Instant::ZERO);
                    assert!(timers.stats().bases.is_empty());
                    // With musl, `exit` destroys no thread-locals.
                    std::process::exit(i32::from(cfg!(target_env = "gnu")))
                });
            }
        };
        let forked = catch_unwind(AssertUnwindSafe(forks));
        done.store(true, Ordering::Relaxed);
        // Here it would end the tests.
        if let Some(last) = LAST.take() {
            std::mem::forget(last);
        }
        assert!(forked.is_ok(), "a child hangs or has failed");
    });
    drop(OBJECTS.take());
    assert_beats(&beats);
}

#[test]
fn a_child_leaves_its_parents_devices_alone() {
    let (timers, mut driver) = Timers::builder().start_in_loop().unwrap();
    let timer = timers.hrtimer(|_| {});
    timer.start(MS).unwrap();
    let driven = Timers::builder().bases(1).start().unwrap();
    let (heart, beats) = beating(&driven);
    let clock_timer = driven.clock_timer(TimeBase::Realtime, |_| {});
    let noon = driven.now_on(TimeBase::Realtime) + Duration::from_secs(3600);
    clock_timer.start_at(noon).unwrap();
    let mut all = Some((heart, driven, timer, timers));
    let mut last = Some(clock_timer);
    in_child(|| {
        std::thread::sleep(MS * 2);
        let clock_timer = last.take().expect("the child has a copy");
        assert_eq!(clock_timer.start_at(noon), Err(StartError::Shut));
        assert_eq!((clock_timer.cancel(), clock_timer.is_pending()), (Cancel::Idle, false));
        drop(clock_timer);
        assert_eq!((driver.run(), driver.next_event(), driver.timeout()), (0, None, None));
        let (heart, driven, timer, timers) = all.take().expect("the child has a copy");
        assert_eq!(timer.start(MS), Err(StartError::Shut));
        assert!(!driver.is_over());
        drop((timer, heart, driven, timers));
    });
    assert_beats(&beats);
    wait_until("it fires in the parent", || driver.run() == 1);
    assert_eq!(last.map(|timer| timer.cancel()), Some(Cancel::Pending));
}

/// Goal: K4 (locks at a fork).
#[test]
fn virtual_time_is_refused_in_a_child() {
    const REFUSED: [fn(&VirtualTime); 9] = [
        |time| time.advance(MS),
        |time| time.advance_to(time.now()),
        |time| _ = time.advance_to_next(),
        |time| time.set_realtime(time.now()),
        |time| time.suspend(MS),
        |time| drop(time.add_timers(Timers::builder())),
        |time| _ = time.idle(),
        |time| drop(time.auto_advance()),
        |time| time.block_on(time.timers().sleep(MS)),
    ];
    let time = VirtualTime::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let repeatedly = |action: fn(&VirtualTime)| {
            let (time, done) = (&time, &done);
            s.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    action(time);
                }
            });
        };
        repeatedly(|time| time.advance(MS));
        (0..4).for_each(|_| repeatedly(|time| drop(time.busy())));
        repeatedly(|time| {
            let timer = time.timers().timeout(|_| {});
            timer.start(MS).unwrap();
            timer.cancel();
        });
        let forked = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..60 {
                let mut mine = Some((time.busy(), time.auto_advance(), time.clone()));
                let timer = time.timers().hrtimer(|_| {});
                in_child(|| {
                    std::panic::set_hook(Box::new(|_| {}));
                    let (busy, moves, time) = mine.take().expect("the child has a copy");
                    for (nth, refused) in REFUSED.iter().enumerate() {
                        let ended = catch_unwind(AssertUnwindSafe(|| refused(&time)));
                        assert!(ended.is_err(), "use {nth} was not refused");
                    }
                    assert!(catch_unwind(AssertUnwindSafe(|| time.busy())).is_err());
                    assert_eq!((timer.start(MS), time.next_event()), (Err(StartError::Shut), None));
                    drop((busy, moves, timer, time));
                    let own = VirtualTime::new();
                    let timer = own.timers().timeout(|f| f.restart(MS * 1_000));
                    timer.start(MS).unwrap();
                    own.advance(MS * 10_000);
                    assert!(own.timers().stats().total().fired >= 8);
                });
            }
        }));
        done.store(true, Ordering::Relaxed);
        assert!(forked.is_ok(), "a child hangs");
    });
}

/// What a child does with timers of its own: each operation that takes a lock of the process.
fn uses_its_own() {
    let own = Timers::builder().bases(2).start().unwrap();
    // Often enough to become owner of a base's lock, and to lose that again.
    let timer = own.timeout(|_| {});
    for _ in 0..5_000 {
        timer.start(Duration::from_secs(60)).unwrap();
        assert_eq!(timer.cancel(), Cancel::Pending);
    }
    waits_for_a_callback(&own);
    let (heart, beats) = beating(&own);
    assert_beats(&beats);
    drop((timer, heart, own));
}

/// Cancels a timer whose callback runs, and waits for long enough to register the wait.
fn waits_for_a_callback(timers: &Timers) {
    let (begun, announce) = shared_flag();
    let busy = timers.hrtimer(move |_| {
        announce.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(300));
    });
    busy.start(Duration::ZERO).unwrap();
    wait_until("the callback runs", || begun.load(Ordering::Relaxed));
    assert!(busy.cancel_sync().is_ok());
}

/// Starts a thread without `std`, which could start none in a child. The caller joins it, and keeps
/// `body` until then.
fn begin_foreign<F: Fn() + Sync>(body: &F) -> libc::pthread_t {
    extern "C" fn begin<F: Fn() + Sync>(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: this is the caller's body, which the caller keeps until this thread has ended.
        let body = unsafe { &*body.cast::<F>() };
        let ended = catch_unwind(AssertUnwindSafe(body));
        if ended.is_ok() { core::ptr::null_mut() } else { core::ptr::dangling_mut() }
    }
    let mut thread = MaybeUninit::uninit();
    let given = core::ptr::from_ref(body).cast_mut().cast();
    // SAFETY: the thread is written if the call succeeds, and the caller keeps the body.
    unsafe {
        let place = thread.as_mut_ptr();
        assert_eq!(libc::pthread_create(place, core::ptr::null(), begin::<F>, given), 0);
        thread.assume_init()
    }
}

fn join_foreign(thread: libc::pthread_t) {
    let mut ended = core::ptr::null_mut();
    // SAFETY: `begin_foreign` started the thread, and nothing else joins it.
    assert_eq!(unsafe { libc::pthread_join(thread, &mut ended) }, 0);
    assert!(ended.is_null(), "it panicked");
}

/// Goal: K4 (locks at a fork). Method: threads that start and end, become owner of a base's lock
/// and lose that, and wait for callbacks and for each other's locks.
#[test]
fn locks_of_the_process_do_not_block_a_child() {
    let timers = Timers::builder().bases(2).start().unwrap();
    let guarded = tickless::callback::CallbackLock::new(0u64);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    *guarded.lock() += 1;
                }
            });
        }
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                waits_for_a_callback(&timers);
            }
        });
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                join_foreign(begin_foreign(&|| {
                    let timer = timers.timeout(|_| {});
                    for _ in 0..2_500 {
                        timer.start(Duration::from_secs(60)).unwrap();
                        timer.cancel();
                    }
                }));
            }
        });
        let forked =
            catch_unwind(AssertUnwindSafe(|| (0..60).for_each(|_| in_child(uses_its_own))));
        done.store(true, Ordering::Relaxed);
        assert!(forked.is_ok(), "a child hangs");
    });
}

/// Method: in children, because a process starts these timers once.
#[test]
fn a_concurrent_first_future_does_not_block_a_child() {
    for round in 0..30u64 {
        in_child(|| {
            let sleeps = || pollster::block_on(tickless::future::sleep(MS));
            let first = begin_foreign(&sleeps);
            std::thread::sleep(Duration::from_micros(round * 40));
            in_child(sleeps);
            join_foreign(first);
        });
    }
}

#[test]
fn a_child_has_no_permits() {
    let timers = Timers::builder().bases(1).start().unwrap();
    let limiter = timers.limiter(10, MS * 1_000).start().unwrap();
    let key = Arc::new(1);
    let keys = timers.limiter(10, MS * 1_000).keyed::<Arc<u32>>().unwrap();
    // Some permits can be taken without a lock.
    limiter.try_acquire(1).unwrap();
    keys.try_acquire(&key, 1).unwrap();
    let mut both = Some((limiter, keys));
    in_child(|| {
        let (limiter, keys) = both.take().expect("the child has a copy");
        let none = Err(AcquireError::NoTimers);
        assert_eq!((limiter.try_acquire(1), keys.try_acquire(&key, 1)), (none, none));
        assert_eq!(limiter.blocking_acquire(1), none);
        assert_eq!(keys.limiter(&key).err(), Some(AcquireError::NoTimers));
        assert_eq!((limiter.available(), keys.available(&key), keys.len()), (0, 0, 0));
        assert_eq!(keys.remove_idle(), 0);
        drop((limiter, keys));
        // The table was perhaps half changed at the fork.
        assert_eq!(Arc::strong_count(&key), 2, "the child dropped a key of its parent");
    });
    let (limiter, keys) = both.expect("the parent has kept them");
    assert_eq!((limiter.try_acquire(9), keys.try_acquire(&key, 9)), (Ok(()), Ok(())));
}

/// The system's allocator, which pauses a thread in one of its allocations if a test requests it.
struct Pausing;

#[global_allocator]
static ALLOCATOR: Pausing = Pausing;

/// A thread that has not allocated yet.
const NEW: u32 = u32::MAX;

thread_local! {
    /// The number of allocations until this thread pauses in one; 0 if it does not pause.
    static PAUSES_IN: Cell<u32> = const { Cell::new(NEW) };
}
/// The process whose next thread pauses in its first allocation.
static NEXT_PAUSES: AtomicU32 = AtomicU32::new(0);
static IS_PAUSED: AtomicBool = AtomicBool::new(false);
static IS_RESUMED: AtomicBool = AtomicBool::new(false);

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Pausing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = match PAUSES_IN.get() {
            NEW => u32::from(NEXT_PAUSES.swap(0, Ordering::SeqCst) == std::process::id()),
            left => left,
        };
        PAUSES_IN.set(left.saturating_sub(1));
        if left == 1 {
            IS_PAUSED.store(true, Ordering::SeqCst);
            while !IS_RESUMED.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            IS_PAUSED.store(false, Ordering::SeqCst);
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// An operation on a set of timers, and its name.
type Use = (&'static str, fn(&Timers));

/// Every operation on a set of timers that takes one of the set's locks, or one of the process.
const USES: [Use; 9] = [
    ("timeout", |timers| drop(timers.timeout(|_| {}).labelled("a timeout"))),
    ("large closure", |timers| {
        let large = [0u64; 100];
        drop(timers.hrtimer(move |_| assert_eq!(large[0], 0)).labelled("a precise timer"));
    }),
    ("periodic", |timers| {
        let timer = timers.periodic(|_| {}).phase(Phase::Spread);
        let _ = (timer.start(MS * 1_000), timer.phase_offset(), timer.is_active());
    }),
    ("clock timer", |timers| {
        let timer = timers.clock_timer(TimeBase::Realtime, |_| {});
        let _ = timer.start(MS * 1_000);
        let _ = (timer.is_pending(), timer.deadline(), timers.clock_watch_fallback());
    }),
    ("limiters", |timers| {
        if let Ok(limiter) = timers.limiter(10, MS * 1_000).start() {
            let _ = limiter.try_acquire(1);
        }
        if let Ok(keys) = timers.limiter(10, MS * 1_000).keyed::<u32>() {
            let _ = (keys.try_acquire(&1, 1), keys.limiter(&1).is_ok(), keys.remove_idle());
        }
    }),
    ("figures", |timers| {
        let _ = (timers.stats(), timers.timer_list().to_string(), timers.leaks());
        let _ = (timers.phase_count(MS * 1_000), timers.clock_fallback());
    }),
    ("std instants", |timers| {
        let now = tickless::time::to_std(timers.now());
        let _ = tickless::time::from_std(now);
    }),
    ("bases", |timers| {
        let base = tickless::driver::CpuId(1);
        let _ = (timers.offline(base), timers.online(base));
    }),
    ("sleep", |timers| {
        let mut sleep = std::pin::pin!(timers.sleep(MS * 1_000));
        let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }),
];

/// Goal: K4 (locks at a fork). Method: another thread pauses in each allocation of each operation,
/// one after the other, while the process forks.
#[test]
fn no_lock_of_the_parent_blocks_a_child() {
    let _alone = PAUSING.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, other) in USES {
        for nth in 1.. {
            let timers = Timers::builder().bases(2).start().unwrap();
            let mut mine = Some(timers.clone());
            let pausing = move || {
                PAUSES_IN.set(nth);
                other(&timers);
                PAUSES_IN.replace(0) == 0
            };
            let has_paused = fork_while(0, pausing, || {
                let timers = mine.take().expect("the child has a copy");
                USES.iter().for_each(|(_, used)| used(&timers));
            });
            if !has_paused {
                println!("{name}: {} allocations", nth - 1);
                break;
            }
        }
    }
}

/// Goal: K4 (locks at a fork), for the locks that `std` holds while it starts a thread. Method: a
/// new thread pauses in its first allocation. With 12 threads or more that is under the lock of the
/// tree of all threads, when a node of the tree is full.
#[test]
fn a_thread_that_begins_does_not_block_a_child() {
    let _alone = PAUSING.lock().unwrap_or_else(PoisonError::into_inner);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let rounds = || {
            for _ in 0..24 {
                s.spawn(|| {
                    while !done.load(Ordering::SeqCst) {
                        std::thread::sleep(MS);
                    }
                });
                fork_while(std::process::id(), || true, uses_its_own);
            }
        };
        let forked = catch_unwind(AssertUnwindSafe(rounds));
        done.store(true, Ordering::SeqCst);
        assert!(forked.is_ok(), "a child hangs");
    });
}

/// Held by the test whose thread pauses.
static PAUSING: Mutex<()> = Mutex::new(());

/// Forks a child, which runs `child`, when a new thread has paused or ended in `pausing`. Returns
/// what that returned. The next thread of the process `next` pauses in its first allocation; that
/// can be one of another test.
fn fork_while(
    next: u32,
    pausing: impl FnOnce() -> bool + Send + 'static,
    child: impl FnOnce(),
) -> bool {
    IS_PAUSED.store(false, Ordering::SeqCst);
    IS_RESUMED.store(false, Ordering::SeqCst);
    NEXT_PAUSES.store(next, Ordering::SeqCst);
    let pausing = std::thread::spawn(pausing);
    let forked = catch_unwind(AssertUnwindSafe(|| {
        let is_there = || IS_PAUSED.load(Ordering::SeqCst) || pausing.is_finished();
        wait_until("it pauses or ends", is_there);
        in_child(child);
    }));
    IS_RESUMED.store(true, Ordering::SeqCst);
    let has_paused = pausing.join().unwrap();
    // Before the next round lets it pause for longer, perhaps with a lock of `std`.
    wait_until("it goes on", || !IS_PAUSED.load(Ordering::SeqCst));
    assert!(forked.is_ok(), "a child hangs");
    has_paused
}
