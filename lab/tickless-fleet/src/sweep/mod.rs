//! Computes the cells (single computations) of a campaign whose results are missing, stores the
//! results in a folder, and merges folders into a table.
//!
//! # A folder
//!
//! `campaign.json` is the plan. `parts/` has files of results: a first line with the version, a
//! line of JSON for each cell, and a last line with a checksum. A part is written under a temporary
//! name, synced to the disk, and renamed, so it is never incomplete. A process that is killed loses
//! only the cells since its last part, about a second's work. `locks/` has a file for each shard,
//! which is locked while a process computes that shard. The operating system unlocks the file when
//! the process ends, even if it is killed.

mod error;
mod folder;
mod merge;
mod run;
mod session;
mod shard;

pub use error::SweepError;
pub use folder::{Folder, Status};
pub use merge::{Merged, merge, rows};
pub use run::{Done, run};
pub use session::{Retry, Session};
pub use shard::Shard;
