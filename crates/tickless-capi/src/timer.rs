//! Timers in their caller's memory, of both families.

use crate::fired::{CallC, Callback, window};
use crate::status::{Outcome, Status, answer, entry, failure, put};
use crate::storage::{Kind, Stored, place};
use crate::timers::{TimerSet, duration, set};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use tickless::callback::Cancel;
use tickless::callback::StartError;
use tickless::callback::Started;
use tickless::driver::CpuId;
use tickless::slots::{self, CoarseSlot, PreciseSlot};
use tickless::time::Instant;
use tickless::{CancelError, HrTimer, Timeout};

/// `kind`: a timeout, on a timer wheel. Never early; late by at most 13 % of its distance
/// and a tick. Arming, pushing out and cancelling take some nanoseconds however many are pending.
pub const TICKLESS_COARSE: u32 = 0;
/// `kind`: a high-resolution timer, in a sorted queue. Never early; late by what waking a thread
/// takes, and by its slack.
pub const TICKLESS_PRECISE: u32 = 1;
/// `kind`, coarse only, with `|`: fires with the first event of its base after its deadline, and
/// never causes one.
pub const TICKLESS_DEFERRABLE: u32 = 256;
/// `kind`, precise only, with `|`: its callback runs in the expiry thread of its base, if there is
/// one (see `deferral` in the options).
pub const TICKLESS_DEFERRED: u32 = 512;
/// `kind`, with `|`: on the base whose number stands in the upper 16 bits. Use `TICKLESS_PIN(n)`.
pub const TICKLESS_PINNED: u32 = 1024;

/// Memory for one timer, anywhere: on the stack, in a struct, from `malloc`. Opaque.
///
/// Set it to zero before its first `tickless_timer_init`, or misuse of it may not be noticed. From
/// init to destroy it must stay where it is and must not be written. 128 bytes, of which timers
/// that are used much had best begin at a multiple of 64.
#[repr(C)]
#[derive(Debug)]
pub struct TimerStorage {
    /// Not to be touched.
    opaque: [u64; 16],
}

/// What a cancel found.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelFound {
    /// The timer was neither pending nor running.
    Idle = 0,
    /// It was pending; that arming will not fire.
    Pending = 1,
    /// Its callback was running.
    Running = 2,
}

const KIND: Kind = Kind { mark: 0x9d3c_1b57_6af2_e841, name: "timer" };

/// What stands in a timer's storage.
struct Timer {
    any: Any,
    slot: UnsafeCell<MaybeUninit<SlotOfAny>>,
}

enum Any {
    Coarse(Timeout),
    Precise(HrTimer),
}

union SlotOfAny {
    _coarse: ManuallyDrop<CoarseSlot<CallC>>,
    _precise: ManuallyDrop<PreciseSlot<CallC>>,
}

/// A timer behind a caller's pointer: a copy of what leads to it, since its callback may destroy it
/// while the thread that armed it is still on its way out.
///
/// # Safety
/// `timer` is null or leads to storage, and nobody destroys it while the result is used, but for
/// its callback once this thread has armed it.
unsafe fn live(timer: *const TimerStorage) -> Outcome<ManuallyDrop<Any>> {
    let place = place::<Timer, _>(timer, &KIND)?;
    // SAFETY: as promised.
    let value = unsafe { Stored::value(place, &KIND) }?;
    // SAFETY: an initialised timer; what is in its slot is not part of this. The copy is not
    // dropped.
    Ok(ManuallyDrop::new(unsafe { (&raw const (*value.as_ptr()).any).read() }))
}

/// Runs an expression on a timer of either family.
macro_rules! either {
    ($any:expr, $timer:ident => $body:expr) => {
        match &*$any {
            Any::Coarse($timer) => $body,
            Any::Precise($timer) => $body,
        }
    };
}

/// Makes a timer, not armed, in its caller's memory; allocates nothing.
///
/// `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`, and further choices with `|`. When the timer
/// fires, `callback` is called with `data`, on a thread of the library.
///
/// Errors: `TICKLESS_NULL_POINTER` (for `timer`, `timers`, `callback`), `TICKLESS_MISALIGNED`,
/// `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`, `TICKLESS_NO_SUCH_BASE`.
///
/// # Safety
/// `timer` leads to storage that nobody else uses now, and that outlives the timer; `timers` came
/// from `tickless_timers_start` and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_init(
    timer: *mut TimerStorage,
    timers: *const TimerSet,
    kind: u32,
    callback: Callback,
    data: *mut c_void,
) -> Status {
    entry(|| {
        let place = place::<Timer, _>(timer, &KIND)?;
        // SAFETY: as promised.
        let timers = &unsafe { set(timers) }?.timers;
        let call = CallC::new(callback, data)?;
        let choice = Choice::new(kind, timers)?;
        // SAFETY: as promised.
        unsafe { Stored::fill(place, &KIND, |value| choice.make(value, timers, call)) }
    })
}

