//! A small web server on tokio, and clients that keep it busy: the cost of timers in practice.
//!
//! | file | holds |
//! |---|---|
//! | `guards.rs` | the timers of a server: none, tokio's, ours |
//! | `in_runtime.rs` | servers that wait for timers: tokio's, and ours in tokio's runtime |
//! | `server.rs` | the server: HTTP/1.1 with keep-alive, generic over its timers |
//! | `load.rs` | clients on threads of their own |
//! | `trial.rs` | one run of a server under load, and its outcome |

pub mod guards;
pub mod in_runtime;
mod load;
mod server;
pub mod trial;
