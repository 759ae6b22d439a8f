//! Publishes [`Stats`] to the `metrics` facade when the program calls for it. The bases keep these
//! counters even without this feature, so publishing them slows down no timer.

use super::figures::{BaseStats, Stats};
use crate::timers::Timers;
use metrics::{counter, gauge};
use std::time::Duration;
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
    // Prometheus expects times in seconds. Times are gauges, as counters are whole numbers.
    let seconds = |name: &'static str, time: Duration| {
        gauge!(name, "base" => base.to_owned()).set(time.as_secs_f64());
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
    seconds("tickless_spun_seconds_total", stats.spun);
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
        seconds("tickless_callbacks_seconds_total", times.total);
        seconds("tickless_callback_longest_seconds", times.longest);
    }
}

/// Publishes a histogram as Prometheus expects it: in seconds, with a count and a sum, and with
/// cumulative buckets, each of which includes the lower ones.
fn late(base: &str, family: &'static str, late: &Histogram) {
    let labels = [("base", base.to_owned()), ("family", family.to_owned())];
    let bucket = |up_to: String, count| {
        let [base, family] = labels.clone();
        counter!("tickless_late_seconds_bucket", &[base, family, ("le", up_to)]).absolute(count);
    };
    for last in BUCKETS {
        let up_to = Histogram::longest_in(last).as_secs_f64().to_string();
        bucket(up_to, late.counts()[..=last].iter().sum());
    }
    bucket("+Inf".into(), late.total());
    counter!("tickless_late_seconds_count", &labels).absolute(late.total());
    gauge!("tickless_late_seconds_sum", &labels).set(late.sum().as_secs_f64());
}
