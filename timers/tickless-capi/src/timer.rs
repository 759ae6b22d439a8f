//! Coarse and precise timers in their caller's memory.

use crate::annotate;
use crate::fired::{CCallback, Callback, Expiry, window};
use crate::object::{Object, on, result_of};
use crate::options::unknown;
use crate::status::{Outcome, Status, cancel_status, caught, entry, failure, write_optional};
use crate::storage::{self, Storage};
use crate::timers::{TimerSet, duration};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use tickless::callback::Cancel;
use tickless::callback::StartError;
use tickless::callback::Started;
use tickless::driver::CpuId;
use tickless::slots::{self, CoarseSlot, PreciseSlot};
use tickless::time::Instant;
use tickless::{CancelError, HrTimer, Timeout};

/// `kind`: a timeout, on a timer wheel. Never early; late by at most 13 % of its duration plus a
/// tick. Arming, pushing out and cancelling take some nanoseconds regardless of how many timers are
/// pending.
pub const TICKLESS_COARSE: u32 = 0;
/// `kind`: a high-resolution timer, in a sorted queue. Never early; late by at most its slack and
/// the time that waking a thread takes.
pub const TICKLESS_PRECISE: u32 = 1;
/// `kind`, coarse only, with `|`: fires with the first event of its base after its deadline, and
/// never causes a wakeup.
pub const TICKLESS_DEFERRABLE: u32 = 256;
/// `kind`, precise only, with `|`: the callback runs in the expiry thread of its base, if the base
/// has one (see `TICKLESS_EXPIRY_THREADS`).
pub const TICKLESS_DEFERRED: u32 = 512;
/// `kind`, with `|`: the timer stays on the base whose number is in the upper 16 bits. Use
/// `TICKLESS_PIN(n)`.
pub const TICKLESS_PINNED: u32 = 1024;

/// Memory for one timer: on the stack, in a struct, or from `malloc`. Opaque.
///
/// Set it to zero before its first `tickless_timer_init`, otherwise some misuse is not detected.
/// From init to destroy it must neither move nor be written. It has 128 bytes; align timers that
/// are used often to 64 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct TimerStorage {
    /// Private to the library.
    opaque: [u64; 16],
}

/// The state in which a cancel found a timer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelFound {
    /// The timer was neither pending nor running.
    Idle = 0,
    /// The timer was pending; that arming will not fire.
    Pending = 1,
    /// The timer's callback was running.
    Running = 2,
}

/// Evaluates an expression on a lent timer of either kind, coarse or precise. Each kind gets a
/// variable of its own, so that the compiler keeps the fields of a coarse timer, whose methods are
/// inlined, in registers.
macro_rules! either {
    ($any:expr, $timer:ident => $body:expr) => {
        match ManuallyDrop::into_inner($any) {
            Any::Coarse(timer) => {
                let $timer = ManuallyDrop::new(timer);
                $body
            }
            Any::Precise(timer) => {
                let $timer = ManuallyDrop::new(timer);
                $body
            }
        }
    };
}

/// The handle of a timer of either kind, coarse or precise.
pub(crate) enum Any {
    Coarse(Timeout),
    Precise(HrTimer),
}

impl Any {
    fn coarse(&self) -> Outcome<&Timeout> {
        match self {
            Any::Coarse(timer) => Ok(timer),
            Any::Precise(_) => {
                let what = "only coarse timers can be reduced; start precise ones instead";
                Err(failure(Status::Unsupported, what))
            }
        }
    }

    fn precise(&self) -> Outcome<&HrTimer> {
        match self {
            Any::Precise(timer) => Ok(timer),
            Any::Coarse(_) => {
                let what = "a coarse timer has no window; use TICKLESS_PRECISE";
                Err(failure(Status::Unsupported, what))
            }
        }
    }

    pub(crate) fn relabel(any: ManuallyDrop<Any>, label: &'static str) {
        either!(any, timer => timer.relabel(label));
    }
}

pub(crate) union SlotOfAny {
    _coarse: ManuallyDrop<CoarseSlot<CCallback<Expiry>>>,
    _precise: ManuallyDrop<PreciseSlot<CCallback<Expiry>>>,
}

