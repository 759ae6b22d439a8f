//! What ticks of another rate would have cost, stopped on idle CPUs or not.
//!
//! The trace's own ticks are left out, and the engine provides others: at multiples of their
//! length, in phase with the kernel's jiffies. All other operations stay as they were recorded.
//! `docs/book/src/replay.md` describes what this method cannot know.

use super::agreement::Agreement;
use super::engine::{self, Changes, OtherTicks};
use super::lateness::Quantiles;
use super::script::{self, Inference};
use crate::read::{Trace, tick};
use serde::Serialize;
use tickless_core::time::Tick;

/// What ticks of one rate, stopped on idle CPUs or not, would have cost under the kernel's policy.
#[derive(Debug, Serialize)]
pub struct TickResult {
    pub hz: u32,
    /// Whether idle CPUs stop their tick.
    pub stopped: bool,
    pub policy: &'static str,
    pub device_writes: u64,
    pub wakeups: u64,
    /// How many of the wakeups found their CPU idle.
    pub idle_wakeups: u64,
    pub wheel_lateness_ns: Option<Quantiles>,
}

/// Replays a trace with ticks of each of these rates, stopped on idle CPUs and not. `None` if the
/// trace has no tick: without ticks, a busy CPU cannot be told from an idle one.
pub fn other_ticks(trace: &Trace, inference: Inference, rates: &[u32]) -> Option<Vec<TickResult>> {
    if trace.names.tick_functions() == [None; 2] {
        return None;
    }
    let (script, turns) = script::write_without_ticks(trace, inference);
    let policy = Agreement::policy_of(trace);
    let mut results = Vec::new();
    for &hz in rates {
        let Some(length) = Tick::new(tick(hz).to_duration()) else { continue };
        for stopped in [true, false] {
            let ticks = OtherTicks { length, stop: stopped, turns: &turns };
            let changes = Changes { ticks: Some(ticks), ..Changes::default() };
            let result = engine::run(&script, trace, policy, changes);
            results.push(TickResult {
                hz,
                stopped,
                policy: result.policy,
                device_writes: result.device_writes,
                wakeups: result.wakeups,
                idle_wakeups: result.idle_wakeups,
                wheel_lateness_ns: result.wheel_lateness_ns,
            });
        }
    }
    Some(results)
}
