//! Performs the missing cells of a campaign, in a folder; merges folders into a table.
//!
//! | file | holds |
//! |---|---|
//! | `folder` | a folder of results: its plan, its locks, its parts |
//! | `run` | performs the missing cells, on all CPUs |
//! | `session` | the missing cells, for engines that perform them elsewhere |
//! | `shard` | the part of a campaign that one process performs |
//! | `merge` | one table of all folders, if no cell is missing |
//! | `error` | why a campaign cannot continue |
//!
//! # A folder
//!
//! `campaign.json` is the plan. `parts/` has files of outcomes: a first line with the version, then
//! a line of JSON for each cell. A part is written under another name, synced to the disk, and
//! renamed, so it is whole or absent: a process that is killed loses the cells since its last part,
//! about a second's work. `locks/` has a file for each shard, locked while a process works on it;
//! the system unlocks it when the process ends, however it ends.

mod error;
mod folder;
mod merge;
mod run;
mod session;
mod shard;

pub use error::SweepError;
pub use folder::{Folder, Status};
pub use merge::{Merged, merge, rows};
pub use run::{Done, Retry, run};
pub use session::Session;
pub use shard::Shard;
