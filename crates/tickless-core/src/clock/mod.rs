//! Clocks: from hardware counters to one time for all CPUs.
//!
//! | file | holds |
//! |---|---|
//! | `counter` | a counter: its reading, width, frequency and rating |
//! | `slope` | conversion between counts and nanoseconds, in fixed point |
//! | `segment` | a straight line from counts to time; pure |
//! | `line` | a segment that one thread replaces while others read it, without locks |
//! | `discipline` | measures a counter's rate against another clock; pure |
//! | `combined` | one reader reads a slow shared counter, the others take its value |
//! | `ratchet` | makes a counter that never goes back from one that may |
//! | `sources` | the counters of a machine, and which of them is the best; pure |
//! | `watchdog` | finds bad counters, and does not mistake a disturbed reading for one; pure |
//! | `timekeeper` | the monotonic, boottime and realtime clocks, computed from the best counter |
//! | `skew` | checks whether two CPUs read the same values from a counter |
//!
//! Files with atomics are generic over [`Word`](crate::word::Word), so that the host, the model
//! checkers and a simulated machine run the same code.

pub mod combined;
pub mod counter;
pub mod discipline;
pub mod line;
pub mod ratchet;
pub mod segment;
pub mod skew;
pub mod slope;
pub mod sources;
pub mod timekeeper;
pub mod watchdog;
