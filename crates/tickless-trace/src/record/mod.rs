//! Records a kernel's timers from tracefs: what [`replay`](crate::replay) replays.
//!
//! Guarantees:
//! - Other users of tracing are left alone: the recording has an instance of its own, and tracefs
//!   is mounted where only this process sees it if it is not mounted.
//! - The instance is removed however the recorder ends: by itself, by a watcher if it is killed,
//!   and if both were killed by the next recorder, which finds it by its name.
//! - Nothing is read while it is recorded, so that the recorder is not in what it records;
//!   [`Live`] is for those that must see now what happens now.
//!
//! | file | what |
//! |---|---|
//! | `tracefs` | where tracefs is |
//! | `instance` | a recorder's own buffers in it; those that dead recorders left |
//! | `watcher` | a process that outlives a killed recorder, and removes its instance |
//! | `recording` | what is recorded, from which clock, and into which text |
//! | `live` | a recording that is read while it is recorded |
//! | `statistics` | events kept and events dropped |
//! | `idle` | whether the kernel records what its idle threads do |
//! | `kernel` | the kernel's release and tick rate |
//! | `size` | how large buffers are if nobody says |
//! | `error` | why nothing was recorded, and what to do |

mod error;
mod idle;
mod instance;
mod kernel;
mod live;
mod recording;
mod size;
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
