//! Why timers could not be started.

use crate::platform::device::refused::RefusedCall;
use std::{fmt, io};
use tickless_core::time::CpuId;

/// Why timers could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartTimersError {
    /// The system refused a driver thread. Fewer [`bases`](crate::Builder::bases) need fewer
    /// threads.
    Thread {
        /// The base that the thread was for.
        base: CpuId,
        /// The system's error.
        error: io::Error,
    },
    /// The system refused the file descriptor that the program's event loop would poll.
    /// [`start_in_loop_with`](crate::Builder::start_in_loop_with) needs no descriptor.
    Descriptor(io::Error),
}

impl fmt::Display for StartTimersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartTimersError::Thread { base, .. } => write!(
                f,
                "the driver thread of base {} could not be started; \
                 raise the limit on threads or ask for fewer bases",
                base.0
            ),
            StartTimersError::Descriptor(_) => f.write_str(
                "the event loop got no descriptor; use start_in_loop_with, or allow the call",
            ),
        }
    }
}

impl From<RefusedCall> for StartTimersError {
    fn from(refused: RefusedCall) -> StartTimersError {
        StartTimersError::Descriptor(refused.into())
    }
}

impl std::error::Error for StartTimersError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartTimersError::Thread { error, .. } | StartTimersError::Descriptor(error) => {
                Some(error)
            }
        }
    }
}
