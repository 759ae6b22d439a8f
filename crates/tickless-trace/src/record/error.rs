//! Why nothing was recorded, and what to do about it.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why nothing was recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Only root may use tracefs.
    #[error(
        "only root may record: tracefs is closed to others. Run it with sudo; replaying needs no \
         rights"
    )]
    NotPermitted,
    /// The kernel has no tracefs.
    #[error(
        "this kernel has no tracefs. Record on one that was built with CONFIG_FTRACE, or replay \
         one of traces/"
    )]
    NoTracefs,
    /// Tracefs is not mounted, and could not be mounted for this program alone.
    #[error(
        "tracefs is not mounted, and mounting it for this program alone failed ({error}). \
         Mount it: mount -t tracefs tracefs /sys/kernel/tracing"
    )]
    NotMounted {
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The kernel has tracefs, but not the events of its timers.
    #[error(
        "this kernel's tracefs has no timer events. Record on a kernel with CONFIG_TRACING; its \
         traces can be replayed and explained here"
    )]
    NoTimerEvents,
    /// There is no such event.
    #[error(
        "{event}: no such event in this kernel. Name it as SYSTEM:EVENT, such as \
         sched:sched_switch; all are in /sys/kernel/tracing/available_events"
    )]
    NoEvent {
        /// The event as the caller named it.
        event: String,
    },
    /// An instance could not be made.
    #[error(
        "tracefs made no instance ({error}). See whether the kernel is locked down \
         (/sys/kernel/security/lockdown), and whether many instances are left over"
    )]
    Instance {
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The buffers are larger than the kernel's free memory.
    #[error("no buffers of {kilobytes} KB for each CPU ({error}). Ask for less with --buffer")]
    Buffer {
        /// Kilobytes for each CPU.
        kilobytes: u64,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// Tracefs refused a setting.
    #[error(
        "tracefs refused {value:?} for {file} ({error}). This kernel cannot record that; leave the \
         option out that asks for it"
    )]
    Setting {
        /// The file in the instance.
        file: String,
        /// What was written to it.
        value: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// What was recorded could not be read.
    #[error("what was recorded cannot be read ({error}). Record again")]
    Read {
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The file could not be written.
    #[error("{}: cannot be written ({error}). Name another file with -o", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The file exists already.
    #[error(
        "{}: is there already. Overwrite it with --force, or name another file with -o",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The command could not be started.
    #[error("{name}: cannot be started ({error}). Check the name of the command")]
    Command {
        /// Its name.
        name: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}
