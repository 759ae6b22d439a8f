//! The program `tickless`: its arguments, tables and progress bars. The results that it shows are
//! computed by the crates `tickless-lab`, `tickless-fleet`, `tickless-top`, `tickless-trace` and
//! `tickless-warp`.

mod bars;
mod cli;
mod command;
mod compare;
mod doctor;
mod late;
mod latency;
mod machines;
mod manual;
mod output;
mod progress;
mod project;
mod quota;
mod record;
mod replay;
mod report;
mod selection;
mod study;
mod sweep;
mod top;
mod traces;
mod values;
mod warp;

pub use cli::main;
