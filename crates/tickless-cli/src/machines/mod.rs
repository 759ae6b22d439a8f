//! `tickless machines`: its command line, and the machines with their numbers as tables.

pub mod args;
mod list;
