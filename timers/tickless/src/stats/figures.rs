use crate::timer::counters::CallbackTimes;
use crate::timer::shared::Shared;
use crate::timers::Timers;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tickless_core::bases::{BaseCounts, BaseView, DeferredCounts, Late};
use tickless_core::histogram::Histogram;
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
    /// The number of the base.
    pub base: CpuId,
    /// Pending coarse timers.
    pub coarse: usize,
    /// Pending coarse timers that are due and wait for the driver.
    pub coarse_due: usize,
    /// Pending coarse timers that are [deferrable](crate::Timeout::deferrable).
    pub deferrable: usize,
    levels: Levels,
    /// Pending precise timers.
    pub precise: usize,
    /// When the next timer is due.
    pub earliest: Instant,
    /// The deadline for which the event device is armed; [`Instant::NEVER`] if it is not armed, or
    /// while the driver runs timers.
    pub armed_for: Instant,
    /// Whether the base is in use; see [`Timers::offline`](crate::Timers::offline).
    pub is_online: bool,
    /// How many timers were armed, cancelled, fired and migrated to another base.
    pub counts: BaseCounts,
    /// Cancels that found the timer idle; counted on the caller's base. Two concurrent cancels on
    /// one base sometimes count as one, because cancelling an idle timer takes no lock.
    pub cancels_idle: u64,
    /// Cancels that found the callback running; counted on the caller's base.
    pub cancels_running: u64,
    /// How long after their deadlines coarse timers expired.
    pub late_coarse: Histogram,
    /// How long after their deadlines precise timers expired.
    pub late_precise: Histogram,
    /// Expiries that were late by more than [`Builder::slow_after`](crate::Builder::slow_after),
    /// counted from the end of the timer's window or, for a coarse timer, from its deadline rounded
    /// up to the granularity of the wheel.
    pub overdue: u64,
    /// How long callbacks took; `None` unless the builder of these timers was told to measure that
    /// by [`Builder::time_callbacks`](crate::Builder::time_callbacks).
    pub callbacks: Option<CallbackTimes>,
    /// How often the event device was programmed, and how many events it reported.
    pub device: DeviceCounts,
    /// Counters of the base's expiry thread, if there is one.
    pub deferred: DeferredCounts,
    /// How often a timeout was moved to a later bucket of the wheel when its bucket came due: its
    /// deadline had been moved to a later time, or is beyond the wheel's range.
    pub relocated: u64,
    /// The largest number of timers that a thread moved or inspected between one locking of the
    /// base and its unlocking: at most 64.
    pub longest_holding: usize,
    /// System calls that woke the driver for an earlier deadline. If an event loop drives the base,
    /// this counts the calls of [`on_rearm`](crate::Builder::start_in_loop_with).
    pub wake_calls: u64,
    /// How often the driver went to sleep: one system call each. Not counted for an event loop.
    pub sleeps: u64,
    /// How long the driver has waited for deadlines in a busy loop instead of sleeping, in total:
    /// the cost of [`Builder::wakeup`](crate::Builder::wakeup).
    pub spun: Duration,
    /// System calls that programmed the event device: one for each of
    /// [`device.writes`](DeviceCounts::writes) with a timerfd, none with a futex.
    pub device_calls: u64,
    /// Ticks of the driver; 0 if it does not tick.
    pub ticks: u64,
    /// System calls that woke the expiry thread.
    pub expirer_calls: u64,
}

impl Timers {
    /// Returns the counters. Allocates, and takes each base's lock once. In a forked child the list
    /// of bases is empty.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        // Report no bases in a forked child: a lock that a driver held at the moment of the fork is
        // never released there.
        let devices = &shared.bases.platform().devices[..];
        let devices = if shared.is_forked_child() { &[] } else { devices };
        let bases = 0..devices.len() as u16;
        let bases = bases.filter_map(|base| BaseStats::of(shared, CpuId(base))).collect();
        Stats { bases, panics: shared.panics.load(Ordering::Relaxed) }
    }
}

impl Stats {
    /// Returns the sums of armings, cancels, expiries and migrations over all bases.
    pub fn total(&self) -> BaseCounts {
        self.bases.iter().fold(BaseCounts::default(), |sum, base| sum.plus(base.counts))
    }

    /// Returns how late the coarse timers of all bases fired.
    pub fn late_coarse(&self) -> Histogram {
        self.bases.iter().fold(Histogram::new(), |sum, base| sum.plus(&base.late_coarse))
    }

    /// Returns how late the precise timers of all bases fired.
    pub fn late_precise(&self) -> Histogram {
        self.bases.iter().fold(Histogram::new(), |sum, base| sum.plus(&base.late_precise))
    }

    /// Returns how long callbacks took on all bases; `None` if they were not timed.
    pub fn callbacks(&self) -> Option<CallbackTimes> {
        let times = self.bases.iter().filter_map(|base| base.callbacks);
        times.reduce(|sum, times| sum.plus(times))
    }

    /// Returns the number of pending timers on all bases.
    pub fn pending(&self) -> usize {
        self.bases.iter().map(|base| base.coarse + base.precise).sum()
    }
}

impl BaseStats {
    pub(super) fn of(shared: &Shared, cpu: CpuId) -> Option<BaseStats> {
        let view: BaseView = shared.bases.view(cpu)?;
        let BaseView { coarse, levels, precise, earliest, armed, is_online, .. } = view;
        let BaseView { counts, late, device, deferred, relocated, longest_holding, .. } = view;
        let Late { coarse: late_coarse, precise: late_precise, .. } = late;
        let event_device = shared.bases.platform().devices.get(cpu.index())?;
        let bell = event_device.bell();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counters = &shared.counters;
        let (cancels_idle, cancels_running) = counters.cancels(cpu);
        Some(BaseStats {
            base: cpu,
            coarse,
            coarse_due: levels.due,
            deferrable: levels.deferrable,
            levels,
            precise,
            earliest,
            armed_for: armed,
            is_online,
            counts,
            cancels_idle,
            cancels_running,
            late_coarse,
            late_precise,
            overdue: counters.overdue(cpu),
            callbacks: counters.callbacks(cpu),
            device,
            deferred,
            relocated,
            longest_holding,
            wake_calls: read(&bell.wakes),
            sleeps: read(&bell.sleeps),
            spun: Duration::from_nanos(read(&bell.spun)),
            device_calls: event_device.calls(),
            ticks: read(&bell.ticks),
            expirer_calls: shared.expirers.wakes(cpu),
        })
    }

    /// Returns the number of pending coarse timers on each level of the wheel, the finest first.
    pub fn levels(&self) -> &[usize] {
        &self.levels.levels
    }
}

/// Formats a table with one line for each base.
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
            let late = base.late_coarse.plus(&base.late_precise);
            for late in [500, 990].map(|per_mille| late.quantile(per_mille)) {
                match late {
                    // A quantile of the histogram is an upper bound: at most twice the exact value.
                    Some(late) => write!(f, "{:>8}us", late.as_nanos().div_ceil(1_000))?,
                    None => write!(f, "{:>10}", "-")?,
                }
            }
        }
        Ok(())
    }
}
