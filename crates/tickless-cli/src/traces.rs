//! Traces as command lines name them: files, patterns, and `-` for standard input.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tickless_trace::Trace;
use tickless_trace::read::TraceError;

/// Reads a trace; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Trace, TraceError> {
    match path.as_os_str() == "-" {
        true => Trace::parse("standard input", io::stdin().lock()),
        false => Trace::read(path),
    }
}

/// A pattern that no file is like.
#[derive(Debug)]
pub struct NoFile(String);

impl fmt::Display for NoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no file is called like that. Check the pattern", self.0)
    }
}

/// The files that are meant: patterns with `*`, `?` or `[` that name no file themselves are
/// expanded, for shells that do not, in the order of names.
pub(crate) fn expand(named: &[PathBuf]) -> Result<Vec<PathBuf>, NoFile> {
    let mut files = Vec::new();
    for path in named {
        let text = path.to_string_lossy();
        if !text.contains(['*', '?', '[']) || path.exists() {
            files.push(path.clone());
            continue;
        }
        let found = glob::glob(&text).map_err(|_| NoFile(text.to_string()))?;
        let before = files.len();
        files.extend(found.flatten());
        if files.len() == before {
            return Err(NoFile(text.to_string()));
        }
    }
    Ok(files)
}
