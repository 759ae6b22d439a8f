//! The `tickless` program: arguments, tables, progress. What it shows is made in `tickless-lab` and
//! `tickless-trace`.

mod bars;
mod choice;
mod cli;
mod doctor;
mod duration;
mod hangup;
mod late;
mod latency;
mod machines;
mod manual;
mod output;
mod progress;
mod record;
mod replay;
mod report;
mod study;

pub use cli::main;
