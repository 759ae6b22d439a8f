//! What has happened so far.

use crate::host::device::BaseDevice;
use crate::timers::Shared;
use std::sync::atomic::Ordering;
use tickless_core::base::{BaseCounts, BaseView, DeferredCounts};
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
    /// High-resolution timers pending.
    pub ranged: usize,
    /// When the next one is due.
    pub earliest: Ns,
    /// Is it in use? See [`Timers::offline`](crate::Timers::offline).
    pub is_online: bool,
    /// Armings, cancels, expiries.
    pub counts: BaseCounts,
    /// What the event device was told and what it delivered.
    pub device: DeviceCounts,
    /// What its expiry thread was put through, if it has one.
    pub deferred: DeferredCounts,
    /// Pushed-out timeouts that were moved when their old bucket came due.
    pub relocated: u64,
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
        let devices = if shared.is_left_behind() { &[] } else { devices };
        let base = |(place, device_of): (usize, &BaseDevice)| {
            let view: BaseView = shared.bases.view(CpuId(place as u16))?;
            let BaseView { coarse, ranged, earliest, counts, device, deferred, relocated, .. } =
                view;
            let bell = device_of.bell();
            let (wake_calls, sleeps) = bell.counts();
            Some(BaseStats {
                coarse,
                ranged,
                earliest,
                is_online: view.is_online,
                counts,
                device,
                deferred,
                relocated,
                wake_calls,
                sleeps,
                device_calls: device_of.calls(),
                ticks: bell.ticks(),
                expirer_calls: shared.expirers.wakes(CpuId(place as u16)),
            })
        };
        let bases = devices.iter().enumerate().filter_map(base).collect();
        Stats { bases, panics: shared.panics.load(Ordering::Relaxed) }
    }

    /// Armings, cancels and expiries of all bases.
    pub fn total(&self) -> BaseCounts {
        self.bases.iter().fold(BaseCounts::default(), |sum, base| sum.plus(base.counts))
    }

    /// Timers pending on all bases.
    pub fn pending(&self) -> usize {
        self.bases.iter().map(|base| base.coarse + base.ranged).sum()
    }
}
