//! The core's tests, as one binary, because linking takes longer than most of them.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(clippy::incompatible_msrv, reason = "tests are built with the pinned compiler")]

mod bandwidth;
mod cancel_sync;
mod deferred;
mod device;
mod end_of_time;
mod expiry;
mod holdings;
mod local;
mod migrate;
#[expect(unsafe_code, reason = "tests own the memory of their timers")]
mod owned;
mod pending;
mod phase;
#[expect(unsafe_code, reason = "tests own the nodes that they pass in")]
mod queue;
mod rearm;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod support;
mod wheel;
