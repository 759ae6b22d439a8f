//! Runs an unmodified tree of processes in time that jumps: whenever every thread of the tree
//! waits, the clock moves to the earliest deadline that any of them waits for. CPU work runs
//! natively.
//!
//! Needs Linux 5.6 or later on x86-64; elsewhere [`run`] returns [`WarpError::Platform`].

mod error;
mod options;
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    expect(dead_code, reason = "nothing is recorded there")
)]
pub mod report;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod asleep;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod deadlines;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ends;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod engine;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod filter;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod line;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod look;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod page;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod thread;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod timeout;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tree;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod unsupported;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use engine::{end_by, run};
pub use error::WarpError;
pub use options::{Ended, Note, Options, Outcome, Outside, Pace, Process};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub use unsupported::{end_by, run};
