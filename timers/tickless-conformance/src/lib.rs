#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "most names of results say what they are")]

mod checks;
mod fault;
mod history;
mod judge;
mod measure;
mod play;
mod report;
mod shrink;
mod source;
mod timers;

pub use fault::Fault;
pub use history::Op;
pub use measure::{CLUSTER, CountingAllocator, Measured, bytes_in_use};
pub use play::play;
pub use report::{Checked, Effort, Report, Verdict, check};
pub use shrink::shrink;
pub use source::test_source;
pub use timers::{Cancel, NextEvent, Order, Rounding, Timers};
