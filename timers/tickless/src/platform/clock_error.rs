//! Why a clock could not be opened or was given up, and what the user can do about it.

use std::path::PathBuf;
use std::{fmt, io};

/// Why timers read the system's clock instead of the CPU's counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fallback {
    /// The library supports no counter of this kind of CPU.
    NoCounter,
    /// The CPU does not guarantee that its counter runs at a constant rate.
    NotInvariant,
    /// The kernel keeps time with another counter: it has found the CPU's counter to be wrong, or
    /// was configured not to use it.
    NotTrusted,
    /// It is unknown which counter the kernel keeps time with, because `/sys` cannot be read.
    NotKnown,
    /// The counter contradicted the system's clock repeatedly.
    Unsteady,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fallback::NoCounter => "no counter is known for this kind of CPU",
            Fallback::NotInvariant => {
                "the CPU's counter is not invariant; in a virtual machine, have its host pass \
                 the invariant TSC through"
            }
            Fallback::NotTrusted => {
                "the kernel does not keep time with the CPU's counter; see its log for why, and \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource for what it uses"
            }
            Fallback::NotKnown => {
                "/sys does not say whether the kernel trusts the CPU's counter; mount it, or \
                 allow it to be read"
            }
            Fallback::Unsteady => "the CPU's counter contradicted the system's clock repeatedly",
        })?;
        f.write_str("; reading CLOCK_MONOTONIC instead")
    }
}

impl std::error::Error for Fallback {}

/// Why a clock could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenClockError {
    /// There is no such device.
    NoDevice {
        /// The path that the caller asked for.
        path: PathBuf,
    },
    /// The device exists, but this user is not allowed to open it.
    NoPermission {
        /// The path that the caller asked for.
        path: PathBuf,
    },
    /// The clock cannot be read.
    NotAClock {
        /// The name of the clock or the device that the caller asked for.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system refused to open the device, which is neither missing nor forbidden.
    System {
        /// The path that the caller asked for.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl fmt::Display for OpenClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenClockError::NoDevice { path } => write!(
                f,
                "there is no {}; PTP clocks are /dev/ptp0 and so on, and a network card or \
                 hypervisor that has one needs its driver (ptp_kvm in a KVM guest)",
                path.display()
            ),
            OpenClockError::NoPermission { path } => write!(
                f,
                "{} may not be opened; give this user the right to read it, by a udev rule for \
                 example",
                path.display()
            ),
            OpenClockError::NotAClock { what, .. } => {
                write!(f, "{what} does not tell the time; choose another clock")
            }
            OpenClockError::System { path, .. } => {
                write!(f, "{} could not be opened", path.display())
            }
        }
    }
}

impl std::error::Error for OpenClockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenClockError::NotAClock { error, .. } | OpenClockError::System { error, .. } => {
                Some(error)
            }
            OpenClockError::NoDevice { .. } | OpenClockError::NoPermission { .. } => None,
        }
    }
}
