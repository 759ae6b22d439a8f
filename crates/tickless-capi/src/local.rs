//! Timers for one thread, to be embedded in its own loop: no threads, no locks, no clock.

use crate::fired::window;
use crate::one_thread::{Handle, OneThread, Sort};
use crate::options::{push_out, tick, unknown};
use crate::status::{Status, answer, entry, failure, put};
use crate::timer::{TICKLESS_COARSE, TICKLESS_PRECISE};
use crate::timers::duration;
use core::ffi::c_void;
use tickless::LocalTimers;
use tickless::local::{Key, LocalError};
use tickless::time::Instant;

/// Timers of one thread. Opaque. The loop asks when the next one is due, waits that long for its
/// own events, says what time it is, and is called for each timer that fires.
///
/// Used by the thread that created them, or the last one that adopted them; other threads are
/// told so.
pub struct Local {
    own: OneThread<Timers>,
}

type Timers = LocalTimers<*mut c_void>;

impl Handle for Local {
    type Value = Timers;
    const SORT: Sort = Sort {
        mark: 0x6c6f_6361_6c74_696d,
        name: "local timers",
        remedy: "adopt them first, or use tickless_timers",
    };

    fn own(&self) -> &OneThread<Timers> {
        &self.own
    }
}

/// Names a timer of one `tickless_local_t`. Once that timer has been removed the key finds
/// nothing, and a key of zeros never does.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalKey {
    /// Not to be interpreted.
    pub(crate) bits: u64,
}

/// What `tickless_local_advance` calls for a timer that fires, which is idle by then. It may do
/// anything with the timers but advance or destroy them. It must return; a C++ exception that
/// leaves it ends the process. `context` is what was handed to the advance, `data` the timer's.
pub type LocalCallback = Option<
    unsafe extern "C-unwind" fn(
        local: *mut Local,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ),
>;

pub(crate) fn known(key: LocalKey) -> Key {
    Key::from_bits(key.bits)
}

pub(crate) fn wrong(error: LocalError) -> Status {
    let status = match error {
        LocalError::NoSuchTimer(_) => Status::NoSuchTimer,
        _ => Status::Full,
    };
    failure(status, error)
}

/// Makes local timers, at the time `now_ns` of whatever clock the loop has. `tick_ns` is the tick
/// of coarse timers, 1,000 (1 us) to 1,000,000,000 (1 s), or 0 for 1 ms; `how` is one of
/// `TICKLESS_PUSH_OUT_...`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `local` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_create(
    now_ns: u64,
    tick_ns: u64,
    how: u32,
    local: *mut *mut Local,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(local, core::ptr::null_mut()) }?;
        let timers =
            LocalTimers::with_tick(Instant::from_nanos(now_ns), tick(tick_ns)?, push_out(how)?);
        let made = Box::new(Local { own: OneThread::new(&Local::SORT, timers) });
        // SAFETY: as promised.
        unsafe { answer(local, Box::into_raw(made)) }
    })
}

/// Frees local timers with all that is in them; null is nothing to do.
///
/// Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of their advance.
///
/// # Safety
/// `local` is null or came from `tickless_local_create` and was not destroyed; nobody uses it
/// later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_destroy(local: *mut Local) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { Handle::free(local) }
    })
}

/// Makes the calling thread the one that uses these local timers. The thread before it must be
/// done with them, and have said so, by a lock or a join.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback of their advance.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; nobody uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_adopt(local: *mut Local) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { Local::adopt(local) }
    })
}

/// Makes room for a timer, not armed: `TICKLESS_COARSE` or `TICKLESS_PRECISE`. `data` is handed to
/// the callback when it fires. Allocates now and then; arming and cancelling never do.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_FULL` (2^29 coarse or 2^31
/// precise ones), `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `key` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_insert(
    local: *mut Local,
    kind: u32,
    data: *mut c_void,
    key: *mut LocalKey,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        // SAFETY: as promised.
        unsafe { answer(key, LocalKey { bits: 0 }) }?;
        let made = match kind {
            TICKLESS_COARSE => timers.insert(data),
            TICKLESS_PRECISE => timers.insert_precise(data),
            _ => return Err(unknown("kind")),
        };
        let bits = made.map_err(wrong)?.to_bits();
        // SAFETY: as promised.
        unsafe { answer(key, LocalKey { bits }) }
    })
}

