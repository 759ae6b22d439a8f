//! Systems on which time cannot be virtual for whole programs.

use crate::error::WarpError;
use crate::options::{Note, Options, Outcome};
use std::ffi::OsString;

/// Refuses to run the program.
///
/// # Errors
///
/// [`WarpError::Platform`], always.
pub fn run(
    _program: &OsString,
    _args: &[OsString],
    _options: &Options,
    _notes: &mut dyn FnMut(Note),
) -> Result<Outcome, WarpError> {
    Err(WarpError::Platform)
}

/// Does nothing: no program has run.
pub fn end_by(_signal: i32) {}
