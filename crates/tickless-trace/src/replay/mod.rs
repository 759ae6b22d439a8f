//! A kernel's recorded timer operations, performed on the real core.
//!
//! What a trace says was started, restarted and cancelled is done to the library's own bases,
//! one for each CPU of the trace, on a virtual clock. *What comes of it* (which timer fires
//! when, what the event devices are told) is the core's doing, once for each
//! [`ReplayPolicy`]. So a trace shows what each policy would have cost on the box where it was
//! recorded.
//!
//! | file | what |
//! |---|---|
//! | `family` | the two families of timers |
//! | `script` | the trace as operations: what was done, when, on which CPU |
//! | `streams` | the same operations for others to perform, a timer's life at a time |
//! | `world` | the core's platform: a clock and event devices that stand still until told |
//! | `policy` | the ways to program an event device that there are |
//! | `engine` | performs a script under one policy |
//! | `agreement` | the kernel's policy in the replay against the kernel itself |
//! | `lateness` | how late timers fired |
//! | `overlap` | periodic timers that expire together, and what spreading them would change |
//! | `timeline` | both in time, for viewers |
//! | `summary` | what came of it, beside what the trace recorded |
//!
//! # How close this is to the kernel
//!
//! The kernel that recorded programs its event device only for high-resolution timers, the
//! periodic tick being one of them; its wheel rides on that tick. The replay does the same
//! ([`WheelEvents::Tick`](tickless_core::bases::WheelEvents)), so that under the policy which
//! the kernel has (`restart-aware`, since 5.15) the device must be written as often as the trace
//! recorded. An interrupt that the trace recorded is delivered when it was; one that only the
//! replay has (an event that laziness left standing) is delivered when it is due.

mod agreement;
mod engine;
mod family;
mod lateness;
mod overlap;
mod policy;
mod script;
pub mod streams;
mod summary;
mod timeline;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod world;

pub use agreement::{AGREEMENT_PERCENT, Agreement, Comparison, Measure, Told};
pub use lateness::Quantiles;
pub use overlap::{Overlap, Periodic, PhaseSet};
pub use policy::ReplayPolicy;
pub use script::Inference;
pub use summary::{
    FamilyCounts, FunctionStarts, OperationCounts, PolicyResult, Recorded, Summary, TraceFacts,
    summarise,
};
pub use timeline::write_timeline;
