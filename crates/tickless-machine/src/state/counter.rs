//! A counter that is read one at a time.

use crate::ps::Ps;

/// A counter that all CPUs share.
#[derive(Debug)]
pub(crate) struct Counter {
    /// It is busy until then.
    pub free: Ps,
    pub reads: u64,
    /// The clock it shows stands still from then on.
    pub frozen: Ps,
}

/// A counter's number in its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterId(pub(crate) usize);
