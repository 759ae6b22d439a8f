//! What has happened so far, and what is pending.
//!
//! | file | what |
//! |---|---|
//! | `counters` | what is counted beside the bases: cancels, and how long callbacks take |
//! | `notes` | what is known of single timers beside their memory: labels, where they were armed |
//! | `timer_list` | every pending timer in a list for people |
//! | `leaks` | what is still pending though it should not be, and who armed it |
//! | `publish` | the same figures for the `metrics` facade |

mod counters;
mod leaks;
mod notes;
#[cfg(feature = "metrics")]
mod publish;
mod timer_list;

pub(crate) use counters::Counters;
pub use counters::{CallbackTimes, CancelCounts};
pub use leaks::{Leak, Leaks};
pub(crate) use notes::Notes;
pub use timer_list::{ListedBase, ListedTimer, TimerList};

use crate::host::device::BaseDevice;
use crate::timers::Shared;
use std::fmt;
use std::sync::atomic::Ordering;
use tickless_core::bases::{BaseCounts, BaseView, DeferredCounts, Late};
use tickless_core::queues::wheel::Levels;
use tickless_core::rearm::DeviceCounts;
use tickless_core::time::{CpuId, Ns};

/// Counters of a set of timers; from [`Timers::stats`](crate::Timers::stats).
#[derive(Clone, Debug)]
pub struct Stats {
    /// One for each base.
    pub bases: Vec<BaseStats>,
    /// Callbacks that panicked.
    pub panics: u64,
}

/// Counters of one base and its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaseStats {
    /// Coarse timers pending.
    pub coarse: usize,
    /// On which levels of the wheel those are.
    pub levels: Levels,
    /// High-resolution timers pending.
    pub ranged: usize,
    /// When the next one is due.
    pub earliest: Ns,
    /// What the event device is armed for; [`Ns::NEVER`] if for nothing, or while the driver is
    /// at work.
    pub armed_for: Ns,
    /// Is it in use? See [`Timers::offline`](crate::Timers::offline).
    pub is_online: bool,
    /// Armings, cancels, expiries, migrations.
    pub counts: BaseCounts,
    /// What cancels found.
    pub cancels: CancelCounts,
    /// How long after their deadlines timers were found to be due.
    pub late: Late,
    /// Expiries that the base was later for than [`Builder::slow_after`]: later than the end of
    /// the window, or than the deadline as the wheel has rounded it.
    ///
    /// [`Builder::slow_after`]: crate::Builder::slow_after
    pub overdue: u64,
    /// How long callbacks took, if the timers were started with
    /// [`Builder::time_callbacks`](crate::Builder::time_callbacks).
    pub callbacks: Option<CallbackTimes>,
    /// What the event device was told and what it delivered.
    pub device: DeviceCounts,
    /// What its expiry thread was put through, if it has one.
    pub deferred: DeferredCounts,
    /// Pushed-out timeouts that were moved when their old bucket came due.
    pub relocated: u64,
    /// The most timers that were moved or looked at while nobody else could start or cancel one: at
    /// most 64.
    pub longest_holding: usize,
    /// System calls that woke the driver for an earlier deadline; calls of
    /// [`on_rearm`](crate::Builder::start_in_loop_with), if it drives an event loop.
    pub wake_calls: u64,
    /// Times the driver went to sleep: its own system calls. An event loop's are not known.
    pub sleeps: u64,
    /// System calls that programmed the event device: with a timerfd each of
    /// [`device.writes`](DeviceCounts::writes) is one, with a futex none is.
    pub device_calls: u64,
    /// Ticks of the driver, if it ticks.
    pub ticks: u64,
    /// System calls that woke the expiry thread.
    pub expirer_calls: u64,
}

impl Stats {
    pub(crate) fn of(shared: &Shared) -> Stats {
        // A lock that a driver held at the moment of a fork is not given back in the child.
        let devices = &shared.bases.platform().devices[..];
        let devices = if shared.is_forked_child() { &[] } else { devices };
        let base = |(place, device)| BaseStats::of(shared, CpuId(place as u16), device);
        let bases = devices.iter().enumerate().filter_map(base).collect();
        Stats { bases, panics: shared.panics.load(Ordering::Relaxed) }
    }

    /// Armings, cancels and expiries of all bases.
    pub fn total(&self) -> BaseCounts {
        self.bases.iter().fold(BaseCounts::default(), |sum, base| sum.plus(base.counts))
    }

    /// How late timers of all bases fired.
    pub fn late(&self) -> Late {
        self.bases.iter().fold(Late::default(), |sum, base| sum.plus(&base.late))
    }

    /// What cancels found, on all bases.
    pub fn cancels(&self) -> CancelCounts {
        self.bases.iter().fold(CancelCounts::default(), |sum, base| sum.plus(base.cancels))
    }

    /// How long callbacks took on all bases, if they were timed.
    pub fn callbacks(&self) -> Option<CallbackTimes> {
        let times = self.bases.iter().filter_map(|base| base.callbacks);
        times.reduce(|sum, times| sum.plus(times))
    }

    /// Timers pending on all bases.
    pub fn pending(&self) -> usize {
        self.bases.iter().map(|base| base.coarse + base.ranged).sum()
    }
}

impl BaseStats {
    fn of(shared: &Shared, cpu: CpuId, event_device: &BaseDevice) -> Option<BaseStats> {
        let view: BaseView = shared.bases.view(cpu)?;
        let BaseView { coarse, levels, ranged, earliest, armed, is_online, .. } = view;
        let BaseView { counts, late, device, deferred, relocated, longest_holding, .. } = view;
        let bell = event_device.bell();
        let (wake_calls, sleeps) = bell.counts();
        let counters = &shared.counters;
        Some(BaseStats {
            coarse,
            levels,
            ranged,
            earliest,
            armed_for: armed,
            is_online,
            counts,
            cancels: CancelCounts { pending: counts.cancelled, ..counters.cancels(cpu) },
            late,
            overdue: counters.overdue(cpu),
            callbacks: counters.callbacks(cpu),
            device,
            deferred,
            relocated,
            longest_holding,
            wake_calls,
            sleeps,
            device_calls: event_device.calls(),
            ticks: bell.ticks(),
            expirer_calls: shared.expirers.wakes(cpu),
        })
    }
}

/// A table, one line for each base.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["base", "pending", "armed", "rearmed", "cancelled", "fired", "moved"];
        let more = ["writes", "events", "wakes", "late p50", "late p99"];
        for name in names.iter().chain(&more) {
            write!(f, "{name:>10}")?;
        }
        for (place, base) in self.bases.iter().enumerate() {
            let BaseCounts { armed, rearmed, cancelled, fired, migrated } = base.counts;
            let pending = (base.coarse + base.ranged) as u64;
            let DeviceCounts { writes, events, .. } = base.device;
            let counts = [place as u64, pending, armed, rearmed, cancelled, fired, migrated];
            writeln!(f)?;
            for count in counts.iter().chain(&[writes, events, base.wake_calls]) {
                write!(f, "{count:>10}")?;
            }
            let late = base.late.coarse.plus(&base.late.ranged);
            for late in [500, 990].map(|per_mille| late.quantile(per_mille)) {
                match late {
                    // Only its upper bound is known, within a factor of two.
                    Some(Ns(late)) => write!(f, "{:>8}us", late.div_ceil(1_000))?,
                    None => write!(f, "{:>10}", "-")?,
                }
            }
        }
        Ok(())
    }
}
