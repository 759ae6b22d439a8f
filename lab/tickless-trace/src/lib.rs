//! Records and reads kernel traces of timers, and replays them on this project's timer core under
//! other policies for programming the timer device.
//!
//! The library prints nothing. The messages of [`TraceError`] and
//! [`RecordError`](record::RecordError) advise the user. [`Trace::problems`](read::Trace::problems)
//! lists damage that leaves the rest of a trace usable.

#![allow(
    missing_docs,
    reason = "internal: names speak for fields, and docs/book/src/json.md explains the JSON"
)]

pub mod cgroup;
pub mod late;
#[expect(unsafe_code, reason = "maps files of its own into memory")]
mod list;
pub mod quota;
pub mod read;
pub mod record;
pub mod replay;

pub use read::{Trace, TraceError};
