//! Copies of descriptors of other processes, and what the tracer does with them: timers of
//! timerfd_create(2), and sockets.
#![expect(unsafe_code, reason = "system calls that take and return descriptors")]

use libc::{c_int, pid_t};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Copies a descriptor of another process into this process: pidfd_open(2), since Linux 5.3, and
/// pidfd_getfd(2), since Linux 5.6.
pub(crate) fn copy(process: pid_t, fd: u64) -> Option<OwnedFd> {
    // SAFETY: takes numbers, and returns a new descriptor.
    let pidfd = unsafe { owned(libc::syscall(libc::SYS_pidfd_open, process, 0)) }?;
    // SAFETY: as above.
    unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0)) }
}

/// # Safety
///
/// The number must be a new descriptor, or negative.
unsafe fn owned(fd: libc::c_long) -> Option<OwnedFd> {
    // SAFETY: the caller's condition.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// Returns whether two descriptors of this process share an open file: kcmp(2), since Linux 3.5.
pub(crate) fn is_same_file(one: &OwnedFd, other: &OwnedFd) -> bool {
    const KCMP_FILE: c_int = 0;
    let own = std::process::id();
    let (one, other) = (one.as_raw_fd(), other.as_raw_fd());
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, own, own, KCMP_FILE, one, other) == 0 }
}

/// Returns a field of a descriptor's file in `/proc/self/fdinfo`; for timers since Linux 3.17.
fn field(fd: &OwnedFd, name: &str) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Returns the clock of a timer; `None` if the descriptor is no timer.
pub(crate) fn timer_clock(fd: &OwnedFd) -> Option<u64> {
    field(fd, "clockid:")
}

/// Forgets the expiries of a timer that have not been read, as setting the timer does.
pub(crate) fn clear_timer(fd: &OwnedFd) {
    set_timer(fd, 0);
}

fn set_timer(fd: &OwnedFd, nanos: i64) {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let value = libc::timespec { tv_sec: 0, tv_nsec: nanos };
    let setting = libc::itimerspec { it_interval: zero, it_value: value };
    // SAFETY: the kernel reads one structure.
    unsafe {
        libc::timerfd_settime(fd.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut());
    }
}

/// Makes a timer expire `times` more times (`TFD_IOC_SET_TICKS`, since Linux 3.17). On a kernel
/// without CONFIG_CHECKPOINT_RESTORE, it expires once.
pub(crate) fn expire_timer(fd: &OwnedFd, times: u64) {
    const TFD_IOC_SET_TICKS: libc::c_ulong = 0x4008_5400;
    let ticks = field(fd, "ticks:").unwrap_or(0).saturating_add(times);
    let from = &raw const ticks;
    // SAFETY: the request reads one word.
    if unsafe { libc::ioctl(fd.as_raw_fd(), TFD_IOC_SET_TICKS, from) } != 0 {
        set_timer(fd, 1);
    }
}

/// Sets TCP_NODELAY for a socket of a process. Otherwise data can wait 40 ms of real time for an
/// acknowledgement that the receiver delays, while every thread sleeps.
pub(crate) fn send_at_once(process: pid_t, fd: u64) {
    let Some(socket) = copy(process, fd) else { return };
    let (level, option, on): (_, _, c_int) = (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
    let on = &raw const on;
    // SAFETY: the kernel reads one integer, and refuses the option for other sockets.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, on.cast(), 4) };
}

/// Returns how many descriptors the table of a process has room for.
pub(crate) fn table_size(process: pid_t) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    size.and_then(|size| size.trim().parse().ok()).unwrap_or(0)
}

/// Returns the number of the socket that a process has as this descriptor; `None` if it is no
/// socket.
pub(crate) fn socket(process: pid_t, fd: u64) -> Option<u64> {
    let file = fs::metadata(format!("/proc/{process}/fd/{}", fd as u32)).ok()?;
    (file.mode() & libc::S_IFMT == libc::S_IFSOCK).then(|| file.ino())
}
