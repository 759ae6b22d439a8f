//! Why a campaign cannot go on. What was done stays.

use crate::campaign::Key;
use crate::row::TableError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a campaign cannot go on.
#[derive(Debug)]
pub enum SweepError {
    /// A file of the folder cannot be read or written: a full disk, most of all.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder has no plan.
    NoCampaign(PathBuf),
    /// A file of the folder is not what this program writes.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Another process works on the same cells.
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The folder holds another campaign's results, and a process works on that.
    OtherCampaign(PathBuf),
    /// Folders that are to be merged hold results of several campaigns.
    Differ(PathBuf, PathBuf),
    /// A part was written by another version of the program.
    Version {
        /// The part.
        path: PathBuf,
        /// Its version.
        found: String,
        /// That of the campaign.
        wanted: String,
    },
    /// Cells have no result.
    Missing {
        /// How many.
        count: u64,
        /// One of them.
        example: Key,
    },
    /// A cell has more than one result.
    Double {
        /// The cell.
        key: Key,
        /// Where.
        parts: [PathBuf; 2],
    },
    /// The table cannot be written.
    Table(TableError),
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepError::File { path, error } => {
                write!(f, "{}: {error}; what was done before stays", path.display())
            }
            SweepError::NoCampaign(path) => write!(
                f,
                "{}: there is no campaign.json; name a folder that `tickless sweep --out` made",
                path.display()
            ),
            SweepError::Damaged { path, line, what } => {
                write!(f, "{}:{line}: {what}; remove the file, and run again", path.display())
            }
            SweepError::Locked { path } => write!(
                f,
                "{}: another process works on these cells; wait for it, or name another folder",
                path.display()
            ),
            SweepError::OtherCampaign(path) => write!(
                f,
                "{}: another process works on another campaign here; name another folder",
                path.display()
            ),
            SweepError::Differ(one, other) => write!(
                f,
                "{} and {} hold results of different campaigns; merge each by itself",
                one.display(),
                other.display()
            ),
            SweepError::Version { path, found, wanted } => write!(
                f,
                "{}: made by version {found}, and the campaign is of {wanted}; remove it, and run \
                 the campaign again for what is missing then",
                path.display()
            ),
            SweepError::Missing { count, example } => write!(
                f,
                "{count} cells are missing, such as {example}; run the campaign again for them"
            ),
            SweepError::Double { key, parts: [one, other] } => write!(
                f,
                "cell {key} is in {} and in {}; remove one of the two files, and run the campaign \
                 again for what is missing then",
                one.display(),
                other.display()
            ),
            SweepError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SweepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SweepError::File { error, .. } => Some(error),
            SweepError::Table(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TableError> for SweepError {
    fn from(error: TableError) -> SweepError {
        SweepError::Table(error)
    }
}
