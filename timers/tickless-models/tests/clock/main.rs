//! Models of the clocks under loom, which explores every schedule up to a number of preemptions,
//! and every value that a load may return.
//! `TICKLESS_MODELS=deep` selects the bounds of each model, as in `ci/models.sh`.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod combined;
mod line;
mod support;
mod takeover;
#[path = "../models/word.rs"]
mod word;
