//! The tests of the studies, the verdicts and the pages made of them: one binary.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod doctor;
mod readme;
mod studies;

#[path = "../../../tickless-trace/tests/support/mod.rs"]
mod support;
