//! `tickless doctor`: finds out which of five timer problems this machine has. Each problem is
//! solved by a timer mechanism, which one of the studies examines.
//!
//! Guarantees:
//! - A finding has a figure, how it was obtained, and what to do. If the figure could not be
//!   obtained, the verdict is `unknown`, with the reason: nothing is guessed.
//! - On a healthy idle machine, real or virtual, every verdict is `ok` or `unknown`.
//! - The machine is left unchanged: what was set up for gathering is removed again.
//!
//! Gathering and judging are separate: `gather` fills in [`Facts`], and each check is a function of
//! these facts, which can be tested on any machine. Each limit between verdicts is a named constant
//! with a reason, in the file of the check that uses it.

pub mod checks;
pub mod facts;
pub mod gather;
mod machine;

pub(crate) use machine::CHECKS as MACHINE_CHECKS;

pub use checks::{CHECKS, Check, Finding, Need, Verdict, judge};
pub use facts::Facts;