impl Storage for TimerStorage {
    type Timer = Any;
    type Slot = SlotOfAny;
    const MARK: u64 = 0x9d3c_1b57_6af2_e841;
    const NAME: &'static str = "timer";

    fn is_usual(timer: &Any) -> bool {
        matches!(timer, Any::Coarse(timer) if timer.is_usual())
    }

    unsafe fn give_back(timer: &mut Any) -> Result<(), CancelError> {
        // SAFETY: as for this function. `make` creates the timer in a slot.
        unsafe {
            match timer {
                Any::Coarse(timer) => timer.give_back(),
                Any::Precise(timer) => timer.give_back(),
            }
        }
    }
}

/// Initialises a timer in its caller's memory, without arming it. Allocates nothing.
///
/// `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`, with `|` also `TICKLESS_DEFERRABLE`,
/// `TICKLESS_DEFERRED` or `TICKLESS_PINNED`. A thread of the library calls `callback` with `data`.
///
/// Errors: `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`, `TICKLESS_NO_SUCH_BASE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_init(
    timer: *mut TimerStorage,
    timers: *const TimerSet,
    kind: u32,
    callback: Callback,
    data: *mut c_void,
) -> Status {
    entry(|| {
        storage::init(timer, |slot| {
            let timers = &TimerSet::lend(timers)?.timers;
            let call = CCallback::new(callback, data)?;
            make(slot, timers, kind, call)
        })
    })
}

/// Creates a timer of this `kind` in a slot.
///
/// # Safety
/// `slot` can be written, and is neither freed nor moved until `Storage::give_back` of the timer
/// has succeeded.
unsafe fn make(
    slot: NonNull<SlotOfAny>,
    timers: &tickless::Timers,
    kind: u32,
    call: CCallback<Expiry>,
) -> Outcome<Any> {
    let (family, flags) = (kind & 255, kind & 0xff00 & !TICKLESS_PINNED);
    let allowed = match family {
        TICKLESS_COARSE => TICKLESS_DEFERRABLE,
        TICKLESS_PRECISE => TICKLESS_DEFERRED,
        _ => return Err(unknown("kind")),
    };
    let (is_pinned, base) = (kind & TICKLESS_PINNED != 0, (kind >> 16) as u16);
    if flags & !allowed != 0 || (!is_pinned && base != 0) {
        return Err(unknown("kind"));
    }
    let bases = slots::bases(timers);
    if is_pinned && usize::from(base) >= bases {
        let what = format!("there is no base {base} among {bases}");
        return Err(failure(Status::NoSuchBase, what));
    }
    let pin = is_pinned.then_some(CpuId(base));
    Ok(if family == TICKLESS_COARSE {
        // SAFETY: as for this function; the callback may run on any thread.
        let timer = unsafe { slots::timeout(timers, slot.cast(), call) };
        let timer = if flags != 0 { timer.deferrable() } else { timer };
        Any::Coarse(pin.into_iter().fold(timer, Timeout::pinned))
    } else {
        // SAFETY: as for this function; the callback may run on any thread.
        let timer = unsafe { slots::hrtimer(timers, slot.cast(), call) };
        let timer = if flags != 0 { timer.deferred() } else { timer };
        Any::Precise(pin.into_iter().fold(timer, HrTimer::pinned))
    })
}

/// Converts the result of an arming to the status for C.
pub(crate) fn started(result: Result<Started, StartError>) -> Outcome {
    match result {
        Ok(_) => Ok(()),
        Err(error @ StartError::NoSuchBase(_)) => Err(failure(Status::NoSuchBase, error)),
        Err(error) => Err(failure(Status::Shut, error)),
    }
}

/// Arms a timer to fire `after_ns` from now. A pending timer is rearmed, earlier or later.
/// Allocates nothing; makes a system call only if the new deadline is earlier than the one that a
/// sleeping driver waits for. Durations are at most 292 years; deadlines beyond the end of the
/// clock never come.
///
/// If another thread cancels the timer and waits for its callback (`tickless_timer_cancel_sync`),
/// that cancel also cancels this arming. The call still succeeds.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start(timer: *const TimerStorage, after_ns: i64) -> Status {
    // Many CPUs read their counter only when all earlier loads have ended, and load nothing before
    // that. So the timer's memory is on its way by then, and the count is read before all loads: of
    // 100,000 timers at random, the next one's memory is fetched while this one's is waited for.
    slots::prefetch_at(timer);
    let count = slots::read_counter();
    start_usual(timer, after_ns, |timer| timer.try_time_of(count))
        .unwrap_or_else(|| start(timer, after_ns))
}

