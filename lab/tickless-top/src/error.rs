//! The errors of this crate: why nothing can be counted, and what to do about it.

use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CountError {
    #[error(
        "only root may see who uses timers. Run it with sudo; `tickless replay` and `tickless \
         late` explain traces that root recorded."
    )]
    NotPermitted,
    #[error(
        "eBPF: this kernel does not describe its types (no /sys/kernel/btf/vmlinux; \
         CONFIG_DEBUG_INFO_BTF). `tickless record` and `tickless late` do without."
    )]
    NoBtf,
    #[error(
        "eBPF: this kernel hides the addresses of its functions (/proc/kallsyms is empty or all \
         zeros; see kernel.kptr_restrict). `tickless record` and `tickless late` do without."
    )]
    NoSymbols,
    #[error(
        "eBPF: this kernel is locked down and refuses programs that see its memory \
         (/sys/kernel/security/lockdown). `tickless record` and `tickless late` do without."
    )]
    LockedDown,
    #[error(
        "eBPF: the kernel refuses {what} ({why}). `tickless record` and `tickless late` do without."
    )]
    Refused { what: String, why: String },
}
