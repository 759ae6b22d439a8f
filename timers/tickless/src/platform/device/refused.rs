//! A record of a system call that the system refused.

use core::fmt;
#[cfg(linux_platform)]
use rustix::io::Errno;
use std::io;

/// A system call that the system refused. The library uses a simpler mechanism in its place.
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
