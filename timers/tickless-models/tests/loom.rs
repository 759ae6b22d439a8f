//! The models under loom, which explores every schedule up to a number of preemptions, and every
//! value that a load may return: for memory orderings.

#[path = "models/under_loom.rs"]
mod checker;
mod models;
