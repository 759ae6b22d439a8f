//! Why a campaign cannot continue.

use crate::campaign::Key;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("{path}: {error}; what was done before stays")]
    File { path: PathBuf, error: io::Error },
    #[error("{0}: there is no campaign.json; name a folder that `tickless sweep --out` made")]
    NoCampaign(PathBuf),
    #[error("{path}:{line}: {what}; remove the file, and run again")]
    Damaged { path: PathBuf, line: usize, what: String },
    #[error("{path}: another process works on these cells; wait for it, or name another folder")]
    Locked { path: PathBuf },
    #[error("{0}: another process works on another campaign here; name another folder")]
    OtherCampaign(PathBuf),
    #[error("{0} and {1} hold results of different campaigns; merge each by itself")]
    Differ(PathBuf, PathBuf),
    #[error(
        "{path}: made by version {found}, and the campaign is of {wanted}; remove it, and run the \
         campaign again for what is missing then"
    )]
    Version { path: PathBuf, found: String, wanted: String },
    #[error("{count} cells are missing, such as {example}; run the campaign again for them")]
    Missing { count: u64, example: Key },
    #[error(
        "cell {key} is in {} and in {}; remove one of the two files, and run the campaign again \
         for what is missing then",
        parts[0].display(), parts[1].display()
    )]
    Double { key: Key, parts: [PathBuf; 2] },
    #[error("{0}: name a file that ends in .csv")]
    TableName(PathBuf),
    #[error("{path}: cannot be written: {error}; name another file")]
    Table { path: PathBuf, error: io::Error },
}
