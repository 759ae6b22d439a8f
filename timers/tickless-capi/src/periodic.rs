//! Periodic timers in their caller's memory.

use crate::fired::{CCallback, Callback, Expiry};
use crate::object::{Object, on, result_of};
use crate::options::unknown;
use crate::sized::{self, Grows};
use crate::status::{Outcome, Status, entry, failure};
use crate::storage::{self, Storage};
use crate::timer::{CancelFound, cancel_with};
use crate::timers::{TimerSet, duration};
use core::ffi::c_void;
use std::time::Duration;
use tickless::callback::StartError;
use tickless::periodic::{Missed, PeriodError, Phase};
use tickless::slots::{self, PeriodSlot};
use tickless::time::Instant;
use tickless::{CancelError, Periodic};

/// `missed`: missed periods are skipped and counted. The phase stays.
pub const TICKLESS_SKIP: u32 = 0;
/// `missed`: the callback runs once for each missed period, one run directly after another. The
/// phase stays.
pub const TICKLESS_BURST: u32 = 1;
/// `missed`: the next expiry is a full period after the time at which the timer fired. The phase
/// moves.
pub const TICKLESS_DELAY: u32 = 2;

/// `phase`: none; the first expiry is one period after the start.
pub const TICKLESS_PHASE_NONE: u32 = 0;
/// `phase`: expiries at multiples of the period on the clock, so that all such timers share
/// wakeups.
pub const TICKLESS_PHASE_ALIGNED: u32 = 1;
/// `phase`: expiries as far as possible from those of other timers with the same period.
pub const TICKLESS_PHASE_SPREAD: u32 = 2;
/// `phase`: random; `phase_value` is the seed.
pub const TICKLESS_PHASE_RANDOM: u32 = 3;
/// `phase`: expiries `phase_value` nanoseconds after the multiples of the period. `phase_value`
/// must be less than the period.
pub const TICKLESS_PHASE_FIXED: u32 = 4;

/// How a periodic timer behaves. Set the whole struct to zero, then `size` to
/// `sizeof(tickless_periodic_options_t)`; zero selects the default of each field.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeriodicOptions {
    /// `sizeof(tickless_periodic_options_t)`.
    pub size: usize,
    /// How late each expiry is allowed to be, in nanoseconds, to share a wakeup with other timers.
    pub slack_ns: u64,
    /// Used with `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
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
}

pub(crate) fn phase(number: u32, value: u64) -> Outcome<Option<Phase>> {
    let phase = match (number, value) {
        (TICKLESS_PHASE_NONE, 0) => return Ok(None),
        (TICKLESS_PHASE_ALIGNED, 0) => Phase::Aligned,
        (TICKLESS_PHASE_SPREAD, 0) => Phase::Spread,
        (TICKLESS_PHASE_RANDOM, seed) => Phase::Random(seed),
        (TICKLESS_PHASE_FIXED, phase) => Phase::Fixed(Duration::from_nanos(phase)),
        _ => return Err(unknown("phase")),
    };
    Ok(Some(phase))
}

/// Memory for one periodic timer, under the rules of `tickless_timer_t`; 320 bytes. Opaque.
#[repr(C)]
#[derive(Debug)]
pub struct PeriodicStorage {
    /// Private to the library.
    opaque: [u64; 40],
}

impl Storage for PeriodicStorage {
    type Timer = Periodic;
    type Slot = PeriodSlot<CCallback<Expiry>>;
    const MARK: u64 = 0x43f8_d6a1_907e_5c2b;
    const NAME: &'static str = "periodic timer";

    unsafe fn give_back(timer: &mut Periodic) -> Result<(), CancelError> {
        // SAFETY: as for this function. `tickless_periodic_init` creates the timer in a slot.
        unsafe { timer.give_back() }
    }
}

/// Initialises a periodic timer in its caller's memory, without starting it. Allocates nothing;
/// starting a timer allocates only to choose a phase.
///
/// The timer does not drift: each expiry is computed from the previous deadline, not from the time
/// at which a callback ran. `options` may be null for the defaults. A thread of the library calls
/// `callback` with `data` at each expiry; in the callback, `tickless_fired_info` reports how many
/// expiries were missed, and `tickless_fired_stop` stops the timer.
///
/// Errors: `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_init(
    timer: *mut PeriodicStorage,
    timers: *const TimerSet,
    options: *const PeriodicOptions,
    callback: Callback,
    data: *mut c_void,
) -> Status {
    entry(|| {
        storage::init(timer, |slot| {
            let timers = &TimerSet::lend(timers)?.timers;
            let call = CCallback::new(callback, data)?;
            let options = sized::read(options)?;
            let (missed, phase) = (options.missed()?, phase(options.phase, options.phase_value)?);
            // `give_back` is called before the slot is freed or moved, as `periodic` requires.
            let timer = slots::periodic(timers, slot, missed, call);
            let timer = timer.slack(Duration::from_nanos(options.slack_ns));
            Ok(match phase {
                Some(phase) => timer.phase(phase),
                None => timer,
            })
        })
    })
}

/// Converts the result of an arming to the status for C.
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

/// Starts or restarts a periodic timer. The first expiry is one period from now, or where its phase
/// places it; further ones follow every `period_ns`.
///
/// Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive, or the phase is not less than the
/// period; `TICKLESS_SHUT` in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_start(
    timer: *const PeriodicStorage,
    period_ns: i64,
) -> Status {
    on(timer, |timer| started(timer.start(duration(period_ns)?)))
}

/// Starts a periodic timer with its first expiry at a point in time. This sets its phase and
/// overrides the phase in its options.
///
/// Errors: those of `tickless_periodic_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_start_at(
    timer: *const PeriodicStorage,
    first_ns: u64,
    period_ns: i64,
) -> Status {
    on(timer, |timer| {
        let first = Instant::from_nanos(first_ns);
        started(timer.start_at(first, duration(period_ns)?))
    })
}

/// Stops a periodic timer without waiting for its callback. If the callback is running, that run is
/// the last, regardless of what it requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_cancel(
    timer: *const PeriodicStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |timer| Ok(timer.cancel()))
}

/// Stops a periodic timer and waits until no thread runs its callback, as
/// `tickless_timer_cancel_sync` does, with its errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_cancel_sync(
    timer: *const PeriodicStorage,
    found: *mut CancelFound,
) -> Status {
    cancel_with(timer, found, |timer| timer.cancel_sync())
}

/// Reports whether the timer has been started and not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_is_active(
    timer: *const PeriodicStorage,
    is_active: *mut bool,
) -> Status {
    result_of(timer, is_active, |timer| Ok(timer.is_active()))
}

/// Reports the timer's phase: how long after the multiples of its period it expires, in
/// nanoseconds; `TICKLESS_NEVER` unless it was started with a phase.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_phase_offset(
    timer: *const PeriodicStorage,
    place_ns: *mut u64,
) -> Status {
    result_of(timer, place_ns, |timer| {
        let offset = timer.phase_offset();
        Ok(offset.map_or(u64::MAX, |offset| offset.as_nanos() as u64))
    })
}

/// Destroys a periodic timer, as `tickless_timer_destroy` does, with its errors. A callback may
/// destroy its own timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_periodic_destroy(timer: *mut PeriodicStorage) -> Status {
    entry(|| storage::destroy(timer))
}
