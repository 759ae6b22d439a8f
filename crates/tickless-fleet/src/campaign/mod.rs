//! A campaign: which cells there are.
//!
//! A campaign's file names values for each axis; its cells are their product, without the excluded
//! combinations. Cells are numbered and made when they are asked for, so that a campaign of a
//! thousand million takes no more memory than one of ten.
//!
//! | file | holds |
//! |---|---|
//! | `file` | the file as it is written |
//! | `numbers` | lists of numbers and of ranges |
//! | `plan` | the file with its globs and machines looked up: the cells by number |
//! | `cell` | one cell and its key |
//! | `error` | what is wrong with a campaign, and where |

mod cell;
mod error;
mod file;
mod numbers;
mod plan;

pub use cell::{Cell, Key, Project, Replay, Simulate};
pub use error::CampaignError;
pub use file::{Campaign, Exclusion, ProjectAxes, ReplayAxes, STUDIES, SimulateAxes};
pub use numbers::Numbers;
pub use plan::{MachineFile, Plan, TraceFile, VERSION};
