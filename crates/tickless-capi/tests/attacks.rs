//! Random histories of the C interface with accounts: timers on threads, in loops and in virtual
//! time, keyed limiters and throttles, and batches of local timers. Callbacks destroy what they may
//! and misuse what they may not.

#![expect(unsafe_code, reason = "calls the C interface")]
// Tests panic, print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../../tickless/tests/support/histories.rs"]
mod histories;

use core::ffi::c_void;
use core::ptr::{from_ref, null, null_mut};
use histories::{Rng, end_after, seed, wait_until};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use tickless_capi::bandwidth::*;
use tickless_capi::event_loop::*;
use tickless_capi::fired::*;
use tickless_capi::local::*;
use tickless_capi::local_batches::*;
use tickless_capi::options::*;
use tickless_capi::status::Status;
use tickless_capi::timer::*;
use tickless_capi::timers::*;
use tickless_capi::virtual_time::*;

const RELAXED: Ordering = Ordering::Relaxed;
/// How long each test runs without `TICKLESS_SECONDS`.
const SHORT: Duration = Duration::from_millis(1_500);

/// Counts the callbacks that failed: the library catches their panics, and goes on.
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Dropped at the end of a callback.
struct InCallback;

impl Drop for InCallback {
    fn drop(&mut self) {
        FAILED.fetch_add(u64::from(std::thread::panicking()), RELAXED);
    }
}

/// Calls a function of the C interface, which must succeed.
macro_rules! ok {
    ($call:expr) => {
        // SAFETY: the test passes pointers to memory and handles that live until the call returns.
        assert_eq!(unsafe { $call }, Status::Ok)
    };
}

/// Calls a function of the C interface, which must fail with this status.
macro_rules! refused {
    ($status:ident, $call:expr) => {
        // SAFETY: as in `ok`.
        assert_eq!(unsafe { $call }, Status::$status)
    };
}

/// The driver of a set of timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driver {
    Threads,
    Loops,
    VirtualTime,
}

const BASES: u32 = 2;

/// A set of timers that several threads use.
struct Shared {
    driver: Driver,
    set: AtomicPtr<TimerSet>,
    /// Threads take a loop, adopt it, run it, and give it back.
    loops: [Mutex<AtomicPtr<Loop>>; BASES as usize],
}

impl Shared {
    fn start(driver: Driver, rng: &mut Rng) -> Shared {
        let (mut set, mut loops) = (null_mut(), [null_mut(); BASES as usize]);
        let options = Options {
            size: size_of::<Options>(),
            bases: BASES,
            tick_ns: 10_000 + rng.of_any_size(20),
            deferral: [TICKLESS_DEFERRAL_NONE, TICKLESS_DEFERRAL_ON_EXPIRY][rng.below(2) as usize],
            ..Options::default()
        };
        let options = &raw const options;
        match driver {
            Driver::Threads => ok!(tickless_timers_start(options, &raw mut set)),
            Driver::Loops => {
                ok!(tickless_timers_start_in_loops(
                    options,
                    BASES,
                    &raw mut set,
                    loops.as_mut_ptr()
                ));
            }
            Driver::VirtualTime => ok!(tickless_timers_start_virtual(options, 1, &raw mut set)),
        }
        let loops = loops.map(|one| Mutex::new(AtomicPtr::new(one)));
        Shared { driver, set: AtomicPtr::new(set), loops }
    }

    fn set(&self) -> *mut TimerSet {
        self.set.load(RELAXED)
    }

    fn now(&self) -> u64 {
        let mut now = 0;
        ok!(tickless_timers_now(self.set(), &raw mut now));
        now
    }

