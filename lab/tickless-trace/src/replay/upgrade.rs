//! What Linux 7.2 would have done with the timers of a recorded load.
//!
//! Three things change: the policy, the scheduler's slice timer (on by default, and off before),
//! and timers that are armed for a time that has passed (not queued). The order of the tasks stays
//! as it was recorded; [`super::script`] finds who waited. `docs/book/src/replay.md` describes
//! what this method cannot know.

use super::engine::{self, Changes};
use super::policy::ReplayPolicy;
use super::script::{self, Inference};
use crate::read::Trace;
use serde::Serialize;

/// What Linux 7.2 would have done, with its slice timer on or off.
#[derive(Debug, Serialize)]
pub struct UpgradeResult {
    pub slice_timer: bool,
    pub device_writes: u64,
    pub wakeups: u64,
    pub spurious_wakeups: u64,
}

/// Replays a trace as Linux 7.2 would have performed it, with its slice timer on and off. `None` if
/// the trace lacks the scheduler's switches and wakeups: then nothing tells who waits for a CPU.
pub fn upgraded(trace: &Trace, inference: Inference) -> Option<Vec<UpgradeResult>> {
    let (script, choices) = script::write_without_slices(trace, inference)?;
    let result = |slice_timer: bool| {
        let slices = Some(if slice_timer { &choices[..] } else { &[] });
        let changes = Changes { slices, ..Changes::default() };
        let result = engine::run(&script, trace, ReplayPolicy::Linux71, changes);
        UpgradeResult {
            slice_timer,
            device_writes: result.device_writes,
            wakeups: result.wakeups,
            spurious_wakeups: result.spurious_wakeups,
        }
    };
    Some(vec![result(true), result(false)])
}
