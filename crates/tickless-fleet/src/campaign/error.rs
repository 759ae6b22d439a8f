//! What is wrong with a campaign, and where.

use std::fmt;
use std::io;

/// Why there is no campaign to run.
#[derive(Debug)]
pub enum CampaignError {
    /// The file cannot be read.
    Read {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file says something that cannot be.
    File {
        /// The file.
        file: String,
        /// Its line, from 1; 0 if it is about the whole.
        line: usize,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// A machine does not exist or does not parse: the machine's file, line and key are in it.
    Machine {
        /// The campaign's file.
        file: String,
        /// What is wrong with the machine.
        what: String,
    },
    /// There are no cells.
    Empty {
        /// The file.
        file: String,
        /// What there is none of.
        what: String,
    },
}

impl fmt::Display for CampaignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CampaignError::Read { file, error } => {
                write!(f, "{file}: cannot be read: {error}; name a campaign's file")
            }
            CampaignError::File { file, line: 0, what } => write!(f, "{file}: {what}"),
            CampaignError::File { file, line, what } => write!(f, "{file}:{line}: {what}"),
            CampaignError::Machine { file, what } => write!(f, "{file}: {what}"),
            CampaignError::Empty { file, what } => {
                write!(f, "{file}: there are no cells to run: {what}")
            }
        }
    }
}

impl std::error::Error for CampaignError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CampaignError::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}
