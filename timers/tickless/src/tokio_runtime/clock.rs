//! The clock of a tokio runtime, as the clock of its timers.
//!
//! Only a current-thread runtime can be paused. Tokio has no function that returns whether a clock
//! was paused, but a comparison shows it: a paused clock falls behind the system's clock, and the
//! two agree again only by chance.

use crate::platform::runtime::Runtime;
use crate::platform::system_clock::system_now;
use crate::time::{from_std, to_std};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time;
use tickless_core::time::Ns;
use tokio::runtime::{EnterGuard, Handle, RuntimeFlavor};
use tokio::task::unconstrained;

/// The largest difference between tokio's clock and the system's that is taken for the time between
/// their two readings. If they differ by more, `check` compares them exactly.
const APART: time::Duration = time::Duration::from_micros(20);

/// The time on the clock of a runtime that has ended: every timer is due.
pub(crate) const END: Ns = Ns(Ns::NEVER.0 - 1);

/// Whether a clock that the program moves was ever seen: a virtual clock that a thread has entered,
/// or the paused clock of a runtime.
pub(super) static ANY_MOVES: AtomicBool = AtomicBool::new(false);

/// The clock of one runtime, and the waker of the task that drives the timers on it. It fills one
/// cache line, which every sleep reads.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct RuntimeClock {
    runtime: Handle,
    can_pause: bool,
    /// Whether the clock was ever paused. Such a clock stays behind the system's.
    is_virtual: AtomicBool,
    /// Whether the program has chosen a sleep of tokio's as the event device.
    uses_sleep: AtomicBool,
    /// The last time at which the reactor was seen to look for due timers.
    seen: AtomicU64,
    /// The deadline that tokio's driver has reached while the timers are fired on a virtual clock.
    /// The clock is ahead of that by up to a millisecond, or by what the program has advanced it.
    reached: AtomicU64,
    /// Whether the runtime has ended: all pending timers fire then.
    has_ended: AtomicBool,
    /// Wakes the task that drives the timers. Set when that task is first polled.
    task: OnceLock<Waker>,
}

pub(super) fn now_in(runtime: &Handle) -> Ns {
    if can_pause(runtime) { tokio_now() } else { system_now() }
}

pub(super) fn can_pause(runtime: &Handle) -> bool {
    runtime.runtime_flavor() == RuntimeFlavor::CurrentThread
}

/// Returns whether the clock of a runtime that the caller is in was ever paused.
pub(super) fn was_paused(runtime: &Handle) -> bool {
    can_pause(runtime) && {
        let before = time::Instant::now();
        let shown = tokio::time::Instant::now().into_std();
        shown < before || shown > time::Instant::now()
    }
}

fn tokio_now() -> Ns {
    from_std(tokio::time::Instant::now().into_std()).to_ns()
}

impl RuntimeClock {
    pub(super) fn of(runtime: &Handle) -> RuntimeClock {
        let clock = RuntimeClock {
            runtime: runtime.clone(),
            can_pause: can_pause(runtime),
            is_virtual: AtomicBool::new(false),
            uses_sleep: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            reached: AtomicU64::new(Ns::NEVER.0),
            has_ended: AtomicBool::new(false),
            task: OnceLock::new(),
        };
        clock.check();
        clock
    }

    /// Returns the time. Also checks whether the clock was paused. The caller is in the runtime.
    pub(super) fn now_here(&self) -> Ns {
        if !self.can_pause || self.has_ended() {
            return self.now();
        }
        let shown = tokio::time::Instant::now().into_std();
        if !self.is_known_virtual() {
            let system = time::Instant::now();
            if shown > system || system - shown > APART {
                self.check();
            }
        }
        from_std(shown).to_ns()
    }

    pub(super) fn is_known_virtual(&self) -> bool {
        self.is_virtual.load(Ordering::Relaxed)
    }

    /// Checks whether the clock has ever been paused. If this is the first check to find that,
    /// wakes the task that drives the timers. A caller outside the runtime gets the last result.
    pub(super) fn check(&self) -> bool {
        if !self.can_pause || self.is_known_virtual() {
            return self.is_known_virtual();
        }
        let here = Handle::try_current();
        if here.is_ok_and(|here| here.id() == self.runtime.id() && was_paused(&here)) {
            ANY_MOVES.store(true, Ordering::Relaxed);
            self.is_virtual.store(true, Ordering::Relaxed);
            self.wake_task();
        }
        self.is_known_virtual()
    }

    /// Makes the caller enter the runtime.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    pub(super) fn uses_sleep(&self) -> bool {
        self.uses_sleep.load(Ordering::Relaxed)
    }

    /// Makes the task wait in a sleep of tokio's from now on.
    pub(super) fn use_sleep(&self) {
        if !self.uses_sleep.swap(true, Ordering::Relaxed) {
            self.wake_task();
        }
    }

    pub(super) fn set_task(&self, waker: &Waker) {
        self.task.get_or_init(|| waker.clone());
    }

    /// Records that the reactor has looked for due timers at the time `now`.
    pub(super) fn set_seen(&self, now: Ns) {
        self.seen.store(now.0, Ordering::Relaxed);
    }

    /// Calls `fire`, which fires timers. On a virtual clock these are the timers that are due at
    /// `reached`: tokio's driver must reach each deadline for itself.
    pub(super) fn fire_until(&self, reached: Ns, fire: impl FnOnce()) {
        if self.is_known_virtual() {
            self.reached.store(reached.0, Ordering::Relaxed);
        }
        fire();
        self.reached.store(Ns::NEVER.0, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

impl Runtime for RuntimeClock {
    fn now(&self) -> Ns {
        if self.has_ended() {
            return END;
        }
        if !self.can_pause {
            return system_now();
        }
        match Handle::try_current() {
            Ok(here) if here.id() == self.runtime.id() => tokio_now(),
            // The thread is ending and cannot enter a runtime, so tokio's clock cannot be read.
            Err(error) if error.is_thread_local_destroyed() => {
                from_std(time::Instant::now()).to_ns()
            }
            _ => {
                let _entered = self.runtime.enter();
                tokio_now()
            }
        }
    }

    fn is_virtual(&self) -> bool {
        self.is_known_virtual()
    }

    fn reached(&self) -> Ns {
        Ns(self.reached.load(Ordering::Relaxed))
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn waits_in_task(&self) -> bool {
        self.check() || self.uses_sleep()
    }

    fn has_seen(&self, deadline: Ns) -> bool {
        if self.has_ended() || deadline.0 <= self.seen.load(Ordering::Relaxed) {
            return true;
        }
        if !self.waits_in_task() {
            return false;
        }
        // Tokio knows: its own sleep is ready at once if its driver has reached the deadline.
        let _entered = self.enter();
        let theirs =
            tokio::time::sleep_until(tokio::time::Instant::from_std(to_std(deadline.into())));
        let polled = pin!(unconstrained(theirs)).poll(&mut Context::from_waker(Waker::noop()));
        polled.is_ready()
    }

    fn is_steady(&self) -> bool {
        !self.can_pause && !self.uses_sleep()
    }

    fn wake_task(&self) {
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}
