//! The counters of a set of timers, and of each of its bases.

use crate::platform::device::base::BaseDevice;
use crate::timer::counters::{CallbackTimes, CancelCounts};
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tickless_core::bases::{BaseCounts, BaseView, DeferredCounts, Late};
use tickless_core::queues::wheel::Levels;
use tickless_core::rearm::DeviceCounts;
use tickless_core::time::{CpuId, Instant};

/// Counters of a set of timers; from [`Timers::stats`](crate::Timers::stats).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// One for each base.
    pub bases: Vec<BaseStats>,
    /// Callbacks that panicked.
    pub panics: u64,
}

/// Counters of one base and its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BaseStats {
    /// Coarse timers pending.
    pub coarse: usize,
    /// The levels of the wheel that they are on.
    pub levels: Levels,
    /// Precise timers pending.
    pub precise: usize,
    /// When the next one is due.
    pub earliest: Instant,
    /// What the event device is armed for; [`Instant::NEVER`] if it is not armed, or while the
    /// driver is at work.
    pub armed_for: Instant,
    /// Whether the base is in use; see [`Timers::offline`](crate::Timers::offline).
    pub is_online: bool,
    /// Armings, cancels, expiries, migrations.
    pub counts: BaseCounts,
    /// What cancels found.
    pub cancels: CancelCounts,
    /// How long after their deadlines timers were found to be due.
    pub late: Late,
    /// Expiries that were late by more than [`Builder::slow_after`], counted from the end of the
    /// window, or from the deadline as the wheel rounded it.
    ///
    /// [`Builder::slow_after`]: crate::Builder::slow_after
    pub overdue: u64,
    /// How long callbacks took, if the timers were started with
    /// [`Builder::time_callbacks`](crate::Builder::time_callbacks).
    pub callbacks: Option<CallbackTimes>,
    /// What the event device was programmed for, and what it delivered.
    pub device: DeviceCounts,
    /// Counters of its expiry thread, if it has one.
    pub deferred: DeferredCounts,
    /// Pushed-out timeouts that were moved when their old bucket came due.
    pub relocated: u64,
    /// The most timers that were moved or looked at while no other thread could start or cancel
    /// one: at most 64.
    pub longest_holding: usize,
    /// System calls that woke the driver for an earlier deadline; calls of
    /// [`on_rearm`](crate::Builder::start_in_loop_with), if an event loop drives the base.
    pub wake_calls: u64,
    /// How often the driver went to sleep, a system call each time. Not known for an event loop.
    pub sleeps: u64,
    /// How long the driver spun before deadlines: the cost of [`Builder::wakeup`]. This is wall
    /// time; its CPU time was at most that.
    ///
    /// [`Builder::wakeup`]: crate::Builder::wakeup
    pub spun: Duration,
    /// System calls that programmed the event device: with a timerfd each of
    /// [`device.writes`](DeviceCounts::writes) is one, with a futex none is.
    pub device_calls: u64,
    /// Ticks of the driver, if it ticks.
    pub ticks: u64,
    /// System calls that woke the expiry thread.
    pub expirer_calls: u64,
}

impl Timers {
    /// Returns the counters. Takes each base's lock once. In a forked child there are no bases.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.shared)
    }
}

impl Stats {
    fn of(shared: &Shared) -> Stats {
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
        self.bases.iter().map(|base| base.coarse + base.precise).sum()
    }
}

impl BaseStats {
    fn of(shared: &Shared, cpu: CpuId, event_device: &BaseDevice) -> Option<BaseStats> {
        let view: BaseView = shared.bases.view(cpu)?;
        let BaseView { coarse, levels, precise, earliest, armed, is_online, .. } = view;
        let BaseView { counts, late, device, deferred, relocated, longest_holding, .. } = view;
        let bell = event_device.bell();
        let (wake_calls, sleeps) = bell.counts();
        let counters = &shared.counters;
        Some(BaseStats {
            coarse,
            levels,
            precise,
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
            spun: bell.spun().to_duration(),
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
            let BaseCounts { armed, rearmed, cancelled, fired, migrated, .. } = base.counts;
            let pending = (base.coarse + base.precise) as u64;
            let DeviceCounts { writes, events, .. } = base.device;
            let counts = [place as u64, pending, armed, rearmed, cancelled, fired, migrated];
            writeln!(f)?;
            for count in counts.iter().chain(&[writes, events, base.wake_calls]) {
                write!(f, "{count:>10}")?;
            }
            let late = base.late.coarse.plus(&base.late.precise);
            for late in [500, 990].map(|per_mille| late.quantile(per_mille)) {
                match late {
                    // Only its upper bound is known, within a factor of two.
                    Some(late) => write!(f, "{:>8}us", late.as_nanos().div_ceil(1_000))?,
                    None => write!(f, "{:>10}", "-")?,
                }
            }
        }
        Ok(())
    }
}
