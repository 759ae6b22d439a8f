//! The doctor's check for cancelled timers: what share of timers is cancelled, and how often.

use crate::doctor::checks::{Check, Judged, Judgement, Need, Verdict};
use crate::doctor::facts::Facts;
use crate::text::figure;

pub const CANCELS: Check =
    Check { name: "timer-cancels", needs: &[Need::Recorded], judge: cancels };

/// The limit for a warning, in cancels per CPU and second. So many cancels take about one percent
/// of the CPU: a cancel in the kernel takes 0.1 to 0.2 us with its lock in the cache. The share of
/// cancelled timers does not matter, because most timeouts are cancelled.
const CANCELS_MANY: f64 = 50_000.0;

/// The limit for the verdict "bad", in cancels per CPU and second: about a tenth of the CPU's time.
const CANCELS_TOO_MANY: f64 = 500_000.0;

fn cancels(facts: &Facts) -> Judged<'_> {
    let summary = &facts.recorded.as_ref()?.summary;
    let operations = summary.operations;
    let undone = operations.cancel + operations.wheel.restart + operations.queue.restart;
    let cpus = usize::from(summary.trace.cpus).max(1) as f64;
    let rate = undone as f64 / summary.trace.seconds.max(1e-3) / cpus;
    let how = format!(
        "{} timers armed, {undone} cancelled or moved, {} expired in {:.1} s: {} undone on each \
         CPU and second",
        operations.start,
        operations.expire,
        summary.trace.seconds,
        figure(rate)
    );
    Judgement::figure(
        Verdict::from_limits(rate, CANCELS_MANY, CANCELS_TOO_MANY),
        summary.cancelled_percent,
        how,
    )
}
