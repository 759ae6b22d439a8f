//! The sources of counts.

mod ebpf;
mod error;
mod process;
mod tracefs;

pub use ebpf::Ebpf;
pub use error::SourceError;
pub use tracefs::FromTracefs;

use crate::snapshot::Snapshot;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use tickless_core::time::Ns;

/// The choice of a source. The descriptions are the program's help.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Choice {
    /// eBPF if possible, or else tracefs
    #[default]
    Auto,
    /// By this program: a tracefs instance hands over every event
    Tracefs,
    /// In the kernel, by eBPF programs: costs least
    Ebpf,
}

/// A running source.
#[derive(Debug)]
pub enum Counting {
    /// From a tracefs instance.
    Tracefs(Box<FromTracefs>),
    /// By eBPF programs in the kernel.
    Ebpf(Box<Ebpf>),
}

impl Counting {
    /// Starts counting. Another process of `program`, which must be this process's program, cleans
    /// up if this one is killed. `note` gets remarks for the user.
    ///
    /// # Errors
    /// When the chosen source is not available; with [`Choice::Auto`], when none is.
    pub fn start(
        choice: Choice,
        program: Option<&Path>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Counting, SourceError> {
        if choice != Choice::Tracefs {
            match Ebpf::start() {
                Ok(ebpf) => return Ok(Counting::Ebpf(Box::new(ebpf))),
                Err(error) if choice == Choice::Ebpf => return Err(error),
                // Tracefs needs the same rights.
                Err(SourceError::NotPermitted) => return Err(SourceError::NotPermitted),
                Err(error) => note(&format!("{error} Now from tracefs.")),
            }
        }
        let tracefs = FromTracefs::start(program)?;
        tracefs.notes().iter().for_each(|text| note(text));
        Ok(Counting::Tracefs(Box::new(tracefs)))
    }

    /// Returns `tracefs` or `ebpf`.
    pub fn name(&self) -> &'static str {
        match self {
            Counting::Tracefs(_) => "tracefs",
            Counting::Ebpf(_) => "ebpf",
        }
    }

    /// Reads the kernel's buffers. Call it several times a second, before they are full.
    ///
    /// # Errors
    /// When the kernel removes the source.
    pub fn poll(&mut self) -> Result<(), SourceError> {
        match self {
            Counting::Tracefs(tracefs) => tracefs.poll(),
            Counting::Ebpf(ebpf) => {
                ebpf.poll();
                Ok(())
            }
        }
    }

    /// Returns the counts until now.
    ///
    /// # Errors
    /// When the kernel removes the source.
    pub fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        match self {
            Counting::Tracefs(tracefs) => tracefs.snapshot(),
            Counting::Ebpf(ebpf) => ebpf.snapshot(),
        }
    }
}

fn time(clock: ClockId) -> Ns {
    let now = clock_gettime(clock);
    Ns(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}

/// Returns the CPU time of this process in nanoseconds.
fn own_ns() -> u64 {
    time(ClockId::ProcessCPUTime).0
}

/// Returns how far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
fn realtime_ahead() -> Ns {
    time(ClockId::Realtime).since(time(ClockId::Monotonic))
}

/// Returns the kernel's tick; if its configuration cannot be read, the most common one.
fn tick() -> Ns {
    Ns(1_000_000_000 / u64::from(tickless_trace::record::kernel_hz().unwrap_or(250)))
}
