//! Errors with the names of `tokio::time::error`.

use std::fmt;

/// The deadline of a timeout has passed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Elapsed(pub(super) ());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}

/// For `?` on what waits with tokio's own timers.
impl From<tokio::time::error::Elapsed> for Elapsed {
    fn from(_: tokio::time::error::Elapsed) -> Elapsed {
        Elapsed(())
    }
}

impl From<Elapsed> for std::io::Error {
    fn from(_: Elapsed) -> std::io::Error {
        std::io::ErrorKind::TimedOut.into()
    }
}
