//! The library's tests: one binary.

// A test fails by panicking, and may print.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod project;
