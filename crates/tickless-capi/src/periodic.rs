//! Periodic timers in their caller's memory.

use crate::fired::{CallC, Callback};
use crate::options::unknown;
use crate::sized::{self, Grows};
use crate::status::{Outcome, Status, answer, entry, failure};
use crate::storage::{Kind, Stored, place};
use crate::timer::{CancelFound, cancelled, refused};
use crate::timers::{TimerSet, duration, set};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use std::time::Duration;
use tickless::Periodic;
use tickless::callback::StartError;
use tickless::periodic::{Missed, PeriodError, Phase};
use tickless::slots::{self, PeriodSlot};
use tickless::time::Instant;

/// `missed`: periods that were missed are skipped, and counted. The phase stays.
pub const TICKLESS_SKIP: u32 = 0;
/// `missed`: each is made up for at once, one callback after another. The phase stays.
pub const TICKLESS_BURST: u32 = 1;
/// `missed`: the next expiry is a full period from now. The phase moves.
pub const TICKLESS_DELAY: u32 = 2;

/// `phase`: none; the first expiry is a period from the start.
pub const TICKLESS_PHASE_NONE: u32 = 0;
/// `phase`: multiples of the period on the clock, so that all such timers share wakeups.
pub const TICKLESS_PHASE_ALIGNED: u32 = 1;
/// `phase`: as far as can be from other timers of the same period.
pub const TICKLESS_PHASE_SPREAD: u32 = 2;
/// `phase`: by chance; `phase_value` is the seed.
pub const TICKLESS_PHASE_RANDOM: u32 = 3;
/// `phase`: `phase_value` nanoseconds behind the multiples of the period; below one period.
pub const TICKLESS_PHASE_FIXED: u32 = 4;

/// How a periodic timer behaves. Set all of it to zero, then `size` to
/// `sizeof(tickless_periodic_options_t)`; zero is the default everywhere.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeriodicOptions {
    /// `sizeof(tickless_periodic_options_t)`.
    pub size: usize,
    /// By how much each expiry may be late to share a wakeup with others, in nanoseconds.
    pub slack_ns: u64,
    /// See `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
    pub phase_value: u64,
    /// One of `TICKLESS_SKIP`, `TICKLESS_BURST`, `TICKLESS_DELAY`.
    pub missed: u32,
    /// One of `TICKLESS_PHASE_...`.
    pub phase: u32,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for PeriodicOptions {}

impl PeriodicOptions {
    fn missed(&self) -> Outcome<Missed> {
        match self.missed {
            TICKLESS_SKIP => Ok(Missed::Skip),
            TICKLESS_BURST => Ok(Missed::Burst),
            TICKLESS_DELAY => Ok(Missed::Delay),
            _ => Err(unknown("way to treat missed periods")),
        }
    }

    fn phase(&self) -> Outcome<Option<Phase>> {
        let phase = match (self.phase, self.phase_value) {
            (TICKLESS_PHASE_NONE, 0) => return Ok(None),
            (TICKLESS_PHASE_ALIGNED, 0) => Phase::Aligned,
            (TICKLESS_PHASE_SPREAD, 0) => Phase::Spread,
            (TICKLESS_PHASE_RANDOM, seed) => Phase::Random(seed),
            (TICKLESS_PHASE_FIXED, phase) => Phase::Fixed(Duration::from_nanos(phase)),
            _ => return Err(unknown("phase")),
        };
        Ok(Some(phase))
    }
}

/// Memory for one periodic timer: as `tickless_timer_t`, but 320 bytes. Opaque.
#[repr(C)]
#[derive(Debug)]
pub struct PeriodicStorage {
    /// Not to be touched.
    opaque: [u64; 40],
}

const KIND: Kind = Kind { mark: 0x43f8_d6a1_907e_5c2b, name: "periodic timer" };

/// What stands in a periodic timer's storage.
struct Timer {
    periodic: Periodic,
    slot: UnsafeCell<MaybeUninit<PeriodSlot<CallC>>>,
}

/// A periodic timer behind a caller's pointer: a copy of what leads to it.
///
/// # Safety
/// `timer` is null or leads to storage, and nobody destroys it while the result is used.
unsafe fn live(timer: *const PeriodicStorage) -> Outcome<ManuallyDrop<Periodic>> {
    let place = place::<Timer, _>(timer, &KIND)?;
    // SAFETY: as promised.
    let value = unsafe { Stored::value(place, &KIND) }?;
    // SAFETY: an initialised timer; what is in its slot is not part of this. The copy is not
    // dropped.
    Ok(ManuallyDrop::new(unsafe { (&raw const (*value.as_ptr()).periodic).read() }))
}

