//! What the timers of a recorded program would cost on a simulated machine.
//!
//! The recorded operations are assigned to the CPUs of a simulated machine and run through the
//! timer core, at that machine's prices. Where the machine has as many CPUs as the
//! trace, each performs what was recorded on it. Otherwise each draws a CPU of the trace, and a
//! moment of it to begin at, a whole number of ticks away, so that ticks stay as aligned or as
//! skewed as they were. A timer that was armed on one CPU and cancelled on another one is
//! cancelled from a CPU that drew that other one, so the share of remote operations stays, and
//! their distance becomes that of the machine.
//!
//! | file | holds |
//! |---|---|
//! | `request` | the request, and why it can fail |
//! | `operations` | the operations, by the CPU of their timers and by the CPU that did them |
//! | `layout` | the assignment of operations to CPUs and times |
//! | `steps` | the steps of one CPU, computed one by one |
//! | `perform` | the run on the simulated machine |
//! | `curve` | projections onto several machines, and what limits first |
//! | `figures` | the results |
//!
//! # Assumptions
//!
//! - Operations come at their recorded times, not earlier because an operation is cheaper and not
//!   later because the program would have waited. The results have the delay of a CPU that falls
//!   behind.
//! - A trace does not tell a cancel that waits for the callback from one that does not. All are
//!   assumed to wait, so time spent waiting for cancels is the most that it could be.
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