/// Arms a usual timer, if `now` returns the time and `after_ns` is not negative. Pushes it out
/// without saving a register; what else there is to do is another function.
///
/// # Safety
/// As for [`Object::lend`].
#[inline(always)]
unsafe fn start_usual(
    timer: *const TimerStorage,
    after_ns: i64,
    now: impl FnOnce(&Timeout) -> Option<Instant>,
) -> Option<Status> {
    let handle = usual(timer)?;
    let after = u64::try_from(after_ns).ok()?;
    let now = now(&handle)?;
    let deadline = Instant::from_nanos(now.as_nanos().saturating_add(after));
    if handle.push_out_fast(now, deadline) {
        return Some(Status::Ok);
    }
    Some(start_idle(timer, now.as_nanos(), deadline.as_nanos()))
}

/// Arms a usual timer, as `start_usual` has found it.
#[inline(never)]
unsafe extern "C" fn start_idle(timer: *const TimerStorage, now: u64, deadline: u64) -> Status {
    let (handle, at) = (usual(timer).unwrap_unchecked(), Instant::from_nanos(deadline));
    match caught(|| handle.start_fast(Instant::from_nanos(now), at)) {
        Ok(true) => Status::Ok,
        Ok(false) => tickless_timer_start_at(timer, deadline),
        Err(status) => status,
    }
}

/// Returns the handle of a usual timer, which is coarse and has the default options.
///
/// # Safety
/// As for [`Object::lend`].
#[inline(always)]
unsafe fn usual(timer: *const TimerStorage) -> Option<ManuallyDrop<Timeout>> {
    match &*storage::usual(timer)? {
        Any::Coarse(timer) => {
            Some(core::ptr::from_ref(timer).cast::<ManuallyDrop<Timeout>>().read())
        }
        // `is_usual` is true for coarse timers only.
        Any::Precise(_) => core::hint::unreachable_unchecked(),
    }
}

// These are "C", so that the functions above continue in them by a jump.
#[inline(never)]
unsafe extern "C" fn start(timer: *const TimerStorage, after_ns: i64) -> Status {
    on(timer, |any| started(either!(any, timer => timer.start(duration(after_ns)?))))
}

#[inline(never)]
unsafe extern "C" fn start_from(timer: *const TimerStorage, now_ns: u64, after_ns: i64) -> Status {
    on(timer, |any| {
        let now = Instant::from_nanos(now_ns);
        started(either!(any, timer => timer.start_from(now, duration(after_ns)?)))
    })
}

#[inline(never)]
unsafe extern "C" fn cancel(timer: *const TimerStorage, found: *mut CancelFound) -> Status {
    cancel_with(timer, found, |any| Ok(either!(any, timer => timer.cancel())))
}

/// Arms a timer as `tickless_timer_start` does, but counts `after_ns` from `now_ns`, which the
/// caller has just read with `tickless_timers_now`. A server that handles a batch of events reads
/// the clock once. If `now_ns` is not the current time, the timer fires earlier or later by that
/// much.
///
/// Errors: those of `tickless_timer_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_from(
    timer: *const TimerStorage,
    now_ns: u64,
    after_ns: i64,
) -> Status {
    let now = Instant::from_nanos(now_ns);
    start_usual(timer, after_ns, |_| Some(now))
        .unwrap_or_else(|| start_from(timer, now_ns, after_ns))
}

/// Arms a timer as `tickless_timer_start` does, but allows it to be late by `slack_ns` so that it
/// can share a wakeup with others. Precise timers only.
///
/// Errors: those of `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a coarse one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_slack(
    timer: *const TimerStorage,
    after_ns: i64,
    slack_ns: i64,
) -> Status {
    on(timer, |any| {
        let (after, slack) = (duration(after_ns)?, duration(slack_ns)?);
        started(any.precise()?.start_with_slack(after, slack))
    })
}