/// What a `kind` says.
#[derive(Clone, Copy)]
struct Choice {
    kind: u32,
    base: Option<CpuId>,
}

impl Choice {
    fn new(kind: u32, timers: &tickless::Timers) -> Outcome<Choice> {
        let (family, more) = (kind & 255, kind & 0xff00 & !TICKLESS_PINNED);
        let allowed = match family {
            TICKLESS_COARSE => TICKLESS_DEFERRABLE,
            TICKLESS_PRECISE => TICKLESS_DEFERRED,
            _ => return Err(crate::options::unknown("kind")),
        };
        let (is_pinned, base) = (kind & TICKLESS_PINNED != 0, (kind >> 16) as u16);
        if more & !allowed != 0 || (!is_pinned && base != 0) {
            return Err(crate::options::unknown("kind"));
        }
        let bases = slots::bases(timers);
        if is_pinned && usize::from(base) >= bases {
            let what = format_args!("there is no base {base} among {bases}");
            return Err(failure(Status::NoSuchBase, what));
        }
        Ok(Choice { kind, base: is_pinned.then_some(CpuId(base)) })
    }

    fn make(self, value: NonNull<Timer>, timers: &tickless::Timers, call: CallC) -> Outcome {
        // SAFETY: `fill` hands out room for a timer, whose slot is given back before it goes.
        unsafe {
            let slot = NonNull::new_unchecked((&raw mut (*value.as_ptr()).slot).cast::<()>());
            let any = if self.kind & 255 == TICKLESS_COARSE {
                let timer = slots::timeout(timers, slot.cast(), call);
                let has_flag = self.kind & TICKLESS_DEFERRABLE != 0;
                let timer = if has_flag { timer.deferrable() } else { timer };
                Any::Coarse(match self.base {
                    Some(base) => timer.pinned(base),
                    None => timer,
                })
            } else {
                let timer = slots::hrtimer(timers, slot.cast(), call);
                let has_flag = self.kind & TICKLESS_DEFERRED != 0;
                let timer = if has_flag { timer.deferred() } else { timer };
                Any::Precise(match self.base {
                    Some(base) => timer.pinned(base),
                    None => timer,
                })
            };
            (&raw mut (*value.as_ptr()).any).write(any);
        }
        Ok(())
    }
}

fn started(result: Result<Started, StartError>) -> Outcome {
    match result {
        Ok(_) => Ok(()),
        Err(error @ StartError::NoSuchBase(_)) => Err(failure(Status::NoSuchBase, error)),
        Err(error) => Err(failure(Status::Shut, error)),
    }
}

/// Arms a timer, or arms it anew, earlier or later, to fire `after_ns` from now. Allocates
/// nothing; makes no system call unless the deadline comes before everything that a sleeping
/// driver waits for. Durations up to 292 years; deadlines beyond the clock's end never come.
///
/// If somebody is in a waiting cancel of the timer while its callback runs, this arming is
/// cancelled too, and that is no error.
///
/// Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`, and those of all calls that take a timer:
/// `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start(timer: *const TimerStorage, after_ns: i64) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        let after = duration(after_ns)?;
        started(either!(any, timer => timer.start(after)))
    })
}

/// The same, but it may be late by `slack_ns` to share a wakeup with others. Precise timers only.
///
/// Errors: as `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a coarse one.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_slack(
    timer: *const TimerStorage,
    after_ns: i64,
    slack_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        let (after, slack) = (duration(after_ns)?, duration(slack_ns)?);
        let Any::Precise(timer) = &*any else { return Err(precise_only()) };
        started(timer.start_with_slack(after, slack))
    })
}

#[cold]
fn precise_only() -> Status {
    failure(Status::Unsupported, "a coarse timer has no window; make it TICKLESS_PRECISE")
}