    /// Lets timers fire: moves the clock, or runs a loop that no other thread runs.
    fn drive(&self, rng: &mut Rng) {
        match self.driver {
            Driver::Threads => std::thread::yield_now(),
            Driver::VirtualTime => match rng.below(3) {
                0 => ok!(tickless_virtual_advance(self.set(), rng.of_any_size(20) as i64)),
                1 => ok!(tickless_virtual_advance_to(self.set(), self.now() / 2)),
                _ => ok!(tickless_virtual_advance_to_next(self.set(), null_mut())),
            },
            Driver::Loops => {
                let Ok(one) = self.loops[rng.below(2) as usize].try_lock() else { return };
                let (one, mut left) = (one.load(RELAXED), 0);
                ok!(tickless_loop_adopt(one));
                RUNNING.set(one);
                ok!(tickless_loop_run(one, null_mut()));
                RUNNING.set(null_mut());
                ok!(tickless_loop_timeout(one, &raw mut left));
            }
        }
    }

    fn stop(self) {
        ok!(tickless_timers_stop(self.set()));
        for one in self.loops {
            let one = one.into_inner().unwrap().into_inner();
            // A loop that another thread owns cannot be destroyed by this one.
            if !one.is_null() {
                ok!(tickless_loop_adopt(one));
                ok!(tickless_loop_destroy(one));
            }
        }
    }
}

thread_local! {
    /// The loop that this thread runs.
    static RUNNING: core::cell::Cell<*mut Loop> = const { core::cell::Cell::new(null_mut()) };
}

/// A timer in the memory of a C program, which only one thread uses, and its account. Relaxed: only
/// starting and cancelling order the accesses.
struct Owned {
    storage: AtomicPtr<TimerStorage>,
    set: AtomicPtr<TimerSet>,
    is_virtual: bool,
    armings: AtomicU64,
    calls: AtomicU64,
    cancelled: AtomicU64,
    due: AtomicU64,
    early: AtomicU64,
    /// The callback destroys the timer, and then sets `is_gone`.
    dies: AtomicBool,
    is_gone: AtomicBool,
}

fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(RELAXED) + amount, RELAXED);
}

unsafe extern "C-unwind" fn fire(expiry: *mut Expiry, data: *mut c_void) {
    let _in_callback = InCallback;
    // SAFETY: each timer's data is its `Owned`, which lives until the set has been stopped.
    let own = unsafe { &*data.cast::<Owned>() };
    let mut now = 0;
    ok!(tickless_fired_now(expiry, &raw mut now));
    let count = own.calls.load(RELAXED) + 1;
    add(&own.early, u64::from(now < own.due.load(RELAXED)));
    own.calls.store(count, RELAXED);
    if own.dies.load(RELAXED) {
        // Its owner thread does not use it, so it is not being destroyed.
        refused!(WouldDeadlock, tickless_timer_cancel_sync(own.storage.load(RELAXED), null_mut()));
    }
    if own.is_virtual && count % 5 == 0 {
        // Only moves the clock.
        ok!(tickless_virtual_advance(own.set.load(RELAXED), 1_000));
    }
    let one = RUNNING.get();
    if !one.is_null() {
        refused!(Busy, tickless_loop_run(one, null_mut()));
        refused!(Busy, tickless_loop_adopt(one));
        refused!(Busy, tickless_loop_destroy(one));
    }
    if own.dies.load(RELAXED) {
        ok!(tickless_timer_destroy(own.storage.load(RELAXED)));
        own.is_gone.store(true, Ordering::Release);
    } else if count % 3 == 0 {
        add(&own.armings, 1);
        ok!(tickless_fired_now(expiry, &raw mut now));
        own.due.store(now + count % 5_000, RELAXED);
        ok!(tickless_fired_restart(expiry, (count % 5_000) as i64));
    }
}

impl Owned {
    fn new(shared: &Shared, rng: &mut Rng) -> Arc<Owned> {
        // SAFETY: storage is an array of integers, for which zeros are valid.
        let storage = Box::into_raw(Box::new(unsafe { core::mem::zeroed() }));
        let own = Arc::new(Owned {
            storage: AtomicPtr::new(storage),
            set: AtomicPtr::new(shared.set()),
            is_virtual: shared.driver == Driver::VirtualTime,
            armings: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            due: AtomicU64::new(0),
            early: AtomicU64::new(0),
            dies: AtomicBool::new(false),
            is_gone: AtomicBool::new(true),
        });
        own.init(rng);
        own
    }

    fn storage(&self) -> *mut TimerStorage {
        self.storage.load(RELAXED)
    }

