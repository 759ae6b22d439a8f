//! Records a kernel's timers from tracefs, for [`replay`](crate::replay) and [`late`](crate::late).
//!
//! Guarantees:
//! - Other users of tracing are not affected: a recording has an instance (trace buffers and
//!   settings) of its own. If tracefs is not mounted, it is mounted such that only this process
//!   sees it.
//! - The instance is always removed: by the recorder when it ends; by a watcher process if the
//!   recorder is killed; if both are killed, by the next recorder, which finds the instance by its
//!   name.
//! - The trace is read after the recording has ended, so that the recorder does not record itself.
//!   [`Live`] is for callers that need events as they occur.
//!
//! | file | contents |
//! |---|---|
//! | `tracefs` | where tracefs is |
//! | `instance` | a recorder's own buffers in it; those that dead recorders left |
//! | `watcher` | a process that outlives a killed recorder, and removes its instance |
//! | `recording` | which events are recorded, with which clock, and their text |
//! | `live` | a recording that is read while it is recorded |
//! | `statistics` | events kept and events dropped |
//! | `idle` | whether the kernel records what its idle threads do |
//! | `kernel` | the kernel's release and tick rate, and its free memory |
//! | `error` | why nothing was recorded, and what to do |

mod error;
mod idle;
mod instance;
mod kernel;
mod live;
mod recording;
mod statistics;
mod tracefs;
mod watcher;

pub use error::RecordError;
pub use idle::{IdleEvents, IdleStops};
pub use instance::remove_leftovers;
pub use kernel::{hz as kernel_hz, stops_idle_ticks};
pub use live::Live;
pub(crate) use recording::IDLE_NOT_RECORDED;
pub use recording::{EXTRA_FOR_DOCTOR, Freezer, Options, Recording, TraceClock};
pub use statistics::Statistics;
pub use tracefs::Tracefs;
pub use watcher::watch_if_asked;
