//! `tickless replay`: its command line, and a summary as tables, JSON or CSV.

pub mod args;
pub mod many;
pub mod show;
