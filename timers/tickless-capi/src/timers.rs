//! Sets of timers: starting, stopping, and reading their clock.

use crate::annotate;
use crate::object::{Marked, create, destroy, handles, result_of, value};
use crate::options::Options;
use crate::sized;
use crate::status::{Outcome, Status, failure};
use std::time::Duration;
use tickless::{VirtualTime, slots};

/// Later than every deadline: a timer that is armed for this time never fires.
pub const TICKLESS_NEVER: u64 = u64::MAX;

/// A set of timers, with a base and a driver thread for each CPU. Opaque.
///
/// All threads may use it. In the child of a fork its timers count as shut down: none fires, arming
/// returns `TICKLESS_SHUT`, a cancel reports an idle timer, and destroying and stopping do not
/// wait. A child can start timers of its own. A callback that forks must not return in the child.
pub struct TimerSet(Marked<Set>);

/// The timers of a set.
pub(crate) struct Set {
    pub(crate) timers: tickless::Timers,
    /// Advances the clock of a virtual set; `None` for other sets.
    pub(crate) time: Option<VirtualTime>,
    /// How many of the set's users (such as timers) belong to the library, and not to the program.
    own_users: usize,
}

handles! {
    TimerSet(Set), 0x7469_636b_6c65_7373,
        "set of timers; pass a pointer from tickless_timers_start", value => &'a Set;
}

impl Set {
    pub(crate) fn new(timers: tickless::Timers, time: Option<VirtualTime>) -> Set {
        annotate::find();
        let own_users = slots::users(&timers);
        Set { timers, time, own_users }
    }

    /// Returns the number of timers and limiters that still exist in this set. If there are any,
    /// first waits briefly for them to disappear: a limiter that was destroyed while its refill
    /// callback ran exists until that callback has returned.
    #[expect(clippy::disallowed_methods, reason = "no event reports that a user has gone")]
    fn users(&self) -> usize {
        let users = || slots::users(&self.timers).saturating_sub(self.own_users);
        for _ in 0..PATIENCE_MS {
            if users() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        users()
    }
}

const PATIENCE_MS: u32 = 100;

#[inline]
pub(crate) fn duration(ns: i64) -> Outcome<Duration> {
    match u64::try_from(ns) {
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(_) => Err(negative(ns)),
    }
}

#[cold]
#[inline(never)]
pub(crate) fn negative(ns: i64) -> Status {
    failure(Status::OutOfRange, format_args!("{ns} ns is negative; pass 0 or more"))
}

/// Converts a period in nanoseconds, which must be positive.
pub(crate) fn period(ns: i64) -> Outcome<Duration> {
    match duration(ns)? {
        Duration::ZERO => Err(failure(Status::OutOfRange, "the period is 0; pass at least 1 ns")),
        period => Ok(period),
    }
}

/// Starts a set of timers. `options` may be null for the defaults; `timers` receives the set.
/// Blocks for about half a millisecond to calibrate the clock. The driver threads inherit the
/// caller's signal mask.
///
/// Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_THREAD`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_start(
    options: *const Options,
    timers: *mut *mut TimerSet,
) -> Status {
    create(timers, || {
        let builder = sized::read(options)?.builder()?;
        let started = builder.start().map_err(|error| failure(Status::NoThread, error))?;
        Ok(Set::new(started, None))
    })
}

/// Stops a set of timers and frees it; does nothing if the pointer is null. Waits until the driver
/// threads have ended.
///
/// Errors: `TICKLESS_BUSY`, returned after 100 ms, if one of its timers is still initialised, or
/// one of its limiters or throttles still exists: destroy those first. `TICKLESS_WOULD_DEADLOCK`
/// inside a callback of one of its timers. After an error the set keeps running. In the child of a
/// fork it always succeeds, because timers that another thread of the parent owns are never
/// destroyed there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_stop(timers: *mut TimerSet) -> Status {
    destroy(timers, |set| {
        if slots::is_forked_child(&set.timers) {
            // The users of other threads of the parent never disappear here. None needs the handle.
            return Ok(());
        }
        if slots::is_in_callback_of(&set.timers) {
            let what = "a callback of these timers cannot stop them, because it would wait \
                            for itself; stop them in another thread";
            return Err(failure(Status::WouldDeadlock, what));
        }
        match set.users() {
            0 => Ok(()),
            users => {
                let what = format!(
                    "{users} timers, limiters or throttles still exist; destroy them first"
                );
                Err(failure(Status::Busy, what))
            }
        }
    })
}

/// Reads the current time, in nanoseconds, on the clock that deadlines refer to. It never goes
/// back, is close to `CLOCK_MONOTONIC`, and does not advance while the system is suspended. Costs
/// about 11 ns where the CPU's counter is reliable; no lock, no system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_now(timers: *const TimerSet, now_ns: *mut u64) -> Status {
    result_of(timers, now_ns, |set| Ok(set.timers.now().as_nanos()))
}
