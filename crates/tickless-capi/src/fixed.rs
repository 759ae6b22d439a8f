//! Timeouts of one duration for all of a class, for a loop of one's own.

use crate::local::{LocalKey, known};
use crate::one_thread::{Handle, OneThread, Sort};
use crate::status::{Outcome, Status, answer, entry, failure, put};
use crate::timers::duration;
use core::ffi::c_void;
use tickless::local::{Class, FixedError, FixedTimeouts};
use tickless::time::Instant;

/// Timeouts of one thread, all those of a class with one duration, which can be changed while they
/// are pending. Opaque. Starting a pending one again is one store.
///
/// A server gives all connections of a listener one idle timeout: a class. Under overload it
/// halves that with one call, and the connections that have been idle longest come due at once.
///
/// Never early; late by at most a sixteenth of the class's duration, or of the one that it was
/// created with if that is longer. Used by the thread that created them, or the last one that
/// adopted them, as `tickless_local_t`.
pub struct Fixed {
    own: OneThread<Timeouts>,
}

type Timeouts = FixedTimeouts<*mut c_void>;

impl Handle for Fixed {
    type Value = Timeouts;
    const SORT: Sort = Sort {
        mark: 0x6669_7865_6474_696d,
        name: "fixed timeouts",
        remedy: "adopt them first, or use tickless_timers",
    };

    fn own(&self) -> &OneThread<Timeouts> {
        &self.own
    }
}

/// The class that C names by its number.
fn class(timers: &Timeouts, number: u32) -> Outcome<Class> {
    timers.classes().nth(number as usize).ok_or_else(|| {
        failure(Status::OutOfRange, format_args!("there is no class {number}; add it first"))
    })
}

/// What `tickless_fixed_advance` calls for a timer that fires; as `tickless_local_callback_t`.
pub type FixedCallback = Option<
    unsafe extern "C-unwind" fn(
        fixed: *mut Fixed,
        key: LocalKey,
        data: *mut c_void,
        context: *mut c_void,
    ),
>;

fn wrong(error: FixedError) -> Status {
    let status = match error {
        FixedError::NoSuchTimer(_) => Status::NoSuchTimer,
        FixedError::Full => Status::Full,
        _ => Status::OutOfRange,
    };
    failure(status, error)
}

/// Makes fixed timeouts without classes, at the time `now_ns` of whatever clock the loop has.
///
/// Errors: `TICKLESS_NULL_POINTER`.
///
/// # Safety
/// `fixed` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_create(now_ns: u64, fixed: *mut *mut Fixed) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(fixed, core::ptr::null_mut()) }?;
        let timers = FixedTimeouts::new(Instant::from_nanos(now_ns));
        let made = Box::new(Fixed { own: OneThread::new(&Fixed::SORT, timers) });
        // SAFETY: as promised.
        unsafe { answer(fixed, Box::into_raw(made)) }
    })
}

/// Frees fixed timeouts with all that is in them; null is nothing to do.
///
/// Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of their advance.
///
/// # Safety
/// `fixed` is null or came from `tickless_fixed_create` and was not destroyed; nobody uses it
/// later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_destroy(fixed: *mut Fixed) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { Handle::free(fixed) })
}

/// Makes the calling thread the one that uses these fixed timeouts; as `tickless_local_adopt`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback of their advance.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; nobody uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_adopt(fixed: *mut Fixed) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { Fixed::adopt(fixed) })
}

/// Adds a class of timers that fire `after_ns` after they are started, and writes its number: they
/// count from 0. A class takes 1 KiB.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_FULL` (65,536 classes),
/// `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `number` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_add_class(
    fixed: *mut Fixed,
    after_ns: i64,
    number: *mut u32,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        // SAFETY: as promised.
        unsafe { answer(number, 0) }?;
        own.add_class(duration(after_ns)?).map_err(wrong)?;
        // SAFETY: as promised.
        unsafe { answer(number, own.classes().len() as u32 - 1) }
    })
}

