//! What the timers of a recorded program would cost on a machine that nobody has to own.
//!
//! The operations that a trace recorded are laid onto the CPUs of a simulated machine and run
//! through the timer core, at that machine's prices. Where the machine has as many CPUs as the
//! trace, each performs what was recorded on it. Otherwise each draws a CPU of the trace, and a
//! moment of it to begin at, a whole number of ticks away, so that ticks stay as aligned or as
//! skewed as they were. A timer that was armed on one CPU and cancelled on another one is
//! cancelled from a CPU that drew that other one, so the share of remote operations stays, and
//! their distance becomes that of the machine.
//!
//! | file | holds |
//! |---|---|
//! | `request` | what is asked, and why it cannot be |
//! | `operations` | the operations, by the CPU whose timers they are on and by who did them |
//! | `layout` | which CPU performs what, and when |
//! | `steps` | what one CPU does, worked out as it comes to it |
//! | `perform` | the run on the simulated machine |
//! | `curve` | projections onto several machines: what limits first |
//! | `figures` | what it came to, and what limits first |
//!
//! # What this rests on
//!
//! - Operations come when they were recorded, not earlier because an operation is cheaper and not
//!   later because the program would have waited. A CPU that falls behind says so.
//! - A trace does not tell a cancel that waits for the callback from one that does not. All are
//!   taken to wait, so time spent waiting for cancels is the most that it could be.
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
