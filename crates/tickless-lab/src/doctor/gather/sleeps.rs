//! Measures how late a thread wakes that sleeps a millisecond at a time, as `tickless latency`
//! does.

use crate::doctor::facts::{Seen, Sleeps};
use crate::latency::{self, Plan, Sleeper, Until};
use crate::progress::Hidden;
use std::sync::Arc;
use std::time::Duration;

const INTERVAL_US: u64 = 1_000;

/// The limit for the measurement's duration. The thousand wakeups of a second are enough for a
/// verdict.
const DURATION_MAX: Duration = Duration::from_secs(1);

pub(super) fn measure(duration: Duration) -> Seen<Sleeps> {
    let plan = Plan {
        interval: Duration::from_micros(INTERVAL_US),
        threads: vec![None],
        priority: None,
        slack_ns: 1,
        phase: None,
        until: Until { loops: None, duration: Some(duration.min(DURATION_MAX)) },
        stop: Arc::default(),
        break_at: None,
    };
    let slices = latency::measure(&[Sleeper::ClockNanosleep], &plan, 1, &Hidden);
    let slices = slices.map_err(|error| error.to_string())?;
    let tally = slices.into_iter().next().map(|slice| slice.tally).unwrap_or_default();
    if tally.lateness.is_empty() {
        return Err("too short to sleep even once; look for longer (-D)".to_string());
    }
    Ok(Sleeps {
        interval_us: INTERVAL_US,
        wakeups: tally.lateness.len(),
        missed: tally.missed,
        p99_ns: tally.lateness.value_at_quantile(0.99),
        max_ns: tally.lateness.max(),
    })
}
