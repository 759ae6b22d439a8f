//! Which process, and which callback of the kernel, uses timers, and what that costs: live.
//!
//! | module | what |
//! |---|---|
//! | [`tally`] | counts events of a trace, or of a kernel as they happen: pure |
//! | [`period`] | finds out whether something expires at one interval: pure |
//! | [`snapshot`] | what was counted until some moment |
//! | [`table`] | what was counted between two moments, by process or by callback, sorted |
//! | [`source`] | where the counts come from: tracefs, or eBPF programs that count in the kernel |
//!
//! Guarantees:
//! - Both sources count the same: the eBPF programs do what [`tally`] does, and a test runs the two
//!   beside each other.
//! - What a source lost or had no place for is counted, and so is what it cost.
//! - Nothing is left behind, however the program ends: the tracefs instance is removed as
//!   [`tickless_trace::record`] does it, and eBPF programs go with the process that loaded them.

pub mod period;
pub mod snapshot;
pub mod source;
pub mod table;
pub mod tally;
