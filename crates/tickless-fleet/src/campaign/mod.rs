//! A campaign: a file that requests many computations, each of which is a *cell*.
//!
//! A campaign's file names values for each of its parameters (*axes*). Its cells are all
//! combinations of these values, except those that the file excludes. No list of cells is stored: a
//! cell is derived from its number when it is needed, so a campaign of 10^9 cells takes as little
//! memory as one of ten.

mod cell;
mod file;
mod numbers;
mod plan;

pub use cell::{Cell, Key, Project, Replay, Simulate, StudyName};
pub use file::{AxisValues, Campaign, ProjectAxes, ReplayAxes, SimulateAxes};
pub use numbers::Numbers;
pub use plan::{MachineFile, Plan, TraceFile, VERSION};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct CampaignError {
    pub file: String,
    /// The line, counted from 1; `None` if the error concerns the whole file.
    pub line: Option<usize>,
    pub what: String,
}
