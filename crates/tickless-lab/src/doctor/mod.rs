//! Which of the five pathologies this machine has.
//!
//! Guarantees:
//! - A finding says what was seen, how, and what to do. What could not be seen is `unknown`, with
//!   the reason: nothing is guessed.
//! - A healthy idle machine, real or virtual, has no finding but `ok` and `unknown`.
//! - The machine is looked at and not changed; what looking needs is removed again.
//!
//! Gathering and judging are apart: `gather` fills in [`Facts`], and the checks are functions of
//! them that can be tested anywhere. Whatever stands for a border between verdicts is a constant
//! with a name and a reason, in the check that uses it.
//!
//! | file | what |
//! |---|---|
//! | `facts` | what a machine was seen to be and to do |
//! | `gather/` | seeing it: files of `/proc` and `/sys`, the clock, a recording, sleeping threads |
//! | `checks/` | judging it: one function a check, a file for each of the studies |
//! | `finding` | what a check comes to |

pub mod checks;
pub mod facts;
pub(crate) mod finding;
pub mod gather;

pub use checks::{Check, Need, checks};
pub use facts::Facts;
pub use finding::{Finding, Verdict};

/// Judges what was seen: a finding for each of these checks.
pub fn judge(checks: &[&Check], facts: &Facts) -> Vec<Finding> {
    checks.iter().map(|check| check.judge(facts)).collect()
}
