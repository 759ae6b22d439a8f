//! All tests of reading and replaying traces in one binary.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod cases;
mod dat;
mod perf;
mod replay_property;
mod replay_samples;
mod trace_damage;
mod trace_soundness;

#[path = "../support/mod.rs"]
mod support;
