//! Why nothing can be counted, and what to do about it.

use std::fmt;
use tickless_trace::record::RecordError;

/// Why nothing can be counted.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// Only root may.
    NotPermitted,
    /// Tracefs cannot be used.
    Tracefs(RecordError),
    /// The kernel does not describe its types.
    NoBtf,
    /// The kernel hides the addresses of its functions.
    NoSymbols,
    /// The kernel refuses programs because it is locked down.
    LockedDown,
    /// The kernel refuses the programs.
    Refused {
        /// Which of them, or what else.
        what: String,
        /// What it said.
        why: String,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INSTEAD: &str = "--source tracefs does without.";
        match self {
            SourceError::NotPermitted => f.write_str(
                "only root may see who uses timers. Run it with sudo; `tickless replay` and \
                 `tickless late` explain traces that root recorded.",
            ),
            SourceError::Tracefs(error) => error.fmt(f),
            SourceError::NoBtf => write!(
                f,
                "eBPF: this kernel does not describe its types (no /sys/kernel/btf/vmlinux; \
                 CONFIG_DEBUG_INFO_BTF). {INSTEAD}"
            ),
            SourceError::NoSymbols => write!(
                f,
                "eBPF: this kernel hides the addresses of its functions (/proc/kallsyms is empty \
                 or all zeros; see kernel.kptr_restrict). {INSTEAD}"
            ),
            SourceError::LockedDown => write!(
                f,
                "eBPF: this kernel is locked down and refuses programs that see its memory \
                 (/sys/kernel/security/lockdown). {INSTEAD}"
            ),
            SourceError::Refused { what, why } => {
                write!(f, "eBPF: the kernel refuses {what} ({why}). {INSTEAD}")
            }
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Tracefs(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RecordError> for SourceError {
    fn from(error: RecordError) -> SourceError {
        match error {
            RecordError::NotPermitted => SourceError::NotPermitted,
            error => SourceError::Tracefs(error),
        }
    }
}
