//! Counters of a set of timers, as a struct that later versions can extend.

use crate::object::on;
use crate::sized::{self, Grows};
use crate::status::{Status, failure};
use crate::timers::TimerSet;
use tickless::stats::BaseStats;

/// `base`: selects the sum over all bases.
pub const TICKLESS_ALL_BASES: u32 = u32::MAX;

/// What `tickless_timers_stats` reports: the counters of one base, or the sum over all bases. Set
/// `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimerStats {
    /// `sizeof(tickless_stats_t)`.
    pub size: usize,
    /// The number of bases that were counted. 0 in the child of a fork: the child cannot take their
    /// locks, because a thread of the parent perhaps held one at the fork.
    pub bases: u64,
    /// Pending coarse timers.
    pub pending_coarse: u64,
    /// Pending precise and periodic timers.
    pub pending_precise: u64,
    /// The earliest deadline; `TICKLESS_NEVER` if no timer is pending.
    pub earliest_ns: u64,
    /// Armings of idle timers.
    pub armed: u64,
    /// Armings of pending timers. Timeouts that were pushed out without a lock are not counted.
    pub rearmed: u64,
    /// Armings that were cancelled.
    pub cancelled: u64,
    /// Armings that fired.
    pub fired: u64,
    /// Timers that moved here from another base.
    pub migrated: u64,
    /// Pushed-out timeouts that moved to their new bucket when their old one came due.
    pub relocated: u64,
    /// How often the driver was programmed.
    pub device_writes: u64,
    /// How often the driver woke and found no timer due.
    pub device_spurious: u64,
    /// System calls that woke the driver for an earlier deadline.
    pub wake_calls: u64,
    /// System calls in which the driver slept.
    pub sleeps: u64,
    /// System calls that woke the expiry thread.
    pub expirer_calls: u64,
}

// SAFETY: integers without padding, a size first.
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

/// Reads the counters of one base, or of all with `TICKLESS_ALL_BASES`. Takes the lock of each base
/// once, and allocates.
///
/// Errors: `TICKLESS_NO_SUCH_BASE`, `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_timers_stats(
    timers: *const TimerSet,
    base: u32,
    stats: *mut TimerStats,
) -> Status {
    on(timers, |set| {
        let all = set.timers.stats().bases;
        let chosen = match base {
            TICKLESS_ALL_BASES => &all[..],
            one => match all.get(one as usize..).and_then(|rest| rest.get(..1)) {
                Some(one) => one,
                None => {
                    let what = format!("there is no base {one} among {}", all.len());
                    return Err(failure(Status::NoSuchBase, what));
                }
            },
        };
        let none = TimerStats { earliest_ns: u64::MAX, ..TimerStats::default() };
        sized::write(stats, &chosen.iter().fold(none, TimerStats::plus))
    })
}