/// Cancels a timer and takes it out; `data`, which may be null, receives what it was inserted
/// with.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `data` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_remove(
    local: *mut Local,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        let gone = LocalError::NoSuchTimer(known(key));
        let held = timers.remove(known(key)).ok_or_else(|| wrong(gone))?;
        // SAFETY: as promised.
        unsafe { put(data, held) };
        Ok(())
    })
}

/// Arms a timer, or arms it anew, earlier or later, to fire `after_ns` from what the last advance
/// said. A loop that slept for long advances first.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`,
/// `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_start(
    local: *mut Local,
    key: LocalKey,
    after_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        timers.start(known(key), duration(after_ns)?).map_err(wrong)
    })
}

/// Arms a timer, or arms it anew, for a window on the loop's clock: a precise timer causes no
/// wakeup of its own before `hard_ns`, a coarse one takes `soft_ns` as its deadline. What has
/// passed fires with the next advance.
///
/// Errors: as `tickless_local_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_start_range(
    local: *mut Local,
    key: LocalKey,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        let (soft, hard) = window(soft_ns, hard_ns)?;
        timers.start_range(known(key), soft, hard).map_err(wrong)
    })
}

/// Cancels a timer. `was_pending` may be null.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `was_pending` is null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_cancel(
    local: *mut Local,
    key: LocalKey,
    was_pending: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        let pending = timers.cancel(known(key)).map_err(wrong)?;
        // SAFETY: as promised.
        unsafe { put(was_pending, pending) };
        Ok(())
    })
}

/// Is the timer pending? A key that finds nothing is no error here.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `is_pending` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_is_pending(
    local: *mut Local,
    key: LocalKey,
    is_pending: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        // SAFETY: as promised.
        unsafe { answer(is_pending, timers.is_pending(known(key))) }
    })
}

/// When to advance next, on the loop's clock; `TICKLESS_NEVER` if nothing is pending. May have
/// passed. Never after the next timer comes due; before it where coarse timers were pushed out.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `next_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_next_event(local: *mut Local, next_ns: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let timers = unsafe { Local::own_thread(local)?.value() };
        // SAFETY: as promised.
        unsafe { answer(next_ns, timers.next_event().as_nanos()) }
    })
}

