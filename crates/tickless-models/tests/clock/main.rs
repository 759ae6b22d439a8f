//! The clocks under a model checker: every schedule up to so many preemptions, and every value
//! that a load may return (loom).
//!
//! `cargo test` explores little, so that it stays quick; with `TICKLESS_MODELS=deep`, as in
//! `ci/models.sh`, the bounds are those that the models ask for, and with `LOOM_MAX_PREEMPTIONS`
//! what that says. What is broken to see each of them fail is listed in `ci/mutations/`.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod combined;
mod line;
mod skew;
mod takeover;
mod timekeeper;
mod world;
