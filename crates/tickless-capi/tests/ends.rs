//! The end of a timer's memory: in its own callback, in another one's, and from outside. Under
//! Miri, every later touch of memory that was given back is seen.

#![expect(unsafe_code, reason = "calls the C interface")]
// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use core::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tickless_capi::fired::{Expiry, tickless_fired_forward, tickless_fired_restart};
use tickless_capi::options::{Options, TICKLESS_SYSTEM_CLOCK};
use tickless_capi::periodic::*;
use tickless_capi::status::Status;
use tickless_capi::timer::*;
use tickless_capi::timers::*;

const MS: i64 = 1_000_000;
const FREED: u32 = 100;

/// Memory that a callback gives back together with the timer in it.
struct Own<T> {
    storage: T,
    /// Counts callbacks, and a hundred for the one that gives it back. Outlives the memory.
    fired: Arc<AtomicU32>,
    /// So many callbacks before that one.
    rounds: u32,
}

fn new_own<T>(rounds: u32) -> (*mut Own<T>, Arc<AtomicU32>) {
    let fired = Arc::<AtomicU32>::default();
    // SAFETY: storage is words, for which zeros are good.
    let storage = unsafe { core::mem::zeroed() };
    (Box::into_raw(Box::new(Own { storage, fired: Arc::clone(&fired), rounds })), fired)
}

/// What memory holds that was given back. Zeros look most like a timer that may be armed...
const FRESH: u8 = 0;
/// ...and these like a periodic one whose lock is held: who takes it waits for ever.
const HELD: u8 = 0xa5;

/// Frees memory whose timer has been destroyed. Where nothing sees a touch of freed memory, it is
/// kept for [`is_untouched`].
///
/// # Safety
/// It came from `new_own`, and nobody else uses it.
unsafe fn let_go<T>(own: *mut Own<T>, scribble: u8) {
    // SAFETY: as promised.
    unsafe {
        if cfg!(miri) {
            drop(Box::from_raw(own));
        } else {
            (&raw mut (*own).storage).cast::<u8>().write_bytes(scribble, size_of::<T>());
        }
    }
}

/// Has nobody touched the memory since it was let go of?
///
/// # Safety
/// `let_go` is over, for good.
unsafe fn is_untouched<T>(own: *mut Own<T>, scribble: u8) -> bool {
    if cfg!(miri) {
        return true;
    }
    // SAFETY: as promised; it was kept.
    let own = unsafe { Box::from_raw(own) };
    // SAFETY: storage is words.
    let bytes = unsafe {
        core::slice::from_raw_parts((&raw const own.storage).cast::<u8>(), size_of::<T>())
    };
    bytes.iter().all(|byte| *byte == scribble)
}

fn until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn started() -> *mut TimerSet {
    let mut timers = null_mut();
    let options = Options {
        size: size_of::<Options>(),
        bases: 1,
        flags: TICKLESS_SYSTEM_CLOCK,
        ..Options::default()
    };
    // SAFETY: both pointers lead to what they say.
    assert_eq!(unsafe { tickless_timers_start(&options, &mut timers) }, Status::Ok);
    timers
}

/// # Safety
/// `data` is an `Own` with a timer in it, whose callback this is.
unsafe extern "C-unwind" fn free_timer(expiry: *mut Expiry, data: *mut c_void) {
    // SAFETY: as promised.
    unsafe {
        let own = data.cast::<Own<TimerStorage>>();
        let fired = Arc::clone(&(*own).fired);
        if fired.fetch_add(1, Ordering::Relaxed) < (*own).rounds {
            assert_eq!(tickless_fired_restart(expiry, 0), Status::Ok);
            return;
        }
        // Asked for, before and after: nothing of it may touch the timer.
        assert_eq!(tickless_fired_restart(expiry, 0), Status::Ok);
        assert_eq!(tickless_timer_destroy(&raw mut (*own).storage), Status::Ok);
        let_go(own, FRESH);
        fired.fetch_add(FREED, Ordering::Release);
        assert_eq!(tickless_fired_forward(expiry, MS, null_mut()), Status::Ok);
    }
}

/// # Safety
/// `data` is an `Own` with a periodic timer in it, whose callback this is.
unsafe extern "C-unwind" fn free_periodic(_: *mut Expiry, data: *mut c_void) {
    // SAFETY: as promised.
    unsafe {
        let own = data.cast::<Own<PeriodicStorage>>();
        let fired = Arc::clone(&(*own).fired);
        if fired.fetch_add(1, Ordering::Relaxed) < (*own).rounds {
            return;
        }
        assert_eq!(tickless_periodic_destroy(&raw mut (*own).storage), Status::Ok);
        let_go(own, HELD);
        fired.fetch_add(FREED, Ordering::Release);
    }
}

/// # Safety
/// Whatever it is called with.
unsafe extern "C-unwind" fn nothing(_: *mut Expiry, _: *mut c_void) {}

/// Goal: a callback may destroy and free its own timer, of either family, whatever it has asked
/// for (X4).
#[test]
fn a_callback_frees_its_timer() {
    let timers = started();
    let mut gone = Vec::new();
    for kind in [TICKLESS_COARSE, TICKLESS_PRECISE] {
        for rounds in 0..3 {
            let (own, fired) = new_own::<TimerStorage>(rounds);
            // SAFETY: the memory is there until the callback frees it, which is the last use.
            unsafe {
                let storage = &raw mut (*own).storage;
                let init = tickless_timer_init(storage, timers, kind, Some(free_timer), own.cast());
                assert_eq!(init, Status::Ok);
                assert_eq!(tickless_timer_start(storage, 0), Status::Ok);
            }
            until(|| fired.load(Ordering::Acquire) == FREED + rounds + 1);
            gone.push(own);
        }
    }
    // SAFETY: started above; all timers are destroyed, and this waits for the last callback.
    assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
    // SAFETY: no thread of the library is left.
    assert!(gone.into_iter().all(|own| unsafe { is_untouched(own, FRESH) }));
}