    fn init(&self, rng: &mut Rng) {
        let kinds = [TICKLESS_COARSE, TICKLESS_PRECISE, TICKLESS_PRECISE | TICKLESS_DEFERRED];
        let pin = [0, TICKLESS_PINNED, TICKLESS_PINNED | 1 << 16][rng.below(3) as usize];
        let kind = kinds[rng.below(3) as usize] | pin;
        let data = from_ref(self).cast_mut().cast();
        let set = self.set.load(RELAXED);
        ok!(tickless_timer_init(self.storage(), set, kind, Some(fire), data));
        refused!(
            AlreadyInitialised,
            tickless_timer_init(self.storage(), set, kind, Some(fire), data)
        );
        self.is_gone.store(false, RELAXED);
        self.dies.store(false, RELAXED);
    }

    fn open(&self) -> u64 {
        let ended = self.calls.load(RELAXED) + self.cancelled.load(RELAXED);
        self.armings.load(RELAXED).checked_sub(ended).expect("an arming has fired twice")
    }

    /// Cancels and starts the timer, and accounts for its armings.
    fn act(&self, shared: &Shared, rng: &mut Rng) {
        if self.dies.load(RELAXED) {
            // Its callback destroys it; until then no other thread may use it.
            if self.is_gone.load(Ordering::Acquire) {
                assert_eq!(self.open(), 0, "it has fired");
                refused!(NotInitialised, tickless_timer_start(self.storage(), 0));
                self.init(rng);
            }
            return;
        }
        let mut found = CancelFound::Idle;
        ok!(tickless_timer_cancel_sync(self.storage(), &raw mut found));
        match (found, self.open()) {
            (CancelFound::Pending, 1) | (CancelFound::Idle, 0) => {}
            // The callback may have restarted the timer.
            (CancelFound::Running, 0 | 1) => {}
            (_, open) => panic!("{found:?}, and {open} armings have not ended"),
        }
        assert_eq!(self.early.load(RELAXED), 0, "early");
        add(&self.cancelled, self.open());
        match rng.below(8) {
            0 => {
                ok!(tickless_timer_destroy(self.storage()));
                refused!(NotInitialised, tickless_timer_destroy(self.storage()));
                return self.init(rng);
            }
            1 => self.dies.store(true, RELAXED),
            _ => {}
        }
        let after = rng.of_any_size(20);
        self.due.store(shared.now() + after, RELAXED);
        add(&self.armings, 1);
        ok!(tickless_timer_start(self.storage(), after as i64));
    }

    fn end(&self, shared: &Shared, rng: &mut Rng) {
        wait_until("its callback has destroyed it", || {
            shared.drive(rng);
            !self.dies.load(RELAXED) || self.is_gone.load(Ordering::Acquire)
        });
        if !self.dies.load(RELAXED) {
            ok!(tickless_timer_destroy(self.storage()));
        }
        assert!(self.open() <= 1, "lost");
        assert_eq!(self.early.load(RELAXED), 0, "early");
        // SAFETY: made by `new`; the timer in it has been destroyed.
        drop(unsafe { Box::from_raw(self.storage()) });
    }
}

