//! A campaign: a file that requests many computations, each of which is a *cell*.
//!
//! A campaign's file names values for each of its parameters (*axes*). Its cells are all
//! combinations of these values, except those that the file excludes. No list of cells is stored: a
//! cell is derived from its number when it is needed, so a campaign of 10^9 cells takes as little
//! memory as one of ten.
//!
//! | file | holds |
//! |---|---|
//! | `file` | the file as it is written |
//! | `numbers` | lists of numbers and of ranges |
//! | `plan` | the file with its patterns and machines resolved: the cells by number |
//! | `cell` | one cell and its key |

mod cell;
mod file;
mod numbers;
mod plan;

pub use cell::{Cell, Key, Project, Replay, Simulate, StudyName};
pub use file::{AxisValues, Campaign, ProjectAxes, ReplayAxes, SimulateAxes};
pub use numbers::Numbers;
pub use plan::{MachineFile, Plan, TraceFile, VERSION};

/// The reason why a campaign's file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct CampaignError {
    /// The file.
    pub file: String,
    /// The line, counted from 1; `None` if the error concerns the whole file.
    pub line: Option<usize>,
    /// A description of what is wrong in the file, and of what to write instead.
    pub what: String,
}
