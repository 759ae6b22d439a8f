//! Performs what is missing of a campaign, in a folder; merges folders into a table.
//!
//! | file | holds |
//! |---|---|
//! | `folder` | a folder of results: its plan, its locks, its parts |
//! | `run` | performs what is missing, on all CPUs |
//! | `session` | what is missing, for engines that perform cells elsewhere |
//! | `shard` | which part of a campaign one process performs |
//! | `merge` | one table of all folders, if they make a whole |
//! | `error` | why a campaign cannot go on |
//!
//! # A folder
//!
//! `campaign.json` is the plan. `parts/` has files of outcomes, a line of JSON for each cell after
//! a first line with the version. A part is written under another name, brought to the disk, and
//! renamed: it is whole or it is not there, so a process that is killed loses the cells since its
//! last part, which is about a second's work. `locks/` has a file for each shard, locked while a
//! process works on it; the system unlocks it when that ends, however it ends.

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
pub use shard::{Shard, ShardError};
