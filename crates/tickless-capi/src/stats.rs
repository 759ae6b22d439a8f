//! Counters of a set of timers, as a struct that can grow.

use crate::sized::{self, Grows};
use crate::status::{Status, entry, failure};
use crate::timers::{TimerSet, set};
use tickless::stats::BaseStats;

/// `base`: the sum over all bases.
pub const TICKLESS_ALL_BASES: u32 = u32::MAX;

/// What has happened on one base, or on all. Set `size` before asking.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerStats {
    /// `sizeof(tickless_stats_t)`.
    pub size: usize,
    /// How many bases this is the sum of; 0 in the child of a fork.
    pub bases: u64,
    /// Coarse timers pending.
    pub pending_coarse: u64,
    /// Precise and periodic timers pending.
    pub pending_precise: u64,
    /// When the next one is due; `TICKLESS_NEVER` if none is.
    pub earliest_ns: u64,
    /// Idle timers that were armed.
    pub armed: u64,
    /// Pending timers that were armed anew, but for timeouts that were pushed out without a lock.
    pub rearmed: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Armings that fired.
    pub fired: u64,
    /// Timers that came from another base.
    pub migrated: u64,
    /// Pushed-out timeouts that were moved when their old bucket came due.
    pub relocated: u64,
    /// Times the driver was programmed.
    pub device_writes: u64,
    /// Times it woke and found nothing due.
    pub device_spurious: u64,
    /// System calls that woke the driver for an earlier deadline.
    pub wake_calls: u64,
    /// System calls by which the driver went to sleep.
    pub sleeps: u64,
    /// System calls that woke the expiry thread.
    pub expirer_calls: u64,
}

// SAFETY: words, a size first.
unsafe impl Grows for TimerStats {}

impl TimerStats {
    fn plus(self, base: &BaseStats) -> TimerStats {
        let BaseStats { counts, device, .. } = base;
        TimerStats {
            size: self.size,
            bases: self.bases + 1,
            pending_coarse: self.pending_coarse + base.coarse as u64,
            pending_precise: self.pending_precise + base.precise as u64,
            earliest_ns: self.earliest_ns.min(base.earliest.as_nanos()),
            armed: self.armed + counts.armed,
            rearmed: self.rearmed + counts.rearmed,
            cancelled: self.cancelled + counts.cancelled,
            fired: self.fired + counts.fired,
            migrated: self.migrated + counts.migrated,
            relocated: self.relocated + base.relocated,
            device_writes: self.device_writes + device.writes,
            device_spurious: self.device_spurious + device.spurious,
            wake_calls: self.wake_calls + base.wake_calls,
            sleeps: self.sleeps + base.sleeps,
            expirer_calls: self.expirer_calls + base.expirer_calls,
        }
    }
}

/// Counters of one base, or of all with `TICKLESS_ALL_BASES`. Takes each base's lock once, and
/// allocates.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NO_SUCH_BASE`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `timers` came from `tickless_timers_start` and was not stopped; `stats` leads to as many bytes
/// as its `size` says, which can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_stats(
    timers: *const TimerSet,
    base: u32,
    stats: *mut TimerStats,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let set = unsafe { set(timers) }?;
        let all = set.timers.stats().bases;
        let chosen = match base {
            TICKLESS_ALL_BASES => &all[..],
            one => match all.get(one as usize..).and_then(|rest| rest.get(..1)) {
                Some(one) => one,
                None => {
                    let what = format_args!("there is no base {one} among {}", all.len());
                    return Err(failure(Status::NoSuchBase, what));
                }
            },
        };
        let none = TimerStats { earliest_ns: u64::MAX, ..TimerStats::default() };
        let sum = chosen.iter().fold(none, TimerStats::plus);
        // SAFETY: as promised.
        unsafe { sized::write(stats, &sum) }
    })
}
