//! Destroying and freeing timers: in their own callback, in another timer's callback, and from
//! outside. Miri reports every later access to the freed memory.

#![expect(unsafe_code, reason = "calls the C interface")]
// Tests panic, print and sleep.
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

/// Memory with a timer in it, which the timer's callback frees.
struct Own<T> {
    storage: T,
    /// The number of callbacks, plus [`FREED`] after the memory was freed. Outlives the memory.
    fired: Arc<AtomicU32>,
    /// The number of callbacks before the one that frees the memory.
    rounds: u32,
}

fn new_own<T>(rounds: u32) -> (*mut Own<T>, Arc<AtomicU32>) {
    let fired = Arc::<AtomicU32>::default();
    // SAFETY: storage is an array of integers, for which zeros are valid.
    let storage = unsafe { core::mem::zeroed() };
    (Box::into_raw(Box::new(Own { storage, fired: Arc::clone(&fired), rounds })), fired)
}

/// The bytes that freed memory is filled with. Zeros look most like a timer that can be armed.
const FRESH: u8 = 0;
/// These bytes look like a periodic timer whose lock is held: taking it would never end.
const LOCK_HELD: u8 = 0xa5;

/// Frees memory whose timer has been destroyed. Without Miri, the memory is filled with `scribble`
/// and kept for [`is_untouched`].
unsafe fn release_memory<T>(own: *mut Own<T>, scribble: u8) {
    // SAFETY: the caller promises that `own` came from `new_own` and nothing else uses it.
    unsafe {
        if cfg!(miri) {
            drop(Box::from_raw(own));
        } else {
            (&raw mut (*own).storage).cast::<u8>().write_bytes(scribble, size_of::<T>());
        }
    }
}