/// Says what time it is, and calls `callback` for each timer that is due, of at most `budget`
/// timers; 0 is no limit. What is left is first in line next time. What the callback arms for the
/// past fires with the next advance, so this ends. A time before the last one counts as that.
/// `fired`, which may be null, receives how many fired.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.
///
/// # Safety
/// `local` came from `tickless_local_create` and was not destroyed; `fired` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_local_advance(
    local: *mut Local,
    now_ns: u64,
    budget: usize,
    callback: LocalCallback,
    context: *mut c_void,
    fired: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let own = unsafe { Local::own_thread(local) }?;
        own.idle(&Local::SORT)?;
        let Some(callback) = callback else {
            return Err(failure(Status::NullPointer, "the callback is null"));
        };
        let budget = if budget == 0 { usize::MAX } else { budget };
        // SAFETY: nobody else has them until this returns, but for whom they are lent to below.
        let timers = unsafe { own.value() };
        let count = timers.advance_at_most(Instant::from_nanos(now_ns), budget, |timers, key| {
            let data = timers.value(key).copied().unwrap_or(core::ptr::null_mut());
            let _take_back = own.lend(timers);
            let key = LocalKey { bits: key.to_bits() };
            // SAFETY: a function of this type, as the header asks for.
            unsafe { callback(local, key, data, context) };
        });
        // SAFETY: as promised.
        unsafe { put(fired, count) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the callbacks below have seen.
    #[derive(Default)]
    struct Seen {
        data: Vec<usize>,
        nested: Vec<Status>,
    }

    /// # Safety
    /// `local` is being advanced, and `context` leads to a `Seen`.
    unsafe extern "C-unwind" fn note(
        local: *mut Local,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ) {
        // SAFETY: as promised; the timers are advanced on this thread.
        unsafe {
            let seen = &mut *context.cast::<Seen>();
            seen.data.push(data.addr());
            let none = core::ptr::null_mut::<*mut c_void>();
            seen.nested.push(tickless_local_advance(local, 0, 0, Some(note), context, none.cast()));
            seen.nested.push(tickless_local_destroy(local));
            if data.addr() < 3 {
                seen.nested.push(tickless_local_start(local, key, 5));
            } else {
                seen.nested.push(tickless_local_remove(local, key, none));
            }
        }
    }

    /// Goal: a callback uses the timers that are just being advanced. Miri sees whether that is
    /// sound.
    #[test]
    fn a_callback_may_use_the_timers() {
        // SAFETY: the timers are used by this thread until they are destroyed.
        unsafe {
            let mut local = core::ptr::null_mut();
            assert_eq!(tickless_local_create(0, 0, 0, &mut local), Status::Ok);
            let mut keys = [LocalKey { bits: 0 }; 4];
            for (at, key) in keys.iter_mut().enumerate() {
                let kind = if at % 2 == 0 { TICKLESS_PRECISE } else { TICKLESS_COARSE };
                let data = core::ptr::without_provenance_mut(at);
                assert_eq!(tickless_local_insert(local, kind, data, key), Status::Ok);
                assert_eq!(tickless_local_start(local, *key, 10), Status::Ok);
            }
            let mut seen = Seen::default();
            let (mut fired, context) = (0, (&raw mut seen).cast());
            let later = 1_000_000;
            let status = tickless_local_advance(local, later, 0, Some(note), context, &mut fired);
            assert_eq!((status, fired), (Status::Ok, 4));
            assert_eq!(seen.data, [0, 2, 1, 3]);
            let expected = [Status::Busy, Status::Busy, Status::Ok].repeat(4);
            assert_eq!(seen.nested, expected);
            assert_eq!(tickless_local_start(local, keys[3], 5), Status::NoSuchTimer);
            let mut pending = false;
            assert_eq!(tickless_local_is_pending(local, keys[0], &mut pending), Status::Ok);
            assert!(pending);
            assert_eq!(tickless_local_destroy(local), Status::Ok);
        }
    }

    /// Goal: a key that somebody made up finds nothing, never an empty slot.
    #[test]
    fn made_up_keys_find_nothing() {
        // SAFETY: the timers are used by this thread until they are destroyed.
        unsafe {
            let (mut local, none) = (core::ptr::null_mut(), core::ptr::null_mut());
            assert_eq!(tickless_local_create(0, 0, 0, &mut local), Status::Ok);
            for kind in [TICKLESS_COARSE, TICKLESS_PRECISE] {
                let mut key = LocalKey { bits: 0 };
                assert_eq!(tickless_local_insert(local, kind, none, &mut key), Status::Ok);
                assert_eq!(tickless_local_remove(local, key, &mut none.clone()), Status::Ok);
                for turned in 0..64 {
                    let made_up = LocalKey { bits: key.bits ^ 1 << turned };
                    let gone = Status::NoSuchTimer;
                    assert_eq!(tickless_local_start(local, made_up, 5), gone, "bit {turned}");
                    assert_eq!(tickless_local_remove(local, made_up, &mut none.clone()), gone);
                }
            }
            let (context, fired) = (core::ptr::null_mut(), core::ptr::null_mut());
            let status = tickless_local_advance(local, u64::MAX, 0, Some(note), context, fired);
            assert_eq!(status, Status::Ok);
            assert_eq!(tickless_local_destroy(local), Status::Ok);
        }
    }

    /// Timers on their way to another thread.
    struct Given(*mut Local);
    // SAFETY: they are for who adopts them.
    unsafe impl Send for Given {}

    /// Goal: another thread is refused until it has adopted the timers.
    #[test]
    fn threads_are_told_apart() {
        // SAFETY: the timers are used by one thread after the other.
        unsafe {
            let mut local = core::ptr::null_mut();
            assert_eq!(tickless_local_create(0, 0, 0, &mut local), Status::Ok);
            let given = Given(local);
            let other = std::thread::spawn(move || {
                let Given(local) = { given };
                let mut next = 0;
                let ask = |next: &mut u64| tickless_local_next_event(local, next);
                assert_eq!(ask(&mut next), Status::WrongThread);
                assert_eq!(tickless_local_destroy(local), Status::WrongThread);
                assert_eq!(tickless_local_adopt(local), Status::Ok);
                assert_eq!((ask(&mut next), next), (Status::Ok, u64::MAX));
            });
            assert!(other.join().is_ok());
            assert_eq!(tickless_local_destroy(local), Status::WrongThread);
            assert_eq!(tickless_local_adopt(local), Status::Ok);
            assert_eq!(tickless_local_destroy(local), Status::Ok);
        }
    }
}
