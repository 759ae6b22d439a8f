//! Which of the five pathologies this machine has.
//!
//! Guarantees:
//! - A finding has the figure, how it was obtained, and what to do. What could not be determined is
//!   `unknown`, with the reason: nothing is guessed.
//! - A healthy idle machine, real or virtual, has no finding but `ok` and `unknown`.
//! - The machine is not changed; what gathering needs is removed again.
//!
//! Gathering and judging are apart: `gather` fills in [`Facts`], and the checks are functions of
//! them that can be tested anywhere. Each limit between verdicts is a constant with a name and a
//! reason, in the check that uses it.
//!
//! | file | what |
//! |---|---|
//! | `facts` | what was gathered about a machine |
//! | `gather/` | gathering: files of `/proc` and `/sys`, the clock, a recording, sleeping threads |
//! | `checks/` | judging: the list of checks; those for a mechanism are in its study's folder |
//! | `finding` | the result of a check |

pub mod checks;
pub mod facts;
pub(crate) mod finding;
pub mod gather;

pub use checks::{Check, Need, checks};
pub use facts::Facts;
pub use finding::{Finding, Verdict};

/// Judges what was gathered: returns a finding for each of these checks.
pub fn judge(checks: &[&Check], facts: &Facts) -> Vec<Finding> {
    checks.iter().map(|check| check.judge(facts)).collect()
}
