//! A small web server on tokio, and clients that keep it busy: the cost of timers in practice.

pub mod guards;
mod load;
mod server;
pub mod trial;
