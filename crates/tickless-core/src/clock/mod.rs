//! Clocks: from counters that hardware offers to a time that everybody agrees on.
//!
//! | file | holds | contract |
//! |---|---|---|
//! | `counter` | what a counter is: a reading, a width, a frequency, a rating | C7 |
//! | `slope` | cycles to nanoseconds and back, in fixed point | C7 |
//! | `segment` | a straight line from counts to time; pure | C7, C8 |
//! | `line` | a segment that is replaced while it is read, without locks | C8 |
//! | `discipline` | how fast a counter runs by another clock; pure | C8 |
//! | `combined` | one reader reads a slow shared counter, the others take its value | C1-C6 |
//! | `ratchet` | keeps a counter that may go back from doing so | C8 |
//! | `sources` | the counters that a machine has, and which of them is the best; pure | C9 |
//! | `watchdog` | tells a disturbed reading from a bad counter; pure | C9 |
//! | `timekeeper` | monotonic, boottime and realtime, over the best counter | C7-C9, H5 |
//! | `skew` | do two CPUs read the same counter alike? | C8 |
//!
//! `line`, `combined`, `ratchet`, `timekeeper` and `skew` are generic over
//! [`Word`](crate::word::Word), so that the host, the model checkers and a simulated machine
//! run the same code; everything else knows neither words nor threads. Nothing here reads a
//! clock of its own accord: counters are passed in.

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
