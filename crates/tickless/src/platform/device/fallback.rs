//! The kinds of event device that driver threads wait in, and a record of the system call that was
//! refused if a driver waits in another kind than the program has chosen.

use core::fmt;
#[cfg(linux_platform)]
use rustix::io::Errno;
use std::io;

/// What driver threads wait in until a timer is due; see `Builder::device`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Device {
    /// A futex with a timeout; a condition variable on systems other than Linux. Uses no file
    /// descriptor. A thread that arms the earliest timer wakes a sleeping driver by a system call,
    /// and the driver sleeps again until the new deadline.
    #[default]
    Futex,
    /// Linux only. A timerfd in an epoll: three file descriptors for each base. A thread that arms
    /// the earliest timer makes a system call, and the driver continues to sleep.
    #[cfg(linux_platform)]
    Timerfd,
}

/// A system call that the system refused, so that a simpler mechanism replaces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedCall {
    pub call: &'static str,
    pub errno: i32,
}

impl RefusedCall {
    #[cfg(linux_platform)]
    pub(crate) fn new(call: &'static str, errno: Errno) -> RefusedCall {
        RefusedCall { call, errno: errno.raw_os_error() }
    }
}

impl fmt::Display for RefusedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, errno } = *self;
        let error = io::Error::from_raw_os_error(errno);
        write!(
            f,
            "the system refused {call} ({error}); let the seccomp filter of this process allow \
             it, or raise its limit on open files"
        )
    }
}

impl std::error::Error for RefusedCall {}

impl From<RefusedCall> for io::Error {
    fn from(refused: RefusedCall) -> io::Error {
        io::Error::new(io::Error::from_raw_os_error(refused.errno).kind(), refused)
    }
}