/// Gives a class another duration, for timers that are pending too. It keeps its factor.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, also if there is no such class;
/// `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_set_after(
    fixed: *mut Fixed,
    number: u32,
    after_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        let (class, after) = (class(own, number)?, duration(after_ns)?);
        own.set_after(class, after).map_err(wrong)
    })
}

/// Scales the duration of a class by a factor, for timers that are pending too: 0.5 halves it, 1 is
/// as it was given. What is overdue by that fires with the next advance.
///
/// Errors: as `tickless_fixed_set_after`; a factor must be a number from 0 on.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_scale(
    fixed: *mut Fixed,
    number: u32,
    factor: f64,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        let class = class(own, number)?;
        own.scale(class, factor).map_err(wrong)
    })
}

/// Makes room for a timer of a class, not started. `data` is handed to the callback when it fires.
/// Allocates now and then; starting and cancelling never do.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE` if there is no such class,
/// `TICKLESS_FULL` (2^29 timers), `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `key` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_insert(
    fixed: *mut Fixed,
    number: u32,
    data: *mut c_void,
    key: *mut LocalKey,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        // SAFETY: as promised.
        unsafe { answer(key, LocalKey { bits: 0 }) }?;
        let class = class(own, number)?;
        let made = own.insert(class, data).map_err(wrong)?;
        // SAFETY: as promised.
        unsafe { answer(key, LocalKey { bits: made.to_bits() }) }
    })
}

/// Cancels a timer and takes it out; `data`, which may be null, receives what it was inserted
/// with.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `data` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_remove(
    fixed: *mut Fixed,
    key: LocalKey,
    data: *mut *mut c_void,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        let gone = FixedError::NoSuchTimer(known(key));
        let held = own.remove(known(key)).ok_or_else(|| wrong(gone))?;
        // SAFETY: as promised.
        unsafe { put(data, held) };
        Ok(())
    })
}

/// Starts a timer, or starts it again: it fires its class's duration after what the last advance
/// said. One store if it is pending.
///
/// Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_start(fixed: *mut Fixed, key: LocalKey) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        own.start(known(key)).map_err(wrong)
    })
}

/// Cancels a timer. `was_pending` may be null.
///
/// Errors: as `tickless_fixed_start`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `was_pending` is null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_cancel(
    fixed: *mut Fixed,
    key: LocalKey,
    was_pending: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        let pending = own.cancel(known(key)).map_err(wrong)?;
        // SAFETY: as promised.
        unsafe { put(was_pending, pending) };
        Ok(())
    })
}

/// How many timers there are, and how many of them are pending. Either pointer may be null.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; the others are null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_count(
    fixed: *mut Fixed,
    timers: *mut usize,
    pending: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        // SAFETY: as promised.
        unsafe {
            put(timers, own.len());
            put(pending, own.pending());
        }
        Ok(())
    })
}

/// When to advance next, on the loop's clock; `TICKLESS_NEVER` if nothing is pending. O(classes).
/// Never after a timer must fire; before it where timers were started again.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `next_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_next_event(fixed: *mut Fixed, next_ns: *mut u64) -> Status {
    entry(|| {
        // SAFETY: as promised; no C is called meanwhile.
        let own = unsafe { Fixed::own_thread(fixed)?.value() };
        // SAFETY: as promised.
        unsafe { answer(next_ns, own.next_event().as_nanos()) }
    })
}

/// Says what time it is, and calls `callback` for each timer that is due, looking at `budget` of
/// them at most; 0 is no limit. As `tickless_local_advance`.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.
///
/// # Safety
/// `fixed` came from `tickless_fixed_create` and was not destroyed; `fired` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_fixed_advance(
    fixed: *mut Fixed,
    now_ns: u64,
    budget: usize,
    callback: FixedCallback,
    context: *mut c_void,
    fired: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let own = unsafe { Fixed::own_thread(fixed) }?;
        own.idle(&Fixed::SORT)?;
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
            unsafe { callback(fixed, key, data, context) };
        });
        // SAFETY: as promised.
        unsafe { put(fired, count) };
        Ok(())
    })
}
