//! Which kernel's way of programming the event device a replay follows.

use serde::{Deserialize, Serialize};
use tickless_core::bases::Settings;
use tickless_core::rearm::{HandlerEnd, LazyTimers, Policy};
use tickless_core::time::Ns;

/// A way to program the event device.
///
/// The first three are the core's [`Policy`]. The others are what Linux 7.1 adds to
/// [`ReplayPolicy::RestartAware`]: each addition by itself, and both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPolicy {
    /// Every removal of the first timer programs the device: Linux until 5.14.
    Eager,
    /// No removal programs it.
    Lazy,
    /// A cancel programs it, a restart is judged as a whole: Linux 5.15 to 7.0.
    RestartAware,
    /// The scheduler's slice timer (`hrtick`) leaves the device alone when it is cancelled or
    /// moves later.
    LazyTimers,
    /// The end of a timer interrupt programs nothing; the device is programmed once, when the
    /// scheduler has chosen the next task.
    RearmPutOff,
    /// Both: Linux from 7.1 on.
    #[serde(rename = "linux-7.1")]
    Linux71,
}

/// How long after an interrupt a device that was put off is programmed at the latest: softirqs
/// and the scheduler have run by then. Assumed, since a trace of timers does not show when the
/// scheduler has chosen; what the CPU does to its timers meanwhile is in one write.
pub(super) const SETTLES_AFTER: Ns = Ns(20_000);

/// The kernel's function of the scheduler's slice timer, the only lazy one.
pub(super) const SLICE_TIMER: &str = "hrtick";

impl ReplayPolicy {
    /// What a replay compares unless told otherwise.
    pub const USUAL: [ReplayPolicy; 3] =
        [ReplayPolicy::Eager, ReplayPolicy::Lazy, ReplayPolicy::RestartAware];

    /// All of them, in the order of tables.
    pub const ALL: [ReplayPolicy; 6] = [
        ReplayPolicy::Eager,
        ReplayPolicy::Lazy,
        ReplayPolicy::RestartAware,
        ReplayPolicy::LazyTimers,
        ReplayPolicy::RearmPutOff,
        ReplayPolicy::Linux71,
    ];

    /// The name in tables, in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            ReplayPolicy::Eager => "eager",
            ReplayPolicy::Lazy => "lazy",
            ReplayPolicy::RestartAware => "restart-aware",
            ReplayPolicy::LazyTimers => "lazy-timers",
            ReplayPolicy::RearmPutOff => "rearm-put-off",
            ReplayPolicy::Linux71 => "linux-7.1",
        }
    }

    /// The same settings with this way of programming the device.
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
            ReplayPolicy::RearmPutOff | ReplayPolicy::Linux71 => HandlerEnd::Defers,
            _ => HandlerEnd::Programs,
        };
        Settings { policy, lazy_timers, handler_end, ..settings }
    }

    /// Does the end of an interrupt leave the device to be programmed later?
    pub(super) const fn defers(self) -> bool {
        matches!(self, ReplayPolicy::RearmPutOff | ReplayPolicy::Linux71)
    }
}
