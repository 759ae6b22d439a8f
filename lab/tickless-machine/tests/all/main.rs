//! The simulated machine's tests: one binary.

// Tests panic, print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod engine;
mod fuzz;
mod scheduler;
mod spec;
