//! Finds and reads traces named on a command line: files, patterns, and `-` for standard input.

use crate::command::{Failure, complain};
use crate::output::Format;
use std::io;
use std::path::{Path, PathBuf};
use tickless_trace::Trace;
use tickless_trace::read::TraceError;

pub(crate) fn read(path: &Path) -> Result<Trace, TraceError> {
    match path.as_os_str() == "-" {
        true => Trace::parse("standard input", io::stdin().lock()),
        false => Trace::read(path),
    }
}

/// Shows what is wrong with a trace on standard error. A JSON document has it before its `notes`,
/// because a program reads nothing else.
pub(crate) fn complain_of(trace: &Trace, format: Format, notes: &mut Vec<String>) {
    let messages: Vec<String> = trace.messages().collect();
    messages.iter().for_each(complain);
    if format == Format::Json {
        notes.splice(0..0, messages);
    }
}

/// Expands patterns with `*`, `?` or `[` to the sorted names of matching files, for shells that do
/// not expand patterns. The name of an existing file is not treated as a pattern.
pub(crate) fn expand(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        let text = path.to_string_lossy();
        if !text.contains(['*', '?', '[']) || path.exists() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        files.extend(glob::glob(&text).into_iter().flatten().flatten());
        if files.len() == before {
            let what = format!("{text}: no file is called like that. Check the pattern");
            return Err(Failure::new(what));
        }
    }
    Ok(files)
}
