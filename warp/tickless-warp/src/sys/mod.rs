//! The system calls of the tracer. All unsafe code but that of the clock page is here.

mod bpf;
pub(crate) mod descriptors;
pub(crate) mod events;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod notices;
pub(crate) mod ptrace;
pub(crate) mod thread_events;
pub(crate) mod turns;
