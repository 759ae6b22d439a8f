//! The simulated machines: finds them by name, and describes this host as one of them.

mod find;
pub mod measured;
mod micro;
mod transfer;

pub use find::find;
