//! What drivers may wait in, and why that is not what was asked for.

use core::fmt;
#[cfg(linux_platform)]
use rustix::io::Errno;

/// What driver threads wait in; see `Builder::device`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Device {
    /// A futex with a timeout, elsewhere than on Linux a condition variable: three file
    /// descriptors fewer, and no system call for a deadline
    /// that is not the earliest or comes while the driver is awake. An earlier deadline wakes a
    /// sleeping driver, which looks and sleeps again.
    #[default]
    Futex,
    /// Linux only. A timerfd in an epoll: each write of the device is a system call of the thread
    /// that arms,
    /// and the driver sleeps on. Three file descriptors for each base.
    #[cfg(linux_platform)]
    Timerfd,
}

/// A system call that the system refused: why timers wait on a futex and not in what was asked for,
/// or cannot be told that a clock was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RefusedCall {
    /// The system call that was refused.
    pub call: &'static str,
    /// What the system said: an `errno`.
    pub errno: i32,
}

impl RefusedCall {
    #[cfg(linux_platform)]
    pub(crate) fn new(call: &'static str, errno: Errno) -> RefusedCall {
        RefusedCall::with_code(call, errno.raw_os_error())
    }

    /// For the layer above alone.
    #[doc(hidden)]
    pub fn with_code(call: &'static str, errno: i32) -> RefusedCall {
        RefusedCall { call, errno }
    }
}

impl fmt::Display for RefusedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, errno } = *self;
        let said = std::io::Error::from_raw_os_error(errno);
        write!(
            f,
            "the system refused {call} ({said}); let the seccomp filter of this process allow \
             it, or raise its limit on open files"
        )
    }
}

impl std::error::Error for RefusedCall {}
