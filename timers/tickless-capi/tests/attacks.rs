//! A random history of the C interface with an account of every arming: timers on threads, in loops
//! and in virtual time, whose callbacks destroy what they may and misuse what they may not.

#![expect(unsafe_code, reason = "calls the C interface")]
// Tests panic, print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../../tickless/tests/support/histories.rs"]
mod histories;

use core::ffi::c_void;
use core::ptr::{from_ref, null_mut};
use histories::{Rng, end_after, seed, wait_until};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tickless_capi::event_loop::*;
use tickless_capi::fired::*;
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driver {
    Threads,
    Loops,
    VirtualTime,
}

const BASES: u32 = 2;

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
            flags: [0, TICKLESS_EXPIRY_THREADS][rng.below(2) as usize],
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

/// A timer in C memory and its account. Relaxed: only starts and cancels order the accesses.
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

/// Goal: each arming of a C timer ends once and not early, whether threads, loops that change their
/// thread, or several that advance virtual time drive it, and whatever its callback destroys.
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
