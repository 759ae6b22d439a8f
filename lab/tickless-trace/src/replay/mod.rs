//! Replays a kernel's recorded timer operations on the core.
//!
//! The core has a base (a set of timers) for each CPU of the trace, and a virtual clock. The replay
//! starts, restarts and cancels timers when the trace recorded it. The core decides when each timer
//! fires and when to program the event devices, under each [`ReplayPolicy`]. So a trace shows what
//! each policy would have cost on the machine that recorded it.
//!
//! # Fidelity
//!
//! A kernel programs its event device for high-resolution timers only. The periodic tick is one of
//! them, and the wheel expires with the tick. The replay does likewise
//! ([`WheelEvents::Tick`](tickless_core::bases::WheelEvents)). So under the policy of the recording
//! kernel (`restart-aware` since 5.15), the device must be written as often as the trace recorded.
//! An interrupt that the trace recorded is delivered when it occurred. One that only the replay has
//! (an event that a lazy policy left armed) is delivered when it is due.

mod agreement;
mod engine;
mod lateness;
mod overlap;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod platform;
mod policy;
mod script;
pub mod streams;
mod summary;
mod ticks;
mod upgrade;

pub use agreement::{AGREEMENT_PERCENT, Agreement, Comparison, Measure, Recorded, Verdict};
pub use engine::PolicyResult;
pub use lateness::Quantiles;
pub use overlap::{Overlap, PhaseSet};
pub use policy::ReplayPolicy;
pub use script::{FamilyCounts, Inference};
pub use summary::{FunctionStarts, OperationCounts, Summary, TraceFacts, summarise};
pub use ticks::{TickResult, other_ticks};
pub use upgrade::{UpgradeResult, upgraded};
