//! The tracer: what it does at each stop, and when it moves the clock.

mod answers;
mod clock;
mod install;
mod run;
mod state;
mod stops;
mod waits;

pub use run::run;
