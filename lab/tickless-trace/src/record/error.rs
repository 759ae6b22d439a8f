//! The errors of a recording: why nothing was recorded, and what to do about it.

use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error(
        "only root may record: tracefs is closed to others. Run it with sudo; replaying needs no \
         rights"
    )]
    NotPermitted,
    #[error(
        "this kernel has no tracefs. Record on one that was built with CONFIG_FTRACE, or replay \
         one of traces/"
    )]
    NoTracefs,
    #[error(
        "tracefs is not mounted, and mounting it for this program alone failed ({0}). \
         Mount it: mount -t tracefs tracefs /sys/kernel/tracing"
    )]
    NotMounted(io::Error),
    #[error(
        "this kernel's tracefs has no timer events. Record on a kernel with CONFIG_TRACING; its \
         traces can be replayed and explained here"
    )]
    NoTimerEvents,
    #[error(
        "{event}: no such event in this kernel. Name it as SYSTEM:EVENT, such as \
         sched:sched_switch; all are in /sys/kernel/tracing/available_events"
    )]
    NoEvent { event: String },
    #[error(
        "tracefs made no instance ({0}). See whether the kernel is locked down \
         (/sys/kernel/security/lockdown), and whether many instances are left over"
    )]
    Instance(io::Error),
    #[error("no buffers of {kilobytes} KB for each CPU ({error}). Ask for less with --buffer")]
    Buffer { kilobytes: u64, error: io::Error },
    #[error(
        "tracefs refused {value:?} for {file} ({error}). This kernel cannot record that; leave the \
         option out that asks for it"
    )]
    Setting { file: String, value: String, error: io::Error },
    #[error("what was recorded cannot be read ({0}). Record again")]
    Read(io::Error),
    #[error(transparent)]
    Unusable(#[from] crate::read::TraceError),
    #[error("the recording cannot be written ({0}). Write it to another place")]
    Output(io::Error),
}