/// Returns whether the memory is unchanged since `release_memory`, and frees it.
unsafe fn is_untouched<T>(own: *mut Own<T>, scribble: u8) -> bool {
    if cfg!(miri) {
        return true;
    }
    // SAFETY: the caller promises that nothing uses the memory; `release_memory` kept it.
    let own = unsafe { Box::from_raw(own) };
    // SAFETY: storage is an array of integers without padding.
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

fn started(bases: u32) -> *mut TimerSet {
    let mut timers = null_mut();
    let options = Options {
        size: size_of::<Options>(),
        bases,
        flags: TICKLESS_SYSTEM_CLOCK,
        ..Options::default()
    };
    // SAFETY: both pointers point to variables of these types.
    assert_eq!(unsafe { tickless_timers_start(&options, &mut timers) }, Status::Ok);
    timers
}

unsafe extern "C-unwind" fn free_timer(expiry: *mut Expiry, data: *mut c_void) {
    // SAFETY: the caller promises that `data` points to an `Own` with this callback's timer.
    unsafe {
        let own = data.cast::<Own<TimerStorage>>();
        let fired = Arc::clone(&(*own).fired);
        if fired.fetch_add(1, Ordering::Relaxed) < (*own).rounds {
            assert_eq!(tickless_fired_restart(expiry, 0), Status::Ok);
            return;
        }
        // Requests before and after the destruction must not access the timer.
        assert_eq!(tickless_fired_restart(expiry, 0), Status::Ok);
        assert_eq!(tickless_timer_destroy(&raw mut (*own).storage), Status::Ok);
        release_memory(own, FRESH);
        fired.fetch_add(FREED, Ordering::Release);
        assert_eq!(tickless_fired_forward(expiry, MS, null_mut()), Status::Ok);
    }
}

unsafe extern "C-unwind" fn free_periodic(_: *mut Expiry, data: *mut c_void) {
    // SAFETY: the caller promises that `data` points to an `Own` with a periodic timer in it, whose
    // callback this is.
    unsafe {
        let own = data.cast::<Own<PeriodicStorage>>();
        let fired = Arc::clone(&(*own).fired);
        if fired.fetch_add(1, Ordering::Relaxed) < (*own).rounds {
            return;
        }
        assert_eq!(tickless_periodic_destroy(&raw mut (*own).storage), Status::Ok);
        release_memory(own, LOCK_HELD);
        fired.fetch_add(FREED, Ordering::Release);
    }
}

unsafe extern "C-unwind" fn nothing(_: *mut Expiry, _: *mut c_void) {}

/// Starts timers whose callbacks free them after 0 to 2 restarts, and waits until they are freed.
/// Then checks that nothing wrote to their memory, which `release_memory` filled with `scribble`.
fn memory_is_untouched_after<T>(
    scribble: u8,
    start: impl Fn(*mut TimerSet, *mut Own<T>) -> [Status; 2],
) {
    let timers = started(1);
    let mut gone = Vec::new();
    for rounds in 0..3 {
        let (own, fired) = new_own::<T>(rounds);
        assert_eq!(start(timers, own), [Status::Ok; 2]);
        until(|| fired.load(Ordering::Acquire) == FREED + rounds + 1);
        gone.push(own);
    }
    // SAFETY: started above; all timers are destroyed, and this waits for the last callback.
    assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
    // SAFETY: no thread of the library is left.
    assert!(gone.into_iter().all(|own| unsafe { is_untouched(own, scribble) }));
}

/// Goal: a callback may destroy and free its own timer, whatever it requests (X4: identity).
#[test]
fn a_callback_frees_its_timer() {
    for kind in [TICKLESS_COARSE, TICKLESS_PRECISE] {
        memory_is_untouched_after(FRESH, |timers, own: *mut Own<TimerStorage>| {
            // SAFETY: the memory lives until the callback frees it, which is the last use.
            unsafe {
                let storage = &raw mut (*own).storage;
                let init = tickless_timer_init(storage, timers, kind, Some(free_timer), own.cast());
                [init, tickless_timer_start(storage, 0)]
            }
        });
    }
}

/// Goal: a callback may destroy and free its own periodic timer, which would otherwise continue.
#[test]
fn a_callback_frees_its_periodic_timer() {
    memory_is_untouched_after(LOCK_HELD, |timers, own: *mut Own<PeriodicStorage>| {
        // SAFETY: the memory lives until the callback frees it, which is the last use.
        unsafe {
            let storage = &raw mut (*own).storage;
            let init =
                tickless_periodic_init(storage, timers, null(), Some(free_periodic), own.cast());
            [init, tickless_periodic_start(storage, MS)]
        }
    });
}

/// Goal: stopping a set in use fails; a copy of a timer is not a timer; memory can be reused.
#[test]
fn misuse_returns_an_error() {
    let timers = started(1);
    let (own, _) = new_own::<TimerStorage>(0);
    let (copy, _) = new_own::<TimerStorage>(0);
    // SAFETY: the memory lives until the end of the block.
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

/// Memory with a timer whose callback reuses the storage, and the channel for the results.
struct Reused {
    storage: TimerStorage,
    timers: *mut TimerSet,
    kind: u32,
    results_sender: std::sync::mpsc::Sender<Vec<Status>>,
}

unsafe extern "C-unwind" fn reuse_storage(_: *mut Expiry, data: *mut c_void) {
    // SAFETY: the caller promises that `data` points to a `Reused` with this callback's timer.
    unsafe {
        // No reference to the whole: other threads read the timer in the storage.
        let reused = data.cast::<Reused>();
        // The test frees the memory as soon as it receives the results.
        let results_sender = (*reused).results_sender.clone();
        let (storage, timers, kind) =
            (&raw mut (*reused).storage, (*reused).timers, (*reused).kind);
        let mut found = CancelFound::Idle;
        let results = vec![
            tickless_timer_destroy(storage),
            tickless_timer_init(storage, timers, kind, Some(nothing), null_mut()),
            tickless_timer_start(storage, 3_600_000 * MS),
            tickless_timer_cancel_sync(storage, &raw mut found),
            tickless_timer_start(storage, 3_600_000 * MS),
            tickless_timer_destroy(storage),
            if found == CancelFound::Pending { Status::Ok } else { Status::Busy },
        ];
        results_sender.send(results).expect("the test waits");
    }
}

/// Goal: storage that a callback destroys and reuses holds another timer (X4: identity).
#[test]
fn a_callback_reuses_the_storage_of_its_timer() {
    let timers = started(2);
    for kind in [TICKLESS_COARSE, TICKLESS_PRECISE] {
        for base in 0..2 {
            let (results_sender, results) = std::sync::mpsc::channel();
            let kind = kind | TICKLESS_PINNED | base << 16;
            // SAFETY: storage is an array of integers, for which zeros are valid.
            let storage = unsafe { core::mem::zeroed() };
            let reused = Box::into_raw(Box::new(Reused { storage, timers, kind, results_sender }));
            // SAFETY: the memory lives until the callback has destroyed its last timer.
            unsafe {
                let storage = &raw mut (*reused).storage;
                let first = TICKLESS_PRECISE | TICKLESS_PINNED;
                let init =
                    tickless_timer_init(storage, timers, first, Some(reuse_storage), reused.cast());
                assert_eq!(init, Status::Ok);
                assert_eq!(tickless_timer_start(storage, 0), Status::Ok);
                assert_eq!(results.recv().expect("the callback answers"), [Status::Ok; 7]);
                drop(Box::from_raw(reused));
            }
        }
    }
    // SAFETY: started above; all timers are destroyed.
    assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
}
