//! *Projects* a recorded trace onto a simulated machine: predicts what the timers of the recorded
//! program would cost there.
//!
//! The simulated CPUs perform the recorded operations with the timer library's real code.
//! `docs/book/src/fleet.md` describes how operations are assigned to CPUs, and what is assumed.

mod curve;
mod figures;
mod layout;
mod operations;
mod perform;
mod request;

pub use curve::Projected;
pub use figures::{Limit, Projection, Shares};
pub use perform::project;
pub use request::{Clock, ProjectError, Request};
pub use tickless_trace::replay::Quantiles;
