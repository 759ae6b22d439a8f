//! `tickless study`: its command line, and a study as tables, JSON or CSV.

pub mod args;
mod plot;
pub mod show;
