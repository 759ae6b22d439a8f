//! The ways of programming the event device that a replay can follow.

use serde::Serialize;
use tickless_core::bases::Settings;
use tickless_core::rearm::{HandlerEnd, LazyTimers, Policy};

/// A way to program the event device.
///
/// The first three are the core's [`Policy`]. The others are what Linux 7.1 adds to
/// [`ReplayPolicy::RestartAware`]: each addition alone, and both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPolicy {
    /// Every removal of the timer that expires first programs the device: Linux until 5.14.
    Eager,
    /// No removal programs the device.
    Lazy,
    /// A cancel programs the device. A restart programs it at most once, not for the removal and
    /// again for the start: Linux 5.15 to 7.0.
    RestartAware,
    /// The timer that ends the scheduler's time slices (`hrtick`) does not program the device when
    /// it is cancelled or moves later.
    LazyTimers,
    /// The end of a timer interrupt does not program the device. It is programmed once, after the
    /// scheduler has chosen the next task.
    #[serde(rename = "rearm-put-off")]
    DeferredRearm,
    /// [`ReplayPolicy::LazyTimers`] and [`ReplayPolicy::DeferredRearm`] together: Linux since 7.1.
    #[serde(rename = "linux-7.1")]
    Linux71,
}

impl ReplayPolicy {
    /// The callback of the timer that ends the scheduler's time slices, the only lazy timer of
    /// Linux.
    pub const SLICE_FUNCTION: &str = "hrtick";

    pub const DEFAULT: [ReplayPolicy; 3] =
        [ReplayPolicy::Eager, ReplayPolicy::Lazy, ReplayPolicy::RestartAware];

    pub const ALL: [ReplayPolicy; 6] = [
        ReplayPolicy::Eager,
        ReplayPolicy::Lazy,
        ReplayPolicy::RestartAware,
        ReplayPolicy::LazyTimers,
        ReplayPolicy::DeferredRearm,
        ReplayPolicy::Linux71,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ReplayPolicy::Eager => "eager",
            ReplayPolicy::Lazy => "lazy",
            ReplayPolicy::RestartAware => "restart-aware",
            ReplayPolicy::LazyTimers => "lazy-timers",
            ReplayPolicy::DeferredRearm => "rearm-put-off",
            ReplayPolicy::Linux71 => "linux-7.1",
        }
    }

    /// Returns `settings`, changed to this way of programming the device.
    pub fn set(self, settings: Settings) -> Settings {
        let policy = match self {
            ReplayPolicy::Eager => Policy::Eager,
            ReplayPolicy::Lazy => Policy::Lazy,
            _ => Policy::RestartAware,
        };
        let lazy_timers = match self {
            ReplayPolicy::LazyTimers | ReplayPolicy::Linux71 => LazyTimers::Honoured,
            _ => LazyTimers::Ignored,
        };
        let handler_end = match self {
            ReplayPolicy::DeferredRearm | ReplayPolicy::Linux71 => HandlerEnd::Defers,
            _ => HandlerEnd::Programs,
        };
        Settings { policy, lazy_timers, handler_end, ..settings }
    }
}
