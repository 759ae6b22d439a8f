//! `tickless doctor`: its command line, and findings as text, JSON or CSV.

pub mod args;
pub mod show;
