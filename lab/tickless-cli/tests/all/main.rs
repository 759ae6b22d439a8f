//! The program's tests: one binary, which runs the program itself.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod doctor;
mod json;
mod late;
mod latency;
mod live;
mod machines;
mod manual;
mod quota;
mod record;
mod refusals;
mod replay;
mod report;
mod run;
mod study;
mod sweep;
mod top;
mod transcripts;

#[path = "../../../tickless-trace/tests/support/mod.rs"]
mod support;