/// Makes a periodic timer, not started, in its caller's memory. Allocates nothing, and starting
/// one allocates only to choose a phase.
///
/// It does not drift: an expiry is computed from the last one's deadline, never from when a
/// callback happened to run. `options` may be null for the defaults. `callback` is called with
/// `data` at each expiry, on a thread of the library; `tickless_fired_info` tells it how many
/// expiries were missed, `tickless_fired_stop` ends it.
///
/// Errors: `TICKLESS_NULL_POINTER` (for `timer`, `timers`, `callback`), `TICKLESS_MISALIGNED`,
/// `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `timer` leads to storage that nobody else uses now, and that outlives the timer; `timers` came
/// from `tickless_timers_start` and was not stopped; `options` is null or leads to as many bytes
/// as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_init(
    timer: *mut PeriodicStorage,
    timers: *const TimerSet,
    options: *const PeriodicOptions,
    callback: Callback,
    data: *mut c_void,
) -> Status {
    entry(|| {
        let place = place::<Timer, _>(timer, &KIND)?;
        // SAFETY: as promised.
        let timers = &unsafe { set(timers) }?.timers;
        let call = CallC::new(callback, data)?;
        // SAFETY: as promised.
        let options = unsafe { sized::read(options) }?;
        let (missed, phase) = (options.missed()?, options.phase()?);
        let make = |value: NonNull<Timer>| {
            // SAFETY: `fill` hands out room for a timer, whose slot is given back before it goes.
            unsafe {
                let slot = NonNull::new_unchecked((&raw mut (*value.as_ptr()).slot).cast());
                let timer = slots::periodic(timers, slot, missed, call);
                let timer = timer.slack(Duration::from_nanos(options.slack_ns));
                let timer = match phase {
                    Some(phase) => timer.phase(phase),
                    None => timer,
                };
                (&raw mut (*value.as_ptr()).periodic).write(timer);
            }
            Ok(())
        };
        // SAFETY: as promised.
        unsafe { Stored::fill(place, &KIND, make) }
    })
}

fn started(result: Result<(), PeriodError>) -> Outcome {
    result.map_err(|error| {
        let status = match error {
            PeriodError::Start(StartError::NoSuchBase(_)) => Status::NoSuchBase,
            PeriodError::Start(_) => Status::Shut,
            _ => Status::OutOfRange,
        };
        failure(status, error)
    })
}

/// Starts a periodic timer, or starts it anew: first a period from now, or where its phase puts
/// it, then every `period_ns`.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive, or the phase not below it;
/// `TICKLESS_SHUT` in the child of a fork; and those of all calls that take a timer:
/// `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_start(
    timer: *const PeriodicStorage,
    period_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        started(timer.start(duration(period_ns)?))
    })
}

/// Starts a periodic timer at a point in time, which fixes its phase, whatever its options say.
///
/// Errors: as `tickless_periodic_start`.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_start_at(
    timer: *const PeriodicStorage,
    first_ns: u64,
    period_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        started(timer.start_at(Instant::from_nanos(first_ns), duration(period_ns)?))
    })
}

/// Stops a periodic timer without waiting for its callback: one that is running now is the last,
/// whatever it asks for. `found` may be null.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_cancel(
    timer: *const PeriodicStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(Ok(timer.cancel()), found) }
    })
}

/// Stops a periodic timer and waits until its callback runs nowhere; as
/// `tickless_timer_cancel_sync`, with its errors.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_cancel_sync(
    timer: *const PeriodicStorage,
    found: *mut CancelFound,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { cancelled(timer.cancel_sync(), found) }
    })
}

/// Is the timer running its periods?
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `is_active` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_is_active(
    timer: *const PeriodicStorage,
    is_active: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe { answer(is_active, timer.is_active()) }
    })
}

/// Names a timer.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn set_label(timer: *const PeriodicStorage, label: &'static str) -> Outcome {
    // SAFETY: as promised.
    unsafe { live(timer) }?.relabel(label);
    Ok(())
}

/// How far behind the multiples of its period the timer expires, in nanoseconds;
/// `TICKLESS_NEVER` unless it was started with a phase.
///
/// Errors: those of all calls that take a timer.
///
/// # Safety
/// `timer` leads to storage that nobody destroys meanwhile; `place_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_phase_offset(
    timer: *const PeriodicStorage,
    place_ns: *mut u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let timer = unsafe { live(timer) }?;
        // SAFETY: as promised.
        unsafe {
            answer(place_ns, timer.phase_offset().map_or(u64::MAX, |place| place.as_nanos() as u64))
        }
    })
}

/// Ends a periodic timer; as `tickless_timer_destroy`, with its errors, and like that also in the
/// timer's own callback.
///
/// # Safety
/// `timer` leads to storage; no other thread uses the timer now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_destroy(timer: *mut PeriodicStorage) -> Status {
    entry(|| {
        let place = place::<Timer, _>(timer, &KIND)?;
        let end = |value: NonNull<Timer>| {
            // SAFETY: an initialised timer, which nobody else uses: it is dropped once.
            let mut periodic = unsafe { (&raw mut (*value.as_ptr()).periodic).read() };
            // SAFETY: it came from a slot, and is dropped at once after a success.
            let given = unsafe { periodic.give_back() };
            if let Err(error) = given {
                // It stays in its storage, whose copy this was.
                core::mem::forget(periodic);
                return Err(refused(error));
            }
            Ok(())
        };
        // SAFETY: as promised.
        unsafe { Stored::empty(place, &KIND, end) }
    })
}
