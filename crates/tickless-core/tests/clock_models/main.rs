//! The clocks under a model checker: every schedule up to so many preemptions, and every value
//! that a load may return (loom).
//!
//! `LOOM_MAX_PREEMPTIONS` overrides the bounds that the models ask for. What was broken to see
//! each of them fail stands in `docs/mutations.md`.

mod combined;
mod line;
mod skew;
mod takeover;
mod timekeeper;
mod world;