/// Goal: each arming of a C timer ends once and is not early, whether threads, loops that change
/// their thread, or several threads that advance virtual time drive it, and whatever its callback
/// destroys.
#[test]
fn timers_end_each_arming_once() {
    let mut rng = Rng::new(seed("attacks", "timers_end_each_arming_once"));
    let (end, mut calls) = (end_after(2 * SHORT), 0);
    while Instant::now() < end {
        for driver in [Driver::Threads, Driver::Loops, Driver::VirtualTime] {
            let shared = Shared::start(driver, &mut rng);
            let round = Instant::now() + Duration::from_millis(60);
            let work = |mut rng: Rng| {
                let own: Vec<_> = (0..6).map(|_| Owned::new(&shared, &mut rng)).collect();
                refused!(Busy, tickless_timers_stop_while_used(&shared));
                while Instant::now() < round {
                    own[rng.below(6) as usize].act(&shared, &mut rng);
                    (0..rng.below(3)).for_each(|_| shared.drive(&mut rng));
                }
                own.iter().for_each(|own| own.end(&shared, &mut rng));
                own
            };
            let owned: Vec<_> = std::thread::scope(|s| {
                let rngs = [(); 3].map(|()| Rng::new(rng.next()));
                let threads = rngs.map(|rng| s.spawn(|| work(rng)));
                threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            calls += owned.iter().map(|own| own.calls.load(RELAXED)).sum::<u64>();
            shared.stop();
        }
    }
    println!("{calls} calls");
    assert_eq!(FAILED.load(RELAXED), 0, "a callback failed");
    assert!(calls > 500);
}

/// A set of timers with a timer in it is not stopped. One thread checks it, because the failing
/// call waits.
unsafe fn tickless_timers_stop_while_used(shared: &Shared) -> Status {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, RELAXED) {
        return Status::Busy;
    }
    // SAFETY: the set has timers, so that the call fails and changes nothing.
    unsafe { tickless_timers_stop(shared.set()) }
}

const KEYS: u64 = 9;

/// Permits that threads and callbacks took in one period.
struct Taken {
    keyed: AtomicPtr<KeyedHandle>,
    of_key: [AtomicU64; KEYS as usize],
}

impl Taken {
    fn take(&self, key: u64, permits: u64) {
        let bytes = [key as u8; 5];
        let keyed = self.keyed.load(RELAXED);
        // SAFETY: the limiter lives as long as this; the key is an array.
        let status =
            unsafe { tickless_keyed_try_acquire(keyed, bytes.as_ptr(), bytes.len(), permits) };
        match status {
            Status::Ok => _ = self.of_key[key as usize].fetch_add(permits, RELAXED),
            Status::Empty => {}
            other => panic!("{other:?}"),
        }
    }
}

unsafe extern "C-unwind" fn take_in_callback(_: *mut Expiry, data: *mut c_void) {
    let _in_callback = InCallback;
    // SAFETY: the data is a `Taken`, which lives until the timer has been destroyed.
    let taken = unsafe { &*data.cast::<Taken>() };
    (0..KEYS).for_each(|key| taken.take(key, 1));
}

/// Goal: each permit of a key is granted once in each period, though threads and callbacks take
/// them, idle keys are forgotten, and other limiters come and go.
#[test]
fn keyed_limiters_grant_each_permit_once() {
    let mut rng = Rng::new(seed("attacks", "keyed_limiters_grant_each_permit_once"));
    let shared = Shared::start(Driver::VirtualTime, &mut rng);
    let quota =
        Quota { size: size_of::<Quota>(), quota: 20, period_ns: 1_000_000, ..Quota::default() };
    let mut keyed = null_mut();
    ok!(tickless_keyed_create(shared.set(), &raw const quota, &raw mut keyed));
    let (end, mut rounds) = (end_after(SHORT), 0);
    while Instant::now() < end {
        let taken = Taken { keyed: AtomicPtr::new(keyed), of_key: Default::default() };
        // SAFETY: storage is an array of integers, for which zeros are valid.
        let mut timer: Box<TimerStorage> = Box::new(unsafe { core::mem::zeroed() });
        let (timer, data) = (&raw mut *timer, from_ref(&taken).cast_mut().cast());
        let callback: Callback = Some(take_in_callback);
        ok!(tickless_timer_init(timer, shared.set(), TICKLESS_PRECISE, callback, data));
        ok!(tickless_timer_start(timer, 0));
        let begin = Barrier::new(3);
        std::thread::scope(|s| {
            for mut rng in [(); 3].map(|()| Rng::new(rng.next())) {
                let (shared, taken, quota, begin) = (&shared, &taken, &quota, &begin);
                s.spawn(move || {
                    begin.wait();
                    // All threads add the keys.
                    (0..KEYS).for_each(|key| taken.take(key, 1));
                    for _ in 0..200 {
                        match rng.below(40) {
                            0 => ok!(tickless_virtual_advance(shared.set(), 0)),
                            1 => create_and_destroy(shared.set(), quota),
                            2 => {
                                let (keyed, mut keys) = (taken.keyed.load(RELAXED), 0);
                                let forgets = rng.below(2) == 0;
                                ok!(tickless_keyed_count(keyed, forgets, &raw mut keys));
                                assert!(keys as u64 <= KEYS);
                            }
                            _ => taken.take(rng.below(KEYS), 1 + rng.below(3)),
                        }
                    }
                    // Whatever is left.
                    (0..KEYS * quota.quota).for_each(|nth| taken.take(nth % KEYS, 1));
                });
            }
        });
        for of_key in &taken.of_key {
            assert_eq!(of_key.load(RELAXED), quota.quota, "each permit once");
        }
        ok!(tickless_timer_destroy(timer));
        // Each key's period has ended, so that it has all its permits again.
        ok!(tickless_virtual_advance(shared.set(), 2 * quota.period_ns as i64));
        let mut keys = 0;
        ok!(tickless_keyed_count(keyed, true, &raw mut keys));
        assert_eq!(keys, 0);
        rounds += 1;
    }
    println!("{rounds} periods");
    assert_eq!(FAILED.load(RELAXED), 0, "a callback failed");
    assert!(rounds > 5);
    ok!(tickless_keyed_destroy(keyed));
    shared.stop();
}

/// Creates a limiter and a throttle with a worker, and destroys them in another order.
fn create_and_destroy(set: *mut TimerSet, quota: &Quota) {
    let (mut limiter, mut throttle, mut worker) = (null_mut(), null_mut(), null_mut());
    ok!(tickless_limiter_create(set, quota, &raw mut limiter));
    ok!(tickless_throttle_create(set, quota, &raw mut throttle));
    ok!(tickless_throttle_join(throttle, &raw mut worker));
    ok!(tickless_limiter_try_acquire(limiter, quota.quota));
    refused!(Empty, tickless_limiter_try_acquire(limiter, 1));
    ok!(tickless_limiter_close(limiter));
    refused!(Shut, tickless_limiter_try_acquire(limiter, 1));
    ok!(tickless_worker_rest(worker));
    let counts = QuotaCounts { size: size_of::<QuotaCounts>(), ..QuotaCounts::default() };
    let counts = core::cell::Cell::new(counts);
    ok!(tickless_limiter_stats(limiter, null_mut(), counts.as_ptr()));
    assert_eq!((counts.get().used, counts.get().waiting), (quota.quota, 0));
    // Its worker outlives the throttle.
    ok!(tickless_throttle_destroy(throttle));
    ok!(tickless_limiter_destroy(limiter));
    ok!(tickless_worker_rest(worker));
    ok!(tickless_worker_leave(worker));
}

struct Waits {
    limiter: AtomicPtr<LimiterHandle>,
    granted: AtomicU64,
    ended: AtomicU64,
}

unsafe extern "C-unwind" fn close_in_callback(_: *mut Expiry, data: *mut c_void) {
    let _in_callback = InCallback;
    // SAFETY: the data is a `Waits`, which lives until the timer has been destroyed.
    let waits = unsafe { &*data.cast::<Waits>() };
    ok!(tickless_limiter_close(waits.limiter.load(RELAXED)));
}

/// Goal: a limiter counts exactly the permits that waiting threads were granted, and each waiting
/// call ends: with a permit, by its timeout, or because a callback closes the limiter.
#[test]
fn waiting_calls_end_once() {
    let mut rng = Rng::new(seed("attacks", "waiting_calls_end_once"));
    let end = end_after(SHORT);
    let shared = Shared::start(Driver::Threads, &mut rng);
    while Instant::now() < end {
        let quota = Quota {
            size: size_of::<Quota>(),
            quota: 1 + rng.below(4),
            period_ns: 100_000 + rng.of_any_size(20),
            ..Quota::default()
        };
        let mut limiter = null_mut();
        ok!(tickless_limiter_create(shared.set(), &raw const quota, &raw mut limiter));
        let waits = Waits {
            limiter: AtomicPtr::new(limiter),
            granted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        };
        // SAFETY: storage is an array of integers, for which zeros are valid.
        let mut timer: Box<TimerStorage> = Box::new(unsafe { core::mem::zeroed() });
        let (timer, data) = (&raw mut *timer, from_ref(&waits).cast_mut().cast());
        let callback: Callback = Some(close_in_callback);
        ok!(tickless_timer_init(timer, shared.set(), TICKLESS_PRECISE, callback, data));
        ok!(tickless_timer_start(timer, rng.of_any_size(23) as i64));
        std::thread::scope(|s| {
            for mut rng in [(); 4].map(|()| Rng::new(rng.next())) {
                let (waits, most) = (&waits, quota.quota);
                s.spawn(move || {
                    loop {
                        let permits = 1 + rng.below(most);
                        let timeout = [rng.of_any_size(22) as i64, i64::MAX][rng.below(2) as usize];
                        let limiter = waits.limiter.load(RELAXED);
                        // SAFETY: the limiter lives until the threads have ended.
                        match unsafe { tickless_limiter_acquire(limiter, permits, timeout) } {
                            Status::Ok => _ = waits.granted.fetch_add(permits, RELAXED),
                            Status::TimedOut => {}
                            Status::Shut => break,
                            other => panic!("{other:?}"),
                        }
                    }
                    waits.ended.fetch_add(1, RELAXED);
                });
            }
        });
        assert_eq!(waits.ended.load(RELAXED), 4);
        let mut counts = QuotaCounts { size: size_of::<QuotaCounts>(), ..QuotaCounts::default() };
        ok!(tickless_limiter_stats(limiter, null_mut(), &raw mut counts));
        assert_eq!((counts.used, counts.waiting), (waits.granted.load(RELAXED), 0));
        assert!(counts.used <= quota.quota + counts.refilled, "{counts:?}");
        ok!(tickless_timer_destroy(timer));
        ok!(tickless_limiter_destroy(limiter));
    }
    shared.stop();
    assert_eq!(FAILED.load(RELAXED), 0, "a callback failed");
}

/// A local timer: its key, and when it may fire and must have fired, if it is armed.
struct LocalTimer {
    key: LocalKey,
    is_coarse: bool,
    armed: Option<(u64, u64)>,
}

/// Batches of local timers, and their model.
struct Batches {
    local: *mut Local,
    timers: Vec<LocalTimer>,
    now: u64,
    fired: u64,
}

unsafe extern "C-unwind" fn misuse(
    local: *mut Local,
    key: LocalKey,
    data: *mut c_void,
    context: *mut c_void,
) {
    let _in_callback = InCallback;
    // SAFETY: the context is the `Batches` whose timers are being advanced.
    let batches = unsafe { &mut *context.cast::<Batches>() };
    let mut count = 0;
    refused!(Busy, tickless_local_advance_into(local, 0, null_mut(), 0, &raw mut count));
    refused!(Busy, tickless_local_destroy(local));
    refused!(Busy, tickless_local_adopt(local));
    ok!(tickless_local_cancel_many(local, &raw const key, 1, &raw mut count));
    assert_eq!(count, 0, "a timer that fires is idle");
    batches.fires(data as usize);
}

impl Batches {
    fn fires(&mut self, nth: usize) {
        let (soft, _) = self.timers[nth].armed.take().expect("it fires without an arming");
        assert!(soft <= self.now, "early: {soft} at {}", self.now);
        self.fired += 1;
    }

    /// Arms a random range of timers, with keys of no timers between them.
    fn start(&mut self, rng: &mut Rng) {
        let none = LocalKey::clone(&self.timers[0].key);
        let mut armings = Vec::new();
        let mut expected = 0;
        let first = rng.below(300) as usize;
        for timer in &mut self.timers[first..first + rng.below(300) as usize] {
            let deadline_ns = (self.now + rng.of_any_size(32)).saturating_sub(1_000);
            let late =
                (deadline_ns.saturating_sub(self.now) / 7 + 2_000_000) * u64::from(timer.is_coarse);
            timer.armed = Some((deadline_ns, deadline_ns + late));
            armings.push(Arming { key: timer.key, deadline_ns });
            expected += 1;
            if rng.below(16) == 0 {
                // SAFETY: a struct of one number, which C can fill with any value.
                let key = unsafe { core::mem::zeroed() };
                armings.push(Arming { key, deadline_ns });
            }
        }
        let mut count = 0;
        let many = armings.as_ptr();
        ok!(tickless_local_start_many(self.local, many, armings.len(), &raw mut count));
        assert_eq!(count, expected);
        assert_eq!(none, self.timers[0].key);
    }

    fn cancel(&mut self, rng: &mut Rng) {
        let first = rng.below(300) as usize;
        let range = first..first + rng.below(300) as usize;
        let keys: Vec<_> = self.timers[range.clone()].iter().map(|timer| timer.key).collect();
        let mut count = 0;
        ok!(tickless_local_cancel_many(self.local, keys.as_ptr(), keys.len(), &raw mut count));
        let timers = self.timers[range].iter_mut();
        assert_eq!(count, timers.filter_map(|timer| timer.armed.take()).count());
    }

    fn advance(&mut self, rng: &mut Rng) {
        self.now += rng.of_any_size(31);
        let (local, now, mut count) = (self.local, self.now, 0);
        if rng.below(4) == 0 {
            let context = (&raw mut *self).cast();
            ok!(tickless_local_advance(local, now, 0, Some(misuse), context, &raw mut count));
        }
        // SAFETY: structs of one number.
        let mut keys: [LocalKey; 150] = unsafe { core::mem::zeroed() };
        let mut next = 0;
        while next <= now {
            let room = 1 + rng.below(150) as usize;
            let into = keys.as_mut_ptr();
            ok!(tickless_local_advance_into(local, now, into, room, &raw mut count));
            assert!(count <= room);
            for key in &keys[..count] {
                let mut data = null_mut();
                ok!(tickless_local_data(local, *key, &raw mut data));
                self.fires(data as usize);
            }
            ok!(tickless_local_next_event(local, &raw mut next));
        }
        for (nth, timer) in self.timers.iter().enumerate() {
            assert!(timer.armed.is_none_or(|(_, latest)| latest > now), "{nth} is lost");
        }
        let mut pending = 0;
        ok!(tickless_local_count(local, null_mut(), &raw mut pending));
        assert_eq!(pending, self.timers.iter().filter(|timer| timer.armed.is_some()).count());
    }
}

/// Goal: batches arm, cancel and fire exactly the timers that single calls would, and calls from
/// callbacks or other threads that are not allowed change nothing.
#[test]
fn batches_account_for_every_timer() {
    let mut rng = Rng::new(seed("attacks", "batches_account_for_every_timer"));
    let (end, mut fired) = (end_after(SHORT), 0);
    while Instant::now() < end {
        let mut local = null_mut();
        ok!(tickless_local_create(0, 0, rng.below(2) as u32, &raw mut local));
        let timers = (0..600_usize).map(|nth| {
            // SAFETY: a struct of one number.
            let mut key = unsafe { core::mem::zeroed() };
            let is_coarse = nth % 3 > 0;
            let kind = if is_coarse { TICKLESS_COARSE } else { TICKLESS_PRECISE };
            ok!(tickless_local_insert(local, kind, nth as *mut c_void, &raw mut key));
            LocalTimer { key, is_coarse, armed: None }
        });
        let timers = timers.collect();
        let mut batches = Batches { local, timers, now: 0, fired: 0 };
        let shared = AtomicPtr::new(local);
        for _ in 0..60 {
            match rng.below(8) {
                0..3 => batches.start(&mut rng),
                3 => batches.cancel(&mut rng),
                4 if rng.below(8) == 0 => std::thread::scope(|s| {
                    s.spawn(|| {
                        let local = shared.load(RELAXED);
                        refused!(
                            WrongThread,
                            tickless_local_start_many(local, null(), 0, null_mut())
                        );
                        refused!(WrongThread, tickless_local_destroy(local));
                    });
                }),
                _ => batches.advance(&mut rng),
            }
        }
        fired += batches.fired;
        ok!(tickless_local_destroy(local));
    }
    println!("{fired} fired");
    assert_eq!(FAILED.load(RELAXED), 0, "a callback failed");
    assert!(fired > 1_000);
}
