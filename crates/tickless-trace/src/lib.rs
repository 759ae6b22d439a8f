//! Kernel traces of timers: recording them, reading them, and performing them again on the timer
//! core under another policy.
//!
//! | module | what |
//! |---|---|
//! | [`record`] | records the kernel's timers from tracefs (root) |
//! | [`read`] | reads what ftrace, trace-cmd and perf print |
//! | [`late`] | explains why threads that slept ran late |
//! | [`replay`] | performs a trace on the real core on a virtual clock, once for each policy |
//!
//! Everything that can go wrong is a value: [`TraceError`] and
//! [`RecordError`](record::RecordError) say what to do next. What is merely damaged in a trace is
//! listed in [`Trace::problems`](read::Trace::problems).
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

pub mod late;
pub mod read;
pub mod record;
pub mod replay;

pub use read::{Trace, TraceError};
