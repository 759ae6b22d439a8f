//! The fuzz targets: functions that interpret arbitrary bytes as operations of the library, and
//! panic if the library breaks its contract.
//!
//! | target | operations | check |
//! |---|---|---|
//! | [`virtual_time`] | several bases; callbacks that arm, cancel, drop and advance | a model |
//! | [`c`] | calls of the C interface, with invalid handles and numbers | its header's contract |
//! | [`trace`] | reads and replays the bytes as a kernel trace | nothing fires early |
//! | [`machine`] | reads the bytes as a machine file | writing and reading it changes nothing |
//! | [`campaign`] | reads the bytes as the file of a campaign | the numbering of its cells |
//!
//! `fuzz/` runs them under libFuzzer (`ci/fuzz.sh`); `tests/replay.rs` runs the committed corpus
//! and random bytes as plain tests.

#![expect(clippy::panic, reason = "a fuzz target fails by panicking")]
#![expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]

mod bytes;
#[expect(unsafe_code, reason = "calls the C interface")]
pub mod c;
pub mod campaign;
pub mod machine;
pub mod trace;
pub mod virtual_time;

/// The name and the function of a fuzz target.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. `fuzz/` has a libFuzzer program of each name, and `fuzz/corpus/` a folder.
pub const TARGETS: [Target; 5] = [
    ("virtual_time", virtual_time::run),
    ("c", c::run),
    ("trace", trace::run),
    ("machine", machine::run),
    ("campaign", campaign::run),
];
