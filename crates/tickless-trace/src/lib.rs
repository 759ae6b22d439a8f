//! Records and reads kernel traces of timers, and replays them on this project's timer core under
//! other policies for programming the timer device.
//!
//! The library prints nothing. The messages of [`TraceError`] and
//! [`RecordError`](record::RecordError) advise the user. [`Trace::problems`](read::Trace::problems)
//! lists damage that leaves the rest of a trace usable.
//!
//! ```no_run
//! use std::path::Path;
//! use tickless_trace::replay::{Inference, ReplayPolicy, summarise};
//! use tickless_trace::Trace;
//!
//! let trace = Trace::read(Path::new("traces/nginx.txt.gz"))?;
//! let summary = summarise(&trace, &ReplayPolicy::DEFAULT, Inference::On);
//! for result in &summary.policies {
//!     println!("{}: {} device writes", result.policy, result.device_writes);
//! }
//! # Ok::<(), tickless_trace::TraceError>(())
//! ```

#![allow(
    missing_docs,
    reason = "internal: names speak for fields, and docs/book/src/json.md explains the JSON"
)]

pub mod late;
pub mod read;
pub mod record;
pub mod replay;

pub use read::{Trace, TraceError};
