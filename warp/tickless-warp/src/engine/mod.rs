//! The tracer: what it does when a traced thread stops, and when it moves the clock.

mod answers;
mod clock;
mod effects;
mod install;
mod log;
mod outside;
mod run;
mod sockets;
mod state;
mod stops;
mod timer;
mod timers;
mod untraced;
mod waits;
mod ways;

pub use crate::sys::launch::end_by;
pub use run::run;
