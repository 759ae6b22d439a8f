//! What is fuzzed: functions that take any bytes, perform what these spell, and panic where the
//! library does something that it must not.
//!
//! | target | performs | compares with |
//! |---|---|---|
//! | [`local`] | the whole interface of `LocalTimers`, with made-up and outdated keys | a list |
//! | [`virtual_time`] | several bases; callbacks that arm, cancel, drop and advance | a list |
//! | [`c`] | calls in C, with bad handles and odd numbers | what its header says |
//! | [`trace`] | bytes as a kernel trace, read and replayed | nothing fires early |
//! | [`machine`] | bytes as the file of a simulated machine | what is read is written alike |
//! | [`campaign`] | bytes as the file of a campaign | no cell but its own, none without end |
//!
//! `fuzz/` runs them under libFuzzer (`ci/fuzz.sh`); `tests/replay.rs` performs the committed
//! corpus, and random bytes, as plain tests.

#![expect(clippy::panic, reason = "a fuzz target fails by panicking")]
#![expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]

mod bytes;
#[expect(unsafe_code, reason = "calls the C interface")]
pub mod c;
pub mod campaign;
pub mod local;
pub mod machine;
pub mod trace;
pub mod virtual_time;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets; the name is that of the fuzz target and of its folder in `fuzz/corpus/`.
pub const TARGETS: [Target; 6] = [
    ("local", local::run),
    ("virtual_time", virtual_time::run),
    ("c", c::run),
    ("trace", trace::run),
    ("machine", machine::run),
    ("campaign", campaign::run),
];
