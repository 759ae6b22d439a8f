//! The fuzz targets: functions that interpret arbitrary bytes as operations of the library, and
//! panic if the library breaks its contract.
//!
//! `fuzz/` runs them under libFuzzer (`ci/fuzz.sh`); `tests/replay.rs` runs the committed corpus
//! and random bytes as plain tests.

#![allow(missing_docs, reason = "an internal crate: each module says what it checks")]
#![expect(clippy::panic, reason = "a fuzz target fails by panicking")]
#![expect(clippy::expect_used, reason = "a fuzz target fails by panicking")]

mod bytes;
#[expect(unsafe_code, reason = "calls the C interface")]
pub mod c;
pub mod campaign;
pub mod machine;
pub mod trace;
pub mod virtual_time;

pub type Target = (&'static str, fn(&[u8]));

/// All targets. `fuzz/` has a libFuzzer program of each name, and `fuzz/corpus/` a folder.
pub const TARGETS: [Target; 5] = [
    ("virtual_time", virtual_time::run),
    ("c", c::run),
    ("trace", trace::run),
    ("machine", machine::run),
    ("campaign", campaign::run),
];
