//! Why nothing was recorded, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why nothing was recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// Only root may use tracefs.
    NotPermitted,
    /// The kernel has no tracefs.
    NoTracefs,
    /// Tracefs is not mounted, and could not be mounted for this program alone.
    NotMounted {
        /// What the system said.
        error: io::Error,
    },
    /// The kernel has tracefs without the events of its timers.
    NoTimerEvents,
    /// There is no such event.
    NoEvent {
        /// As it was asked for.
        event: String,
    },
    /// An instance could not be made.
    Instance {
        /// What the system said.
        error: io::Error,
    },
    /// The buffers are larger than what the kernel has left.
    Buffer {
        /// Kilobytes for each CPU.
        kilobytes: u64,
        /// What the system said.
        error: io::Error,
    },
    /// Tracefs refused a setting.
    Setting {
        /// The file in the instance.
        file: String,
        /// What was written to it.
        value: String,
        /// What the system said.
        error: io::Error,
    },
    /// What was recorded could not be read.
    Read {
        /// What the system said.
        error: io::Error,
    },
    /// The file could not be written.
    Output {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is there already.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The command could not be started.
    Command {
        /// Its name.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NotPermitted => f.write_str(
                "only root may record: tracefs is closed to others. Run it with sudo; replaying \
                 needs no rights",
            ),
            RecordError::NoTracefs => f.write_str(
                "this kernel has no tracefs. Record on one that was built with CONFIG_FTRACE, \
                 or replay one of traces/",
            ),
            RecordError::NotMounted { error } => write!(
                f,
                "tracefs is not mounted, and mounting it for this program alone failed ({error}). \
                 Mount it: mount -t tracefs tracefs /sys/kernel/tracing"
            ),
            RecordError::NoTimerEvents => f.write_str(
                "this kernel's tracefs has no timer events. Record on a kernel with \
                 CONFIG_TRACING; its traces can be replayed and explained here",
            ),
            RecordError::NoEvent { event } => write!(
                f,
                "{event}: no such event in this kernel. Name it as SYSTEM:EVENT, such as \
                 sched:sched_switch; all are in /sys/kernel/tracing/available_events"
            ),
            RecordError::Instance { error } => write!(
                f,
                "tracefs made no instance ({error}). See whether the kernel is locked down \
                 (/sys/kernel/security/lockdown), and whether many instances are left over"
            ),
            RecordError::Buffer { kilobytes, error } => write!(
                f,
                "no buffers of {kilobytes} KB for each CPU ({error}). Ask for less with --buffer"
            ),
            RecordError::Setting { file, value, error } => write!(
                f,
                "tracefs refused {value:?} for {file} ({error}). This kernel cannot record that; \
                 leave the option out that asks for it"
            ),
            RecordError::Read { error } => {
                write!(f, "what was recorded cannot be read ({error}). Record again")
            }
            RecordError::Output { path, error } => write!(
                f,
                "{}: cannot be written ({error}). Name another file with -o",
                path.display()
            ),
            RecordError::Exists { path } => write!(
                f,
                "{}: is there already. Overwrite it with --force, or name another file with -o",
                path.display()
            ),
            RecordError::Command { name, error } => {
                write!(f, "{name}: cannot be started ({error}). Check the name of the command")
            }
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::NotMounted { error }
            | RecordError::Instance { error }
            | RecordError::Buffer { error, .. }
            | RecordError::Setting { error, .. }
            | RecordError::Read { error }
            | RecordError::Output { error, .. }
            | RecordError::Command { error, .. } => Some(error),
            _ => None,
        }
    }
}
