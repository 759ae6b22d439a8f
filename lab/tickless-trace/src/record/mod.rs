//! Records a kernel's timers from tracefs, for [`replay`](crate::replay) and [`late`](crate::late).
//!
//! `docs/book/src/record.md` has the guarantees: other users of tracing are not affected, and the
//! tracefs instance is always removed.
//!
//! The trace is read after the recording has ended, so that the recorder does not record itself.

mod dat;
mod error;
mod idle;
mod instance;
mod kernel;
mod recording;
mod statistics;
mod tracefs;
mod watcher;

pub use error::RecordError;
pub use idle::{IdleEvents, IdleStops};
pub use kernel::{hz as kernel_hz, stops_idle_ticks};
pub use recording::{EXTRA_FOR_DOCTOR, Options, Recording};
pub use statistics::Statistics;
pub use tracefs::Tracefs;
pub use watcher::watch_if_asked;
