//! `tickless project`.

pub mod args;
pub mod show;