/// Arms a timer, or arms it anew, for a point in time on the timers' clock. One that has passed
/// fires at once; `TICKLESS_NEVER` never comes.
///
/// Errors: `TICKLESS_SHUT`, and those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_at(
    timer: *const TimerStorage,
    deadline_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        started(either!(any, timer => timer.start_at(Instant::from_nanos(deadline_ns))))
    })
}

/// Arms a timer, or arms it anew, to fire within a window: not before `soft_ns`; from then on with
/// any event of its base, and at `hard_ns` with one of its own. Precise timers only.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins, `TICKLESS_SHUT`,
/// `TICKLESS_UNSUPPORTED` for a coarse one, and those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_start_range(
    timer: *const TimerStorage,
    soft_ns: u64,
    hard_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        let (soft, hard) = window(soft_ns, hard_ns)?;
        let Any::Precise(timer) = &*any else { return Err(precise_only()) };
        started(timer.start_range(soft, hard))
    })
}

/// Arms a timer; if it is pending, only makes it earlier, never later. Coarse timers only.
///
/// Errors: as `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a precise one.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_reduce(
    timer: *const TimerStorage,
    after_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        let after = duration(after_ns)?;
        let Any::Coarse(timer) = &*any else {
            let what = "only a coarse timer can be reduced; start the precise one";
            return Err(failure(Status::Unsupported, what));
        };
        started(timer.reduce(after))
    })
}

/// Cancels a timer, unless its callback is running: then this says so and changes nothing. Never
/// waits; no lock if the timer is idle. `found` may be null, as for all cancels.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_try_cancel(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(Ok(either!(any, timer => timer.try_cancel())), found) }
    })
}

/// Cancels a timer without waiting for its callback; no lock if it is idle.
/// `TICKLESS_CANCEL_RUNNING` says that the callback may still be at work, and may still ask for a
/// restart.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(Ok(either!(any, timer => timer.cancel())), found) }
    })
}

/// Cancels a timer and waits until its callback runs nowhere: then what the callback wrote can be
/// seen, and what it uses can go. `found` says what it was when this came. Waits some microseconds
/// awake, then asleep; an arming that comes meanwhile, the callback's own included, is cancelled
/// too. Do not hold a lock that the callback takes: such a circle is not seen, and hangs.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in the timer's own callback, or in one that its callback
/// waits for; the timer has been cancelled, `found` says so, and its callback may be running. And
/// those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel_sync(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(either!(any, timer => timer.cancel_sync()), found) }
    })
}

/// The same, a little cheaper, for a timer that nobody arms again while its callback runs, the
/// callback included.
///
/// Errors: as `tickless_timer_cancel_sync`; `TICKLESS_NOT_SINGLE_SHOT` if it was armed after all:
/// it has been cancelled, and its callback is over.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_cancel_single_shot(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(either!(any, timer => timer.cancel_single_shot()), found) }
    })
}

/// Cancels a timer for good and waits as `tickless_timer_cancel_sync` does: every later arming is
/// `TICKLESS_SHUT`, whoever tries. The storage stays initialised; destroy it all the same.
///
/// Errors: as `tickless_timer_cancel_sync`; the timer is shut down in any case.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_shutdown_sync(
    timer: *const TimerStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(either!(any, timer => timer.shutdown_sync()), found) }
    })
}

/// Names a timer.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn set_label(timer: *const TimerStorage, label: &'static str) -> Outcome {
    // SAFETY: as promised.
    let any = unsafe { live(timer) }?;
    either!(any, timer => timer.relabel(label));
    Ok(())
}

/// Tells a cancel's caller what it found.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn cancelled(
    result: Result<Cancel, CancelError>,
    place: *mut CancelFound,
) -> Outcome {
    let found = match result {
        Ok(Cancel::Idle) => CancelFound::Idle,
        Ok(Cancel::Pending) => CancelFound::Pending,
        Ok(Cancel::Running) | Err(_) => CancelFound::Running,
    };
    // SAFETY: as promised.
    unsafe { put(place, found) };
    result.map(drop).map_err(refused)
}

#[cold]
pub(crate) fn refused(error: CancelError) -> Status {
    let status = match error {
        CancelError::NotSingleShot => Status::NotSingleShot,
        _ => Status::WouldDeadlock,
    };
    failure(status, error)
}

/// Is the timer armed? May be out of date as soon as it is known.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `is_pending` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_is_pending(
    timer: *const TimerStorage,
    is_pending: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { answer(is_pending, either!(any, timer => timer.is_pending())) }
    })
}

