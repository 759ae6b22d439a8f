//! Publishes [`Stats`] to the `metrics` facade when the program calls for it. The bases keep these
//! counters even without this feature, so it slows down no timer.

use super::figures::{BaseStats, Stats};
use crate::timers::Timers;
use metrics::{counter, gauge};
use tickless_core::histogram::Histogram;

/// The upper limits of the published buckets of lateness, as indices into [`Histogram`]: 1 us, 8
/// us, and so on up to 17 s. Greater lateness is in the bucket `+Inf`.
const BUCKETS: [usize; 9] = [10, 13, 16, 19, 22, 25, 28, 31, 34];

impl Timers {
    /// Publishes [`stats`](Timers::stats) to the recorder of the `metrics` facade: call it before
    /// the recorder is read. `docs/book/src/statistics.md` lists the names of the metrics. Takes
    /// each base's lock once, and allocates.
    pub fn publish_metrics(&self) {
        let Stats { bases, panics } = self.stats();
        counter!("tickless_panics_total").absolute(panics);
        for (place, base) in bases.iter().enumerate() {
            publish(&place.to_string(), base);
        }
    }
}

fn publish(base: &str, stats: &BaseStats) {
    let total = |name: &'static str, value| {
        counter!(name, "base" => base.to_owned()).absolute(value);
    };
    let pending = |family: &'static str, count: usize| {
        gauge!("tickless_pending", "base" => base.to_owned(), "family" => family).set(count as f64);
    };
    pending("coarse", stats.coarse);
    pending("precise", stats.precise);
    for (level, &count) in stats.levels().iter().enumerate() {
        let level = level.to_string();
        gauge!("tickless_pending_on_level", "base" => base.to_owned(), "level" => level)
            .set(count as f64);
    }
    total("tickless_armed_total", stats.counts.armed);
    total("tickless_rearmed_total", stats.counts.rearmed);
    total("tickless_fired_total", stats.counts.fired);
    total("tickless_migrated_total", stats.counts.migrated);
    total("tickless_overdue_total", stats.overdue);
    total("tickless_device_writes_total", stats.device.writes);
    total("tickless_device_events_total", stats.device.events);
    total("tickless_wake_calls_total", stats.wake_calls);
    total("tickless_sleeps_total", stats.sleeps);
    total("tickless_spun_ns_total", stats.spun.as_nanos() as u64);
    let by_state = [
        ("pending", stats.counts.cancelled),
        ("idle", stats.cancels_idle),
        ("running", stats.cancels_running),
    ];
    for (state, count) in by_state {
        counter!("tickless_cancels_total", "base" => base.to_owned(), "found" => state)
            .absolute(count);
    }
    late(base, "coarse", &stats.late_coarse);
    late(base, "precise", &stats.late_precise);
    if let Some(times) = stats.callbacks {
        total("tickless_callbacks_total", times.count);
        total("tickless_callbacks_slow_total", times.slow);
        total("tickless_callbacks_ns_total", times.total.as_nanos() as u64);
        let longest = gauge!("tickless_callback_longest_ns", "base" => base.to_owned());
        longest.set(times.longest.as_nanos() as f64);
    }
}

/// Publishes a cumulative histogram, in which each bucket includes the lower ones.
fn late(base: &str, family: &'static str, late: &Histogram) {
    let bucket = |up_to: String, count| {
        let labels = [("base", base.to_owned()), ("family", family.to_owned()), ("le", up_to)];
        counter!("tickless_late_ns_bucket", &labels).absolute(count);
    };
    for last in BUCKETS {
        let up_to = Histogram::longest_in(last).as_nanos().to_string();
        bucket(up_to, late.counts()[..=last].iter().sum());
    }
    bucket("+Inf".into(), late.total());
}
