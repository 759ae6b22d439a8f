//! Why a campaign cannot continue.

use crate::campaign::Key;
use crate::row::TableError;
use std::io;
use std::path::PathBuf;

/// The reason why a campaign cannot continue. Results that were already written remain.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file in the folder of results cannot be read or written, for example because the disk is
    /// full.
    #[error("{path}: {error}; what was done before stays")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder has no plan.
    #[error("{0}: there is no campaign.json; name a folder that `tickless sweep --out` made")]
    NoCampaign(PathBuf),
    /// A file in the folder of results was not written by this program, or has been changed since.
    #[error("{path}:{line}: {what}; remove the file, and run again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The damage.
        what: String,
    },
    /// Another process is computing the same cells.
    #[error("{path}: another process works on these cells; wait for it, or name another folder")]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The folder holds another campaign's results, and another process is computing that campaign
    /// now.
    #[error("{0}: another process works on another campaign here; name another folder")]
    OtherCampaign(PathBuf),
    /// The folders to be merged hold results of different campaigns.
    #[error("{0} and {1} hold results of different campaigns; merge each by itself")]
    Differ(PathBuf, PathBuf),
    /// A file of results was written by another version of the program.
    #[error(
        "{path}: made by version {found}, and the campaign is of {wanted}; remove it, and run the \
         campaign again for what is missing then"
    )]
    Version {
        /// The part.
        path: PathBuf,
        /// The part's version.
        found: String,
        /// The campaign's version.
        wanted: String,
    },
    /// Cells have no result.
    #[error("{count} cells are missing, such as {example}; run the campaign again for them")]
    Missing {
        /// How many.
        count: u64,
        /// One of them.
        example: Key,
    },
    /// Two files have a result for one cell.
    #[error(
        "cell {key} is in {} and in {}; remove one of the two files, and run the campaign again \
         for what is missing then",
        parts[0].display(), parts[1].display()
    )]
    Double {
        /// The cell.
        key: Key,
        /// The two parts.
        parts: [PathBuf; 2],
    },
    /// The table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
}
