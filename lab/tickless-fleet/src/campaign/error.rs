//! What is wrong with a campaign's file.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct CampaignError {
    pub file: String,
    /// The line, counted from 1; `None` if the error concerns the whole file.
    pub line: Option<usize>,
    pub what: String,
}
