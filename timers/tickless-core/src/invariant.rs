//! What the full checks of wheels, queues, bases and bandwidth groups return.

use core::fmt;

/// A broken invariant: a bug of this crate, or a violation of the rules of its unsafe functions.
/// Stop using the checked object, and report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokenInvariant(pub &'static str);

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for BrokenInvariant {}
