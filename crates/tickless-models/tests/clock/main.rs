//! Models of the clocks under loom, which explores every schedule up to a number of preemptions,
//! and every value that a load may return.
//!
//! `cargo test` explores little, so that it is quick. With `TICKLESS_MODELS=deep`, as in
//! `ci/models.sh`, the bounds are those of each model; `LOOM_MAX_PREEMPTIONS` overrides them.
//! `ci/mutations/` lists changes that must make these fail.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod combined;
mod line;
mod skew;
mod support;
mod takeover;
mod timekeeper;
#[path = "../models/word.rs"]
mod word;
