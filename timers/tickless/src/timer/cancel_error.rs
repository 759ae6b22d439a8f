//! Why a synchronous cancel has stopped waiting.

use std::fmt;

/// Why a synchronous cancel has stopped waiting for a callback. The timer has been cancelled in any
/// case. Its callback is perhaps still running, unless this is
/// [`NotSingleShot`](CancelError::NotSingleShot).
///
/// Of all locks, the library knows only [`CallbackLock`](crate::callback::CallbackLock). If the
/// caller holds another lock that the callback takes, no error is returned and the cancel hangs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CancelError {
    /// The caller is in this very callback, which cannot return before the caller goes on. Use
    /// `cancel`, or [`Fired::stop`](crate::Fired::stop).
    OwnCallback,
    /// The callback waits, in a cancel of its own, for the callback in which the caller runs. Each
    /// would wait for the other: use `cancel` in one of the two.
    EachOther,
    /// The callback waits for a [`CallbackLock`](crate::callback::CallbackLock) that the caller
    /// holds. Release it first.
    Lock,
    /// `cancel_single_shot` was used for a timer that was armed again while its callback ran: use
    /// `cancel_sync` for such a timer. The timer has been cancelled, and its callback has returned.
    NotSingleShot,
}

impl fmt::Display for CancelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CancelError::OwnCallback => {
                "cancelled, but not waited for: a callback cannot wait for itself; use cancel"
            }
            CancelError::EachOther => {
                "cancelled, but not waited for: its callback waits for the caller's callback; \
                 use cancel in one of them"
            }
            CancelError::Lock => {
                "cancelled, but not waited for: its callback waits for a lock that the caller \
                 has; give the lock back before waiting"
            }
            CancelError::NotSingleShot => {
                "cancelled, but it was armed again while it was being cancelled; use cancel_sync"
            }
        })
    }
}

impl std::error::Error for CancelError {}
