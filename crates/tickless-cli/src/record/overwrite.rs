//! Asking before a file is lost.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use tickless_trace::record::RecordError;

/// Lets a file be overwritten that is not there, or has nothing in it, or that the user gives up.
///
/// # Errors
/// When there is one, and nobody to ask or the answer is no.
pub(crate) fn allow(path: &Path) -> Result<(), RecordError> {
    let is_worth = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
    if !is_worth || io::stdin().is_terminal() && io::stderr().is_terminal() && ask(path) {
        return Ok(());
    }
    Err(RecordError::Exists { path: path.into() })
}

fn ask(path: &Path) -> bool {
    let mut answer = String::new();
    let _ = write!(io::stderr(), "tickless: {}: overwrite it? [y/N] ", path.display());
    let is_read = io::stdin().lock().read_line(&mut answer).is_ok();
    is_read && matches!(answer.trim(), "y" | "Y" | "yes")
}
