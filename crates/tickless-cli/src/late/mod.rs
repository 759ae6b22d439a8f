//! `tickless late`: its command line, and the causes of late sleeps as tables, JSON or CSV.

pub mod args;
pub mod show;
