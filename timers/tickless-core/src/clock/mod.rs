//! Clocks: from hardware counters to one time for all CPUs.
//!
//! | file | holds |
//! |---|---|
//! | `counter` | a counter: its reading and its width |
//! | `slope` | conversion between counts and nanoseconds, in fixed point |
//! | `segment` | a straight line from counts to time; pure |
//! | `line` | a segment that one thread replaces while others read it, without locks |
//! | `discipline` | measures a counter's rate against another clock; pure |
//! | `combined` | one reader reads a slow shared counter, the others take its value |
//!
//! Files with atomics are generic over [`Word`](crate::word::Word), so that the host, the model
//! checkers and a simulated machine run the same code.

pub mod combined;
pub mod counter;
pub mod discipline;
pub mod line;
pub mod segment;
pub mod slope;
