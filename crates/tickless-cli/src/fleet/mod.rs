//! `tickless fleet`.

pub mod args;
pub mod show;
