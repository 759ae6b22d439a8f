//! Notices of seccomp(2): a thread that is about to make a call is blocked until the tracer
//! answers. The answer is the result of the call, or that the thread makes the call as it is (since
//! Linux 5.5). A notice takes two system calls of the tracer, and no stop of the thread.
#![expect(unsafe_code, reason = "ioctl(2) on the descriptor of a filter")]

use super::ptrace::{Call, Registers};
use libc::{c_long, pid_t};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A thread that is about to make a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    id: u64,
    pub(crate) tid: pid_t,
    pub(crate) call: Call,
}

impl Notice {
    /// Returns a notice that the kernel has not sent.
    #[cfg(test)]
    pub(crate) fn of_nothing(tid: pid_t) -> Notice {
        Notice { id: 0, tid, call: (0, 0, [0; 6]) }
    }

    /// Returns the thread's registers, as far as the notice has them; the others are zero.
    pub(crate) fn registers(&self) -> Registers {
        let (number, rip, [rdi, rsi, rdx, r10, r8, r9]) = self.call;
        let orig_rax = number.cast_unsigned();
        // SAFETY: any bytes are valid registers.
        let none: Registers = unsafe { std::mem::zeroed() };
        Registers { rip, orig_rax, rdi, rsi, rdx, r10, r8, r9, ..none }
    }
}

/// The descriptor of a filter, on which the notices of the filter arrive.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Listener {
        // With this flag (since Linux 6.6), the tracer and the thread take turns on one CPU:
        // neither has to wake another CPU. Without it, a notice takes longer.
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: the request takes a number.
        unsafe {
            libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
        }
        Listener(fd)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Returns a notice that has not been returned before.
    pub(crate) fn next(&self) -> Option<Notice> {
        let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel writes to one structure.
        let is_ready = unsafe { libc::poll(&raw mut poll, 1, 0) } > 0;
        if !is_ready || poll.revents & libc::POLLIN == 0 {
            return None;
        }
        // SAFETY: a zeroed structure is valid, and the kernel wants one.
        let mut found: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let to = &raw mut found;
        // SAFETY: the request fills in the structure.
        let done = unsafe { libc::ioctl(self.fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, to) } == 0;
        let data = found.data;
        let call = (c_long::from(data.nr), data.instruction_pointer, data.args);
        done.then_some(Notice { id: found.id, tid: found.pid.cast_signed(), call })
    }

    /// Answers a notice: the call returns `result` or, without one, is made. Returns whether the
    /// thread has got the answer; otherwise a signal has interrupted or killed it.
    pub(crate) fn answer(&self, notice: &Notice, result: Option<i64>) -> bool {
        let (val, flags) = match result {
            Some(result) => (result, 0),
            None => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        };
        let answer = libc::seccomp_notif_resp { id: notice.id, val, error: 0, flags };
        let from = &raw const answer;
        // SAFETY: the request reads one structure.
        unsafe { libc::ioctl(self.fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, from) == 0 }
    }
}
