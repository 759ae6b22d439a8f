//! The library's tests: one binary, because linking takes longer than most of them.
//!
//! Separate binaries hold tests that affect the whole process: `fork` forks it, `stress` uses all
//! CPUs, and `observing` needs features that are off by default. A test in this binary that exits,
//! traces or restricts a process does so in a child process: this binary with only that test.
//!
//! Tests that need Linux are not on the portable platform: `cfg(linux_platform)`, see `build.rs`.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(clippy::incompatible_msrv, reason = "tests are built with the pinned compiler")]

mod api;
mod attack;
mod auto_advance;
#[cfg(linux_platform)]
mod bandwidth;
mod cancel_sync;
#[cfg(linux_platform)]
mod clock_timer;
#[cfg(linux_platform)]
mod clocks;
mod deadlines;
mod deferred;
#[cfg(linux_platform)]
mod devices;
mod drop_order;
mod embed;
#[cfg(linux_platform)]
mod event_loop;
mod exact_time;
mod extremes;
mod future;
mod identity;
mod in_callbacks;
mod limiter;
mod never_early;
mod panics;
mod periodic;
mod phases;
mod placement;
#[cfg(linux_platform)]
#[expect(unsafe_code, reason = "seccomp(2) has no safe function")]
mod refused;
mod shortage;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
#[cfg(linux_platform)]
mod system_calls;
mod virtual_time;
mod wakeup;
mod waking;
