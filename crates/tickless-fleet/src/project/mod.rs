//! *Projects* a recorded trace onto a simulated machine: predicts what the timers of the recorded
//! program would cost there.
//!
//! The recorded operations are assigned to the CPUs of the simulated machine, which perform them
//! with the timer library's real code. If the machine has as many CPUs as the trace, each CPU
//! performs what was recorded on it. Otherwise each simulated CPU repeats the operations of a CPU
//! of the trace that is drawn at random. It begins at a random moment of the trace, which is moved
//! by a whole number of ticks, so that ticks on different CPUs stay as aligned or as skewed as they
//! were. A timer that CPU A of the trace armed and CPU B cancelled is cancelled by a simulated CPU
//! that repeats B. So the share of operations on other CPUs' timers stays as recorded, and their
//! distance is that of the simulated machine.
//!
//! | file | holds |
//! |---|---|
//! | `request` | the request, and why it can fail |
//! | `operations` | the operations, by the CPU that owns the timer and the CPU that acted |
//! | `layout` | the assignment of operations to CPUs and times |
//! | `steps` | the steps of one CPU, computed one by one |
//! | `perform` | the run on the simulated machine |
//! | `curve` | projections onto several machines, and the first bottleneck |
//! | `figures` | the results |
//!
//! # Assumptions
//!
//! - Operations come at their recorded times, even if the real program would have continued earlier
//!   because an operation is cheaper, or later because it is slower. If a CPU cannot keep up, the
//!   results show its delay.
//! - A trace does not show whether a cancel waited for a running callback. All cancels are assumed
//!   to wait, so the time spent in waiting cancels is an upper bound.
//! - The clock is read once for each arming of a precise timer and once for each timer interrupt,
//!   as a kernel does. Reads by the program itself are not in the trace.
//! - The work of callbacks is not timer code, and takes no time here.

mod curve;
mod figures;
mod layout;
mod operations;
mod perform;
mod request;
mod steps;

pub use curve::Projected;
pub use figures::{Limit, Projection, Quantiles, Shares};
pub use perform::project;
pub use request::{Clock, ProjectError, Request};
