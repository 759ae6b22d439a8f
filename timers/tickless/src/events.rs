//! Events for the `tracing` facade. Without the feature `tracing` these functions do nothing.
//!
//! | level | events |
//! |---|---|
//! | `ERROR` | a callback panicked |
//! | `WARN` | a callback was slow, an expiry overdue, the clock fell back |
//! | `INFO` | a base went offline or online |
//! | `TRACE` | armed, cancelled, fired |
//!
//! All have the target `tickless`. A subscriber can run any code, and can use timers itself, so
//! events are emitted while no lock is held: code that arms or cancels a timer under a lock of its
//! own does that inside [`after`]. A driver calls the subscriber as if it were part of
//! the timer's callback: dropping a timer there does not wait, and a panic of the subscriber counts
//! as a panic of the callback.

use std::time::Duration;
use tickless_core::bases::firing::Firing;
use tickless_core::platform::Platform;
use tickless_core::time::{CpuId, Ns, Window};

/// Emits an event, if the feature is enabled and a subscriber is interested.
macro_rules! event {
    ($level:ident, $message:literal $(, $field:ident = $value:expr)*) => {{
        #[cfg(feature = "tracing")]
        tracing::event!(
            target: "tickless", tracing::Level::$level, $($field = $value,)* $message
        );
        // Mentions the values without evaluating them, so that no variable counts as unused.
        #[cfg(not(feature = "tracing"))]
        let _ = || {
            $(let _ = &$value;)*
        };
    }};
}

/// Returns whether a subscriber is interested in events of single timers.
#[inline]
pub(crate) fn are_traced() -> bool {
    #[cfg(feature = "tracing")]
    return tracing::event_enabled!(target: "tickless", tracing::Level::TRACE);
    #[cfg(not(feature = "tracing"))]
    return false;
}

/// Calls `locking`, which holds a lock of the library, and then emits the events of the timers that
/// it armed and cancelled.
#[inline]
pub(crate) fn after<R>(locking: impl FnOnce() -> R) -> R {
    #[cfg(feature = "tracing")]
    let held = are_traced().then(held::Held::begin);
    let result = locking();
    #[cfg(feature = "tracing")]
    if let Some(held) = held {
        held.emit();
    }
    result
}

#[cfg(feature = "tracing")]
mod held {
    use std::cell::RefCell;

    type Event = Box<dyn FnOnce()>;

    thread_local! {
        /// The events of this thread's outermost call of [`after`](super::after).
        static HELD: RefCell<Option<Vec<Event>>> = const { RefCell::new(None) };
    }

    /// When dropped without [`emit`](Held::emit), by a panic, this discards the events.
    pub(super) struct Held {
        is_outermost: bool,
    }

    impl Held {
        pub(super) fn begin() -> Held {
            let begin = |held: &RefCell<Option<_>>| {
                let is_outermost = held.borrow().is_none();
                held.borrow_mut().get_or_insert_default();
                is_outermost
            };
            Held { is_outermost: HELD.try_with(begin) == Ok(true) }
        }

        pub(super) fn emit(self) {
            self.take().into_iter().for_each(|event| event());
        }

        fn take(&self) -> Vec<Event> {
            let take = || HELD.try_with(RefCell::take).ok().flatten();
            self.is_outermost.then(take).flatten().unwrap_or_default()
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            self.take();
        }
    }

    /// Emits an event, unless `after` is to emit it. A thread that ends emits none.
    pub(crate) fn emit(event: impl FnOnce() + 'static) {
        let is_held = HELD.try_with(|held| held.borrow().is_some());
        if is_held == Ok(false) {
            event();
        } else if is_held == Ok(true) {
            HELD.with_borrow_mut(|held| held.get_or_insert_default().push(Box::new(event)));
        }
    }
}

#[cfg(feature = "tracing")]
use held::emit;

#[cfg(not(feature = "tracing"))]
fn emit(_: impl FnOnce()) {}

#[inline]
pub(crate) fn armed(label: &'static str, window: Window) {
    let Window { soft, hard } = window;
    emit(move || event!(TRACE, "armed", timer = label, soft_ns = soft.0, hard_ns = hard.0));
}

#[inline]
pub(crate) fn cancelled(label: impl Fn() -> &'static str) {
    if are_traced() {
        let label = label();
        emit(move || event!(TRACE, "cancelled", timer = label));
    }
}

#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn fired<P: Platform>(label: impl Fn() -> &'static str, firing: &Firing<P>) {
    event!(TRACE, "fired", timer = label(), base = firing.cpu.0, late_ns = firing.late.0);
}

/// Reports that a timer was late by more than [`Builder::slow_after`](crate::Builder::slow_after).
pub(crate) fn overdue<P: Platform>(label: impl Fn() -> &'static str, firing: &Firing<P>, by: Ns) {
    event!(WARN, "overdue", timer = label(), base = firing.cpu.0, by_ns = by.0);
}

pub(crate) fn slow<P: Platform>(
    label: impl Fn() -> &'static str,
    firing: &Firing<P>,
    took: Duration,
) {
    let ns = took.as_nanos() as u64;
    event!(WARN, "slow callback", timer = label(), base = firing.cpu.0, ns = ns);
}

#[cold]
pub(crate) fn panicked<P: Platform>(label: impl Fn() -> &'static str, firing: &Firing<P>) {
    event!(ERROR, "a callback panicked", timer = label(), base = firing.cpu.0);
}

pub(crate) fn offline(base: CpuId, moved: u64) {
    event!(INFO, "base offline", base = base.0, moved = moved);
}

pub(crate) fn online(base: CpuId) {
    event!(INFO, "base online", base = base.0);
}

#[cold]
pub(crate) fn clock_fell_back(why: impl ToString) {
    event!(WARN, "clock fallback", why = why.to_string());
}
