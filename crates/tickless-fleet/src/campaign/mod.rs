//! A campaign: which cells there are.
//!
//! A campaign's file names values for each axis. Its cells are all combinations of them, without
//! the excluded ones. A cell is computed from its number when it is needed, so a campaign of a
//! thousand million cells takes as little memory as one of ten.
//!
//! | file | holds |
//! |---|---|
//! | `file` | the file as it is written |
//! | `numbers` | lists of numbers and of ranges |
//! | `plan` | the file with its globs and machines resolved: the cells by number |
//! | `cell` | one cell and its key |

mod cell;
mod file;
mod numbers;
mod plan;

pub use cell::{Cell, Key, Project, Replay, Simulate, StudyName};
pub use file::{AxisValues, Campaign, ProjectAxes, ReplayAxes, SimulateAxes};
pub use numbers::Numbers;
pub use plan::{MachineFile, Plan, TraceFile, VERSION};

/// Why a campaign's file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct CampaignError {
    /// The file.
    pub file: String,
    /// The line, from 1; `None` if the error is about the whole file.
    pub line: Option<usize>,
    /// What is wrong, and what to write instead.
    pub what: String,
}
