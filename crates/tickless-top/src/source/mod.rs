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

/// Which source of counts the user chose. The program's help prints the variants' descriptions.
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

#[derive(Debug)]
pub enum Counting {
    Tracefs(Box<FromTracefs>),
    Ebpf(Box<Ebpf>),
}

impl Counting {
    /// Starts counting. With tracefs, a second process removes the recording's buffers if this
    /// process is killed. It runs `program`, which must be the executable of this process. `note`
    /// is called with remarks for the user.
    pub fn start(
        choice: Choice,
        program: Option<&Path>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Counting, SourceError> {
        if choice != Choice::Tracefs {
            match Ebpf::start() {
                Ok(ebpf) => return Ok(Counting::Ebpf(Box::new(ebpf))),
                Err(error) if choice == Choice::Ebpf => return Err(error),
                // Do not try tracefs, which needs root as well.
                Err(SourceError::NotPermitted) => return Err(SourceError::NotPermitted),
                Err(error) => note(&format!("{error} Now from tracefs.")),
            }
        }
        let tracefs = FromTracefs::start(program)?;
        tracefs.notes().iter().for_each(|text| note(text));
        Ok(Counting::Tracefs(Box::new(tracefs)))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Counting::Tracefs(_) => "tracefs",
            Counting::Ebpf(_) => "ebpf",
        }
    }

    /// Counts the events that wait in the kernel's buffers. Call this several times a second: a
    /// full buffer loses events.
    pub fn poll(&mut self) -> Result<(), SourceError> {
        match self {
            Counting::Tracefs(tracefs) => tracefs.poll(),
            Counting::Ebpf(ebpf) => {
                ebpf.poll();
                Ok(())
            }
        }
    }

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

fn own_ns() -> u64 {
    time(ClockId::ProcessCPUTime).0
}

fn realtime_ahead() -> Ns {
    time(ClockId::Realtime).since(time(ClockId::Monotonic))
}

/// Returns the length of the kernel's tick. If the kernel's configuration cannot be read, assumes
/// 250 Hz, the most common rate.
fn tick() -> Ns {
    Ns(1_000_000_000 / u64::from(tickless_trace::record::kernel_hz().unwrap_or(250)))
}
