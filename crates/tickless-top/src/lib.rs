//! Counts which processes and which kernel callbacks use timers, and what that costs, live.
//!
//! Guarantees:
//! - eBPF programs in the kernel, and this program when it reads events from tracefs, give equal
//!   counts: both follow the rules of [`tally`], and a test compares their counts.
//! - The tables show how many events were lost, what was not counted because a table was full, and
//!   how much CPU time the counting itself took.
//! - Nothing remains in the kernel, however the program ends: [`tickless_trace::record`] removes
//!   the tracefs instance, and eBPF programs end with the process that loaded them.

#![allow(
    missing_docs,
    reason = "internal: names speak for fields, and docs/book/src/json.md explains the JSON"
)]

pub mod period;
pub mod snapshot;
pub mod source;
pub mod table;
pub mod tally;