/// Is the timer armed, or its callback running? Never a false no; a yes may be out of date.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `is_active` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_is_active(
    timer: *const TimerStorage,
    is_active: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let any = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { answer(is_active, either!(any, timer => timer.is_active())) }
    })
}

/// Ends a timer: shuts it down, waits for its callback as `tickless_timer_cancel_sync` does, and
/// gives the memory back, to be freed or initialised anew.
///
/// In the timer's own callback it does not wait, and is no error: the library does not touch the
/// memory any more, so a callback may destroy its timer and free it. Nobody else may be using the
/// timer at that moment.
///
/// Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this one's callback waits
/// for: the timer is shut down, its memory still in use; destroy it again later. And those of all
/// calls that take a timer.
///
/// # Safety
/// `timer` leads to storage; no other thread uses the timer now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timer_destroy(timer: *mut TimerStorage) -> Status {
    entry(|| {
        let place = place::<Timer, _>(timer, &KIND)?;
        let end = |value: NonNull<Timer>| {
            // SAFETY: an initialised timer, which nobody else uses: it is dropped once.
            let mut any = unsafe { (&raw mut (*value.as_ptr()).any).read() };
            // SAFETY: it came from a slot, and is dropped at once after a success.
            let given = unsafe {
                match &mut any {
                    Any::Coarse(timer) => timer.give_back(),
                    Any::Precise(timer) => timer.give_back(),
                }
            };
            if let Err(error) = given {
                // It stays in its storage, whose copy this was.
                core::mem::forget(any);
                return Err(refused(error));
            }
            Ok(())
        };
        // SAFETY: as promised.
        unsafe { Stored::empty(place, &KIND, end) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fired::Expiry;
    use crate::timers::tickless_timers_stop;
    use std::sync::{Arc, Mutex};
    use tickless::driver::{Callback, EventLoopDriver};

    /// A timer that its callback destroys and frees.
    struct Own {
        storage: TimerStorage,
        gone: Arc<Mutex<bool>>,
    }

    /// # Safety
    /// `data` is an `Own` whose timer's callback this is.
    unsafe extern "C-unwind" fn free(_: *mut Expiry, data: *mut c_void) {
        // SAFETY: as promised; nobody uses it after this.
        unsafe {
            let own = data.cast::<Own>();
            assert_eq!(tickless_timer_destroy(&raw mut (*own).storage), Status::Ok);
            let own = Box::from_raw(own);
            *own.gone.lock().expect("nobody panics") = true;
        }
    }

    /// Goal: an arming touches nothing of its timer once that may fire: its callback may free it.
    /// Method: a loop that is run as soon as it is told of the deadline, which is inside the
    /// arming. Under Miri a reference that is still held to memory that goes is seen too.
    #[test]
    fn a_timer_may_go_while_it_is_being_armed() {
        let driver = Arc::new(Mutex::new(None::<EventLoopDriver<Callback>>));
        let run = Arc::clone(&driver);
        let on_rearm = move |_| {
            let mut driver = run.lock().expect("nobody panics");
            assert_eq!(driver.as_mut().expect("a loop").run(), 1, "what is armed is due");
        };
        let (timers, mut made) = tickless::Timers::builder().start_in_loop_with(on_rearm);
        assert_eq!(made.next_event(), None);
        *driver.lock().expect("nobody panics") = Some(made);
        let (timers, gone) = (TimerSet::hand_out(timers), Arc::<Mutex<bool>>::default());
        let storage = TimerStorage { opaque: [0; 16] };
        let own = Box::into_raw(Box::new(Own { storage, gone: Arc::clone(&gone) }));
        // SAFETY: the callback frees it, which is the last use; the set is stopped after that.
        unsafe {
            let storage = &raw mut (*own).storage;
            let kind = TICKLESS_PRECISE;
            let init = tickless_timer_init(storage, timers, kind, Some(free), own.cast());
            assert_eq!(init, Status::Ok);
            assert_eq!(tickless_timer_start(storage, 0), Status::Ok);
        }
        assert!(*gone.lock().expect("nobody panics"), "it has fired inside the arming");
        drop(driver.lock().expect("nobody panics").take());
        // SAFETY: handed out above; its timers are destroyed.
        assert_eq!(unsafe { tickless_timers_stop(timers) }, Status::Ok);
    }
}
