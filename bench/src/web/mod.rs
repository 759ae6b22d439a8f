//! A small web server on tokio and clients that keep it busy: what timers cost where people
//! need them.
//!
//! | file | holds |
//! |---|---|
//! | `guards.rs` | the timers of a server: none, tokio's, ours |
//! | `server.rs` | the server: HTTP/1.1 with keep-alive, the same code with each of them |
//! | `load.rs` | clients, on threads of their own, and what they see |
//! | `trial.rs` | one run of a server under load, and what it came to |

pub mod guards;
mod load;
mod server;
pub mod trial;
