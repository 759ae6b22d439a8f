//! Where the counts come from.

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

/// Which source to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// eBPF where it can be had, or else tracefs.
    #[default]
    Auto,
    /// A tracefs instance: every event is handed to this program.
    Tracefs,
    /// eBPF programs that count in the kernel.
    Ebpf,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 3] = [Choice::Auto, Choice::Tracefs, Choice::Ebpf];

    /// As it is given on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Tracefs => "tracefs",
            Choice::Ebpf => "ebpf",
        }
    }
}

/// A source that counts.
#[derive(Debug)]
pub enum Counting {
    /// From a tracefs instance.
    Tracefs(Box<FromTracefs>),
    /// In the kernel.
    Ebpf(Box<Ebpf>),
}

impl Counting {
    /// Counts from now on. `program` is this process's, of which one more watches that nothing is
    /// left behind; `tell` is told what is not as it should be.
    ///
    /// # Errors
    /// When the chosen source cannot be had; with [`Choice::Auto`], when none can.
    pub fn start(
        choice: Choice,
        program: Option<&Path>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Counting, SourceError> {
        if choice != Choice::Tracefs {
            match Ebpf::start() {
                Ok(ebpf) => return Ok(Counting::Ebpf(Box::new(ebpf))),
                Err(error) if choice == Choice::Ebpf => return Err(error),
                // Without rights there is nothing to fall back on.
                Err(SourceError::NotPermitted) => return Err(SourceError::NotPermitted),
                Err(error) => tell(&format!("{error} Now from tracefs.")),
            }
        }
        let tracefs = FromTracefs::start(program)?;
        tracefs.notes().iter().for_each(|note| tell(note));
        Ok(Counting::Tracefs(Box::new(tracefs)))
    }

    /// `tracefs` or `ebpf`.
    pub fn name(&self) -> &'static str {
        match self {
            Counting::Tracefs(_) => Choice::Tracefs.name(),
            Counting::Ebpf(_) => Choice::Ebpf.name(),
        }
    }

    /// To be called several times a second: reads what the kernel has, before there is no room.
    ///
    /// # Errors
    /// When the source is taken away.
    pub fn poll(&mut self) -> Result<(), SourceError> {
        match self {
            Counting::Tracefs(tracefs) => tracefs.poll(),
            Counting::Ebpf(ebpf) => {
                ebpf.poll();
                Ok(())
            }
        }
    }

    /// What was counted until now.
    ///
    /// # Errors
    /// When the source is taken away.
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

/// CPU time of this process, in nanoseconds.
fn own_ns() -> u64 {
    time(ClockId::ProcessCPUTime).0
}

/// How far the time of day is ahead of CLOCK_MONOTONIC.
fn realtime_ahead() -> Ns {
    time(ClockId::Realtime).since(time(ClockId::Monotonic))
}

/// The kernel's tick; that of most kernels where its configuration cannot be read.
fn tick() -> Ns {
    Ns(1_000_000_000 / u64::from(tickless_trace::record::kernel_hz().unwrap_or(250)))
}
