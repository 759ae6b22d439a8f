//! The deadline scope (a timeout around a future) whose future this thread polls.

use super::shared::{Handle, Shared};
use crate::platform::system_clock::system_now;
use core::cell::Cell;
use core::ptr::{from_ref, null};
use core::task::Waker;
use tickless_core::time::Ns;

/// A deadline scope, while it polls its future: a timeout that timers inside the future share.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// When the scope's own timer fires.
    pub(crate) deadline: Ns,
    /// The earliest deadline of this scope and of the scopes around it that use the same clock.
    pub(crate) earliest: Ns,
    pub(crate) has_passed: bool,
    /// The timers of the scope; `None` if the system refused their driver threads.
    pub(crate) timers: Option<&'a Handle>,
    pub(crate) slack: Ns,
    /// The waker that the scope's timer wakes.
    pub(crate) waker: &'a Waker,
}

thread_local! {
    /// The innermost scope that this thread polls; null outside of all scopes. Has no destructor.
    static INNERMOST: Cell<*const Scope<'static>> = const { Cell::new(null()) };
}

impl Scope<'_> {
    /// Calls `poll`. During the call, the scope is this thread's innermost one.
    #[inline]
    pub(crate) fn enter<R>(&self, poll: impl FnOnce() -> R) -> R {
        /// Restores the outer scope, also when `poll` panics.
        struct Restore(*const Scope<'static>);
        impl Drop for Restore {
            fn drop(&mut self) {
                INNERMOST.set(self.0);
            }
        }
        let _restore = Restore(INNERMOST.replace(from_ref(self).cast()));
        poll()
    }

    pub(crate) fn now(&self) -> Ns {
        self.timers.map_or_else(system_now, |timers| timers.now())
    }

    /// Returns whether `timers` is the set of timers that the scope itself uses.
    #[inline]
    pub(crate) fn has_timers(&self, timers: Option<&Shared>) -> bool {
        self.timers.map(|own| from_ref::<Shared>(own)) == timers.map(from_ref)
    }

    /// Returns whether `timers` uses the scope's clock: only then can deadlines be compared.
    #[inline]
    pub(crate) fn is_on_clock_of(&self, timers: Option<&Shared>) -> bool {
        match (self.timers, timers) {
            (Some(one), Some(other)) => {
                one.bases.platform().clock.agrees_with(&other.bases.platform().clock)
            }
            (Some(timers), None) => timers.bases.platform().clock.is_real(),
            (None, Some(timers)) => timers.bases.platform().clock.is_real(),
            (None, None) => true,
        }
    }
}

/// Passes the scope whose future this thread polls to `read`. Returns `None` outside of all scopes.
#[inline]
pub(crate) fn innermost<R>(read: impl FnOnce(&Scope<'_>) -> R) -> Option<R> {
    // SAFETY: only `enter` sets the pointer, for the time in which it borrows the scope. It
    // restores the outer scope before it returns or unwinds, on the same thread.
    unsafe { INNERMOST.get().as_ref() }.map(read)
}
