//! Why nothing can be counted, and what to do about it.

use thiserror::Error;
use tickless_trace::record::RecordError;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    #[error(
        "only root may see who uses timers. Run it with sudo; `tickless replay` and `tickless \
         late` explain traces that root recorded."
    )]
    NotPermitted,
    #[error(transparent)]
    Tracefs(RecordError),
    #[error(
        "eBPF: this kernel does not describe its types (no /sys/kernel/btf/vmlinux; \
         CONFIG_DEBUG_INFO_BTF). --source tracefs does without."
    )]
    NoBtf,
    #[error(
        "eBPF: this kernel hides the addresses of its functions (/proc/kallsyms is empty or all \
         zeros; see kernel.kptr_restrict). --source tracefs does without."
    )]
    NoSymbols,
    #[error(
        "eBPF: this kernel is locked down and refuses programs that see its memory \
         (/sys/kernel/security/lockdown). --source tracefs does without."
    )]
    LockedDown,
    #[error("eBPF: the kernel refuses {what} ({why}). --source tracefs does without.")]
    Refused { what: String, why: String },
}

impl From<RecordError> for SourceError {
    fn from(error: RecordError) -> SourceError {
        match error {
            RecordError::NotPermitted => SourceError::NotPermitted,
            error => SourceError::Tracefs(error),
        }
    }
}