/// Goal: the same for a periodic timer, which would go on by itself.
#[test]
fn a_callback_frees_its_periodic_timer() {
    let timers = started();
    let mut gone = Vec::new();
    for rounds in 0..3 {
        let (own, fired) = new_own::<PeriodicStorage>(rounds);
        // SAFETY: the memory is there until the callback frees it, which is the last use.
        unsafe {
            let storage = &raw mut (*own).storage;
            let call = Some(free_periodic as unsafe extern "C-unwind" fn(_, _));
            let init = tickless_periodic_init(storage, timers, null(), call, own.cast());
            assert_eq!(init, Status::Ok);
            assert_eq!(tickless_periodic_start(storage, MS), Status::Ok);
        }
        until(|| fired.load(Ordering::Acquire) == FREED + rounds + 1);
        gone.push(own);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
    // SAFETY: no thread of the library is left.
    assert!(gone.into_iter().all(|own| unsafe { is_untouched(own, HELD) }));
}

/// Goal: timers cannot be stopped under their timers; a copy of one is none; memory can be used
/// again.
#[test]
fn misuse_is_noticed() {
    let timers = started();
    let (own, _) = new_own::<TimerStorage>(0);
    let (copy, _) = new_own::<TimerStorage>(0);
    // SAFETY: all of it is there until the end.
    unsafe {
        let (storage, other) = (&raw mut (*own).storage, &raw mut (*copy).storage);
        let init =
            || tickless_timer_init(storage, timers, TICKLESS_COARSE, Some(nothing), null_mut());
        assert_eq!(tickless_timer_start(storage, 0), Status::NotInitialised);
        assert_eq!((init(), init()), (Status::Ok, Status::AlreadyInitialised));
        assert_eq!(tickless_timer_start(storage, 3_600_000 * MS), Status::Ok);
        assert_eq!(tickless_timers_stop(timers), Status::Busy);
        storage.copy_to(other, 1);
        assert_eq!(tickless_timer_cancel(other, null_mut()), Status::NotInitialised);
        assert_eq!(tickless_timer_destroy(other), Status::NotInitialised);
        assert_eq!(tickless_timer_destroy(storage), Status::Ok);
        assert_eq!(tickless_timer_destroy(storage), Status::NotInitialised);
        assert_eq!((init(), tickless_timer_destroy(storage)), (Status::Ok, Status::Ok));
        drop((Box::from_raw(own), Box::from_raw(copy)));
        assert_eq!(tickless_timers_stop(timers), Status::Ok);
    }
}

/// What a callback found that used its timer's storage again.
struct Again {
    storage: TimerStorage,
    timers: *mut TimerSet,
    kind: u32,
    told: std::sync::mpsc::Sender<Vec<Status>>,
}

/// # Safety
/// `data` is an `Again` with a timer in it, whose callback this is.
unsafe extern "C-unwind" fn use_again(_: *mut Expiry, data: *mut c_void) {
    // SAFETY: as promised.
    unsafe {
        let again = &mut *data.cast::<Again>();
        // The test frees the memory as soon as it has the results.
        let told = again.told.clone();
        let storage = &raw mut again.storage;
        let mut found = CancelFound::Idle;
        let results = vec![
            tickless_timer_destroy(storage),
            tickless_timer_init(storage, again.timers, again.kind, Some(nothing), null_mut()),
            tickless_timer_start(storage, 3_600_000 * MS),
            tickless_timer_cancel_sync(storage, &raw mut found),
            tickless_timer_start(storage, 3_600_000 * MS),
            tickless_timer_destroy(storage),
            if found == CancelFound::Pending { Status::Ok } else { Status::Busy },
        ];
        told.send(results).expect("the test waits");
    }
}

/// Goal: X4 (an address is no identity): storage that is destroyed, initialised, started and
/// destroyed in the callback of its first timer holds another timer, on whatever base that is.
#[test]
fn storage_is_used_again_in_its_own_callback() {
    let mut timers = null_mut();
    let options = Options { size: size_of::<Options>(), bases: 2, ..Options::default() };
    // SAFETY: both pointers lead to what they say.
    assert_eq!(unsafe { tickless_timers_start(&options, &mut timers) }, Status::Ok);
    for kind in [TICKLESS_COARSE, TICKLESS_PRECISE] {
        for base in 0..2 {
            let (told, results) = std::sync::mpsc::channel();
            let kind = kind | TICKLESS_PINNED | base << 16;
            // SAFETY: storage is words, for which zeros are good.
            let storage = unsafe { core::mem::zeroed() };
            let again = Box::into_raw(Box::new(Again { storage, timers, kind, told }));
            // SAFETY: the memory is there until the callback has destroyed its last timer.
            unsafe {
                let storage = &raw mut (*again).storage;
                let first = TICKLESS_PRECISE | TICKLESS_PINNED;
                let init =
                    tickless_timer_init(storage, timers, first, Some(use_again), again.cast());
                assert_eq!(init, Status::Ok);
                assert_eq!(tickless_timer_start(storage, 0), Status::Ok);
                assert_eq!(results.recv().expect("the callback answers"), [Status::Ok; 7]);
                drop(Box::from_raw(again));
            }
        }
    }
    // SAFETY: started above; all timers are destroyed.
    assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
}
