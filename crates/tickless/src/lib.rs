//! Linux's timer subsystem for programs.
//!
//! Two families of timers, as in the kernel:
//! - [`Timeout`]: coarse, on a timer wheel. Arming, pushing out and cancelling take a handful
//!   of nanoseconds and do not depend on how many are pending. Made to be cancelled: fires
//!   never early, and late by at most 13 % of its distance plus a tick.
//! - [`HrTimer`]: high-resolution, in a sorted queue; may be given a window instead of a point,
//!   so that expiries share wakeups. [`Periodic`] is one that knows its period, and with a
//!   [`Phase`] its place among others of that period.
//!
//! A [`ClockTimer`] is a high-resolution timer whose deadlines are on the time of day, or on the
//! time since boot.
//!
//! On top of them [`Throttle`] and [`Limiter`]: so much CPU time, or so many permits, in every
//! period.
//!
//! ```
//! use std::time::Duration;
//!
//! let timers = tickless::Timers::start()?;
//! let (tx, rx) = std::sync::mpsc::channel();
//! let idle = timers.timeout(move |_| tx.send("closing").unwrap_or(()));
//! idle.start(Duration::from_millis(5))?; // arm, or push out
//! assert_eq!(rx.recv(), Ok("closing"));
//! assert_ne!(idle.cancel(), tickless::Cancel::Pending);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Timers`] has one base per CPU and one driver thread per base, which sleeps until
//! something is due. To embed timers in an event loop without any thread, use
//! [`LocalTimers`]; to test code that waits, use [`VirtualTime`].
//!
//! Callbacks run on driver threads, one at a time per base, and should be short: a callback
//! that blocks delays the timers of its own base and no others. One that panics is caught and
//! counted. Dropping a timer cancels it and waits until its callback is over, so do not drop one
//! while you hold something that its callback wants. Within callbacks nothing waits. A callback
//! that owns its own timer keeps itself alive until it drops it.
//!
//! # Looking in
//!
//! [`Timers::stats`] counts what happens, [`Timers::timer_list`] shows what is pending and whose it
//! is, [`Timers::leaks`] who armed what is left. Two features, off by default, change nothing but
//! who is told: `tracing` warns of slow callbacks, overdue expiries and panics; with `metrics`,
//! `Timers::publish_metrics` hands the figures on.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "tickless supports Linux; elsewhere drive `tickless_core::local::LocalTimers` by a clock of \
     your own, which needs no operating system (the errors below are of what is missing here)"
);

mod bandwidth;
mod builder;
mod cancel_error;
pub mod clock;
mod clock_timer;
mod event_loop;
mod events;
mod fired;
pub mod future;
mod guarded;
mod host;
mod hrtimer;
mod periodic;
mod stats;
pub mod std_time;
mod timeout;
mod timers;
#[cfg(feature = "tokio-time")]
pub mod tokio_time;
mod virtual_time;

pub use bandwidth::{
    Acquire, AcquireError, BandwidthError, Checked, KeyedLimiter, Limiter, LimiterBuilder,
    Throttle, ThrottleBuilder, ThrottleError, Worker,
};
pub use builder::{Builder, StartTimersError};
pub use cancel_error::CancelError;
pub use clock_timer::{ClockFired, ClockTimer};
pub use event_loop::{Callback, Descriptor, EventLoopDriver};
pub use fired::Fired;
pub use guarded::{Guarded, GuardedGuard};
pub use host::clock::ClockSource;
pub use host::device::{Device, DeviceFallback};
#[doc(hidden)]
pub use host::embed;
pub use host::time_base::TimeBase;
pub use hrtimer::HrTimer;
pub use periodic::{Missed, Period, PeriodError, Periodic};
pub use stats::{
    BaseStats, CallbackTimes, CancelCounts, Leak, Leaks, ListedBase, ListedTimer, Stats, TimerList,
};
pub use tickless_core::bandwidth::{Counts as BandwidthCounts, Release, SettingsError};
pub use tickless_core::bases::cancel::Cancel;
pub use tickless_core::bases::migrate::OnlineError;
pub use tickless_core::bases::pending::PendingIn;
pub use tickless_core::bases::{
    BaseCounts, BaseView, Deferral, DeferredCounts, FiresIn, Late, Scan, StartError, Started,
};
pub use tickless_core::histogram::Histogram;
pub use tickless_core::local::{Class, FixedError, FixedTimeouts, Key, LocalError, LocalTimers};
pub use tickless_core::phase::{CircleView, Phase, PhaseError};
pub use tickless_core::queues::wheel::{Levels, PushOut, Wakes};
pub use tickless_core::rearm::{DeviceCounts, Policy};
pub use tickless_core::time::{CpuId, Ns, Tick, TickError, Window};
pub use timeout::Timeout;
pub use timers::Timers;
pub use virtual_time::{AutoAdvance, Busy, VirtualTime};
