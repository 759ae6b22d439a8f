//! What the `tickless` program is made of, as a library so that tests can reach it.

mod cli;
pub mod doctor;
pub mod interrupt;
pub mod latency;
pub mod machines;
pub mod manual;
pub mod measure;
pub mod output;
pub mod progress;
pub mod record;
pub mod replay;
pub mod report;
pub mod study;
pub mod trace;

pub use cli::main;