/// Arms or rearms a timer for a point in time on the timers' clock. A point that has passed fires
/// at once; `TICKLESS_NEVER` never comes.
///
/// Errors: `TICKLESS_SHUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_at(
    timer: *const TimerStorage,
    deadline_ns: u64,
) -> Status {
    on(timer, |any| {
        let deadline = Instant::from_nanos(deadline_ns);
        started(either!(any, timer => timer.start_at(deadline)))
    })
}

/// Arms or rearms a timer to fire within a window: not before `soft_ns`, from then on with any
/// event of its base, and at `hard_ns` with an event of its own. Precise timers only.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins, `TICKLESS_SHUT`,
/// `TICKLESS_UNSUPPORTED` for a coarse one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_range(
    timer: *const TimerStorage,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    on(timer, |any| {
        let (soft, hard) = window(soft_ns, hard_ns)?;
        started(any.precise()?.start_range(soft, hard))
    })
}

/// Arms an idle timer. A pending timer only becomes earlier, never later. Coarse timers only.
///
/// Errors: those of `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a precise one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_reduce(
    timer: *const TimerStorage,
    after_ns: i64,
) -> Status {
    on(timer, |any| {
        let after = duration(after_ns)?;
        started(any.coarse()?.reduce(after))
    })
}

/// Cancels a timer unless its callback is running: then it reports `TICKLESS_CANCEL_RUNNING` and
/// changes nothing. Never waits; takes no lock if the timer is idle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_try_cancel(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |any| Ok(either!(any, timer => timer.try_cancel())))
}

/// Cancels a timer without waiting for its callback; takes no lock if the timer is idle. After
/// `TICKLESS_CANCEL_RUNNING` the callback is perhaps still running, and can still request a
/// restart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    let Some(usual) = usual(timer) else { return cancel(timer, found) };
    match caught(move || usual.cancel_fast()) {
        Ok(true) => write_optional(found, CancelFound::Pending),
        Ok(false) => return cancel(timer, found),
        Err(status) => return status,
    }
    Status::Ok
}

/// Cancels a timer and waits until no thread runs its callback. When the call has returned, the
/// caller sees what the callback wrote, and is allowed to free the callback's data. `found` reports
/// the state at the beginning of the call. The call spins for some microseconds, then sleeps. It
/// also cancels armings that happen while it waits, including the callback's own. Do not hold a
/// lock that the callback takes: this deadlock is not detected.
///
/// Allocates nothing unless it waits. The first calls that wait allocate some hundred bytes for a
/// table of waits, which stay allocated.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in the timer's own callback, or in one that its callback waits
/// for: the timer has been cancelled, `found` reports its state, and its callback is perhaps
/// running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel_sync(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |any| either!(any, timer => timer.cancel_sync()))
}

/// A `tickless_timer_cancel_sync` that is slightly cheaper while callbacks of other timers run, for
/// a timer that is never armed again while its callback runs, neither by another thread nor by the
/// callback itself.
///
/// Errors: those of `tickless_timer_cancel_sync`; `TICKLESS_NOT_SINGLE_SHOT` if the timer was armed
/// nevertheless: it has been cancelled, and its callback has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel_single_shot(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |any| either!(any, timer => timer.cancel_single_shot()))
}

/// Cancels a timer permanently, and waits as `tickless_timer_cancel_sync` does. Every later arming
/// by any thread returns `TICKLESS_SHUT`. The storage stays initialised and must still be
/// destroyed.
///
/// Errors: those of `tickless_timer_cancel_sync`; the timer is shut down in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_shutdown_sync(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |any| either!(any, timer => timer.shutdown_sync()))
}

/// Runs the body of an entry point that cancels a timer, and writes to `place` whether the timer
/// was idle, pending or running its callback.
///
/// # Safety
/// As for [`Object::lend`], and `place` is null or writable.
pub(crate) unsafe fn cancel_with<'a, O: Object>(
    timer: *const O,
    place: *mut CancelFound,
    cancel: impl FnOnce(O::Lent<'a>) -> Result<Cancel, CancelError>,
) -> Status {
    // SAFETY: the caller promises that `timer` is null or points to a timer that no other thread
    // destroys during the call, and that `place` is null or writable.
    unsafe {
        on(timer, |timer| {
            let result = cancel(timer);
            let found = match result {
                Ok(Cancel::Idle) => CancelFound::Idle,
                Ok(Cancel::Pending) => CancelFound::Pending,
                // The callback was running when the cancel began, and the cancel did not wait for
                // its end, or found the timer armed again.
                Ok(Cancel::Running) | Err(_) => CancelFound::Running,
            };
            // ThreadSanitizer must see that the callback ran before this function returns.
            annotate::acquire();
            write_optional(place, found);
            result.map(drop).map_err(cancel_status)
        })
    }
}

