//! What happens, as events of the `tracing` facade: nothing at all without that feature.
//!
//! | level | events |
//! |---|---|
//! | `ERROR` | a callback panicked |
//! | `WARN` | a callback was slow, an expiry overdue, the clock fell back |
//! | `INFO` | a base went offline or online |
//! | `TRACE` | armed, cancelled, fired |
//!
//! All have the target `tickless`. A subscriber is foreign code and may do anything, including use
//! timers, so events are emitted outside of every lock. A driver emits them within the callback's
//! frame, where nothing waits for callbacks, and a panic of the subscriber is counted like a
//! callback's.

use std::time::Duration;
use tickless_core::bases::expiry::Firing;
use tickless_core::platform::Platform;
use tickless_core::time::{CpuId, Ns, Window};

/// An event, if the feature is enabled and a subscriber listens: only then are the values
/// evaluated.
macro_rules! event {
    ($level:ident, $message:literal $(, $field:ident = $value:expr)*) => {{
        #[cfg(feature = "tracing")]
        tracing::event!(
            target: "tickless", tracing::Level::$level, $($field = $value,)* $message
        );
        // Names the values, so that they are not unused, and asks for none of them.
        #[cfg(not(feature = "tracing"))]
        let _ = || {
            $(let _ = &$value;)*
        };
    }};
}

/// Does a subscriber listen to events of single timers?
#[inline]
pub(crate) fn are_traced() -> bool {
    #[cfg(feature = "tracing")]
    return tracing::event_enabled!(target: "tickless", tracing::Level::TRACE);
    #[cfg(not(feature = "tracing"))]
    return false;
}

#[inline]
pub(crate) fn armed(label: &'static str, window: Window) {
    event!(TRACE, "armed", timer = label, soft_ns = window.soft.0, hard_ns = window.hard.0);
}

#[inline]
pub(crate) fn cancelled(label: impl Fn() -> &'static str) {
    event!(TRACE, "cancelled", timer = label());
}

#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn fired<P: Platform>(label: impl Fn() -> &'static str, firing: &Firing<P>) {
    event!(TRACE, "fired", timer = label(), base = firing.cpu.0, late_ns = firing.late.0);
}

/// An expiry that its base should have seen long ago.
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
