//! All tests of the crate in one binary.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod agreement;
mod killed;
mod tables;

#[path = "../../../tickless-trace/tests/support/skip.rs"]
mod skip;
