//! A small web server on tokio, and clients that keep it busy: the cost of timers in practice.
//!
//! | file | holds |
//! |---|---|
//! | `guards.rs` | the timers of a server: none, tokio's, ours; and what requests do with them |
//! | `server.rs` | the server: HTTP/1.1 with keep-alive, generic over its timers |
//! | `load.rs` | clients on threads of their own |
//! | `trial.rs` | one run of a server under load, and its outcome |

pub mod guards;
mod load;
mod server;
pub mod trial;
