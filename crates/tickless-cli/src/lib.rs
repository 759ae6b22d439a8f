//! What the `tickless` program is made of, as a library so that tests can reach it.

mod cli;
pub mod replay;
pub mod trace;

pub use cli::main;
