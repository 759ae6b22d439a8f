//! The library's tests: one binary, since linking takes longer than most of them.
//!
//! Apart are those that change the whole process: `fork` forks it, `stress` takes all of it, and
//! `observing` needs features that are off by default. A test in here that ends, traces or
//! restricts a process does so to a child, which is this binary with that test alone.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod api;
mod auto_advance;
mod bandwidth;
mod cancel;
mod cancel_sync;
mod clock_timer;
mod clocks;
mod deferred;
mod devices;
mod drop_order;
mod event_loop;
mod extremes;
mod far_futures;
mod future;
mod in_callbacks;
mod never_early;
mod panics;
mod periodic;
mod phases;
mod placement;
mod policies;
mod refused;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
mod system_calls;
mod virtual_time;
mod waking;