/// Reports whether the timer is armed. The answer can be out of date at once, because other threads
/// can arm or cancel the timer at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_is_pending(
    timer: *const TimerStorage,
    is_pending: *mut bool,
) -> Status {
    result_of(timer, is_pending, |any| Ok(either!(any, timer => timer.is_pending())))
}

/// Reports whether the timer is armed or its callback is running. Never reports false while the
/// timer is armed or its callback runs; a true result can be out of date.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_is_active(
    timer: *const TimerStorage,
    is_active: *mut bool,
) -> Status {
    result_of(timer, is_active, |any| Ok(either!(any, timer => timer.is_active())))
}

/// Destroys a timer: shuts it down, waits for its callback as `tickless_timer_cancel_sync` does,
/// and releases the memory, which may then be freed or initialised again.
///
/// In the timer's own callback the call succeeds without waiting, and the library does not access
/// the memory afterwards, so a callback is allowed to destroy its timer and free it. No other
/// thread is allowed to use the timer at that moment.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this timer's callback waits
/// for: the timer is shut down, but its memory is still in use; destroy it again later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_destroy(timer: *mut TimerStorage) -> Status {
    entry(|| storage::destroy(timer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Handle;
    use crate::timers::{Set, tickless_timers_stop};
    use std::sync::{Arc, Mutex};
    use tickless::driver::EventLoopDriver;

    struct Own {
        storage: TimerStorage,
        gone: Arc<Mutex<bool>>,
    }

    unsafe extern "C-unwind" fn free(_: *mut Expiry, data: *mut c_void) {
        // SAFETY: the caller promises that `data` points to an `Own`; nothing uses it after this.
        unsafe {
            let own = data.cast::<Own>();
            assert_eq!(tickless_timer_destroy(&raw mut (*own).storage), Status::Ok);
            let own = Box::from_raw(own);
            *own.gone.lock().expect("no panic") = true;
        }
    }

    /// Goal: an arming does not access its timer once the timer can fire, because the callback can
    /// free the timer. Method: the loop runs as soon as it is notified of the deadline, which
    /// happens inside the arming. Miri also reports a reference that outlives the memory.
    #[test]
    fn a_callback_may_free_its_timer_during_the_arming() {
        let driver = Arc::new(Mutex::new(None::<EventLoopDriver<()>>));
        let run = Arc::clone(&driver);
        let on_rearm = move |_| {
            let mut driver = run.lock().expect("no panic");
            assert_eq!(driver.as_mut().expect("a loop").run(), 1, "the armed timer is due");
        };
        let (timers, mut made) = tickless::Timers::builder().start_in_loop_with(on_rearm);
        assert_eq!(made.next_event(), None);
        *driver.lock().expect("no panic") = Some(made);
        let timers = TimerSet::boxed(Set::new(timers, None));
        let gone = Arc::<Mutex<bool>>::default();
        let storage = TimerStorage { opaque: [0; 16] };
        let own = Box::into_raw(Box::new(Own { storage, gone: Arc::clone(&gone) }));
        // SAFETY: the callback frees the memory, which is the last use; the set is stopped after
        // that.
        unsafe {
            let storage = &raw mut (*own).storage;
            let kind = TICKLESS_PRECISE;
            let init = tickless_timer_init(storage, timers, kind, Some(free), own.cast());
            assert_eq!(init, Status::Ok);
            assert_eq!(tickless_timer_start(storage, 0), Status::Ok);
        }
        assert!(*gone.lock().expect("no panic"), "the timer fired inside the arming");
        drop(driver.lock().expect("no panic").take());
        // SAFETY: the set was made above, and its timers are destroyed.
        assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
    }
}
