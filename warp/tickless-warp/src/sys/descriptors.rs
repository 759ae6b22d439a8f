//! Copies of descriptors of other processes, and what the tracer does with them: timers of
//! timerfd_create(2), and sockets.
#![expect(unsafe_code, reason = "system calls that take and return descriptors")]

use super::events::OWN;
use super::memory;
use libc::{c_int, pid_t};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat2, statx};
use rustix::io::{Errno, Result};
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

/// Copies a descriptor of another process into this process: pidfd_open(2), since Linux 5.3, and
/// pidfd_getfd(2), since Linux 5.6.
pub(crate) fn copy(process: pid_t, fd: u64) -> Result<OwnedFd> {
    let pidfd = open(process, PidfdFlags::empty())?;
    pidfd_getfd(pidfd, fd as c_int, PidfdGetfdFlags::empty())
}

fn open(tid: pid_t, flags: PidfdFlags) -> Result<OwnedFd> {
    pidfd_open(Pid::from_raw(tid).ok_or(Errno::SRCH)?, flags)
}

/// Returns whether a descriptor of another process and one of this process share an open file:
/// kcmp(2), since Linux 3.5.
pub(crate) fn is_same_file(process: pid_t, fd: u64, known: &OwnedFd) -> bool {
    const KCMP_FILE: c_int = 0;
    let (own, known) = (*OWN, known.as_raw_fd());
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, process, own, KCMP_FILE, fd, known) == 0 }
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

/// Has a timer expire once after so many nanoseconds, or not at all if that is zero. Forgets its
/// expiries that have not been read.
pub(crate) fn set_timer(fd: &OwnedFd, nanos: i64) {
    let it_value = Timespec { tv_sec: 0, tv_nsec: nanos };
    let setting = Itimerspec { it_interval: Timespec::default(), it_value };
    let _ = timerfd_settime(fd, TimerfdTimerFlags::empty(), &setting);
}

/// Makes a timer expire `times` more times (`TFD_IOC_SET_TICKS`, since Linux 3.17). On a kernel
/// without CONFIG_CHECKPOINT_RESTORE, it expires once.
pub(crate) fn expire_timer(fd: &OwnedFd, times: u64) {
    const TFD_IOC_SET_TICKS: libc::c_ulong = 0x4008_5400;
    let is_unread = polled(&[fd.as_raw_fd()], libc::POLLIN) > 0;
    let unread = if is_unread { field(fd, "ticks:").unwrap_or(0) } else { 0 };
    let ticks = unread.saturating_add(times);
    let from = &raw const ticks;
    // SAFETY: the request reads one word.
    if unsafe { libc::ioctl(fd.as_raw_fd(), TFD_IOC_SET_TICKS, from) } != 0 {
        set_timer(fd, 1);
    }
}

/// Sets TCP_NODELAY for a socket of a process. Otherwise data can wait 40 ms of real time for an
/// acknowledgement that the receiver delays, while every thread sleeps.
pub(crate) fn send_at_once(process: pid_t, fd: u64) {
    // The kernel refuses the option for other sockets.
    let _ = copy(process, fd).and_then(|socket| set_tcp_nodelay(socket, true));
}

/// Returns how many descriptors the table of a process has room for.
pub(crate) fn table_size(process: pid_t) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    size.and_then(|size| size.trim().parse().ok()).unwrap_or(0)
}

/// What a file is, and on which device. Unlike stat(2), this asks no file system that is a program.
pub(crate) fn status_of(process: pid_t, fd: u64) -> Option<Statx> {
    let path = format!("/proc/{process}/fd/{}", fd as c_int);
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()
}

/// Device and number of a file.
pub(crate) type FileId = (u32, u32, u64);

pub(crate) fn id(file: &Statx) -> FileId {
    (file.stx_dev_major, file.stx_dev_minor, file.stx_ino)
}

fn format(file: &Statx) -> u32 {
    u32::from(file.stx_mode) & libc::S_IFMT
}

pub(crate) fn is_terminal(file: &Statx) -> bool {
    format(file) == libc::S_IFCHR && matches!(file.stx_rdev_major, 4 | 5 | 136..=143)
}

/// Returns whether a thread that waits for a file waits for an event: it is a pipe, socket,
/// terminal, eventfd or the like.
pub(crate) fn is_event(file: &Statx) -> bool {
    const FUSE: (u32, u32) = (10, 229);
    match format(file) {
        libc::S_IFIFO | libc::S_IFSOCK | 0 => true,
        libc::S_IFCHR if file.stx_rdev_major == 1 => true,
        _ => is_terminal(file) || (file.stx_rdev_major, file.stx_rdev_minor) == FUSE,
    }
}

/// Returns whether a descriptor of a process has one of these events of poll(2).
pub(crate) fn is_ready(process: pid_t, fd: u64, events: libc::c_short) -> bool {
    copy(process, fd).is_ok_and(|file| polled(&[file.as_raw_fd()], events) > 0)
}

/// Returns whether a descriptor of a thread has none of the events of a poll(2). Opens `pidfd`,
/// that of the thread, when first needed (`PIDFD_THREAD`, since Linux 6.9; before, of first
/// threads).
pub(crate) fn is_quiet(tid: pid_t, pidfd: &mut Option<OwnedFd>, of: &libc::pollfd) -> bool {
    const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
    if pidfd.is_none() {
        *pidfd = open(tid, PIDFD_THREAD).or_else(|_| open(tid, PidfdFlags::empty())).ok();
    }
    let Some(pidfd) = pidfd else { return false };
    let file = pidfd_getfd(pidfd, of.fd, PidfdGetfdFlags::empty());
    file.is_ok_and(|file| polled(&[file.as_raw_fd()], of.events) == 0)
}

/// Returns how many descriptors of this process have one of these events of poll(2), or an error.
pub(crate) fn polled(fds: &[c_int], events: libc::c_short) -> usize {
    let poll = |fd: &c_int| libc::pollfd { fd: *fd, events, revents: 0 };
    let mut polls: Vec<libc::pollfd> = fds.iter().map(poll).collect();
    // SAFETY: the structures live until the call returns.
    let found = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, 0) };
    usize::try_from(found).unwrap_or(0)
}

/// Returns this process's descriptors that lead to other processes or a terminal: those that
/// perhaps have data for a program, and those that it only writes to.
pub(crate) fn leading_out() -> (Vec<c_int>, Vec<c_int>) {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let fds = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let leads_out = |&fd: &c_int| {
        let file = status_of(std::process::id() as pid_t, fd as u64);
        file.is_some_and(|file| match format(&file) {
            libc::S_IFIFO => true,
            libc::S_IFSOCK => option(fd, libc::SO_ACCEPTCONN) != Some(1),
            libc::S_IFCHR => file.stx_rdev_major != 1,
            _ => false,
        })
    };
    // SAFETY: takes and returns numbers only.
    let mode = |fd: c_int| unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_ACCMODE;
    fds.filter(leads_out).partition(|fd| ![1, 2].contains(fd) && mode(*fd) != libc::O_WRONLY)
}

/// Returns an option of a socket of this process that is an integer, or begins with one.
fn option(fd: c_int, name: c_int) -> Option<c_int> {
    let (mut value, mut length) = ([0_i32; 3], 12);
    let (to, size) = ((&raw mut value).cast(), &raw mut length);
    // SAFETY: the kernel writes at most as many bytes as the array has.
    let done = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, to, size) } == 0;
    done.then_some(value[0])
}

/// Returns whether a process has a socket of the Internet's protocols as this descriptor.
pub(crate) fn is_of_internet(process: pid_t, fd: u64) -> bool {
    let domain = |socket: OwnedFd| option(socket.as_raw_fd(), libc::SO_DOMAIN);
    matches!(copy(process, fd).map(domain), Ok(Some(libc::AF_INET | libc::AF_INET6)))
}

/// Returns the type of a process's socket, and of a Unix socket the process that listens at its
/// other end (otherwise 0).
pub(crate) fn peer(process: pid_t, fd: u64) -> Option<(c_int, pid_t)> {
    let socket = copy(process, fd).ok()?;
    let option = |name| option(socket.as_raw_fd(), name);
    Some((option(libc::SO_TYPE)?, option(libc::SO_PEERCRED)?))
}

/// Returns whether a process has the master of a pseudo-terminal.
pub(crate) fn has_terminal(process: pid_t) -> bool {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|of| of.ends_with("ptmx"))
}

/// Returns whether a path in a thread's memory names a pipe; relative, it is from the directory
/// `from`. Asks only the kernel's cache (`RESOLVE_CACHED`, since Linux 5.12), because a file system
/// that is a program of the tree cannot answer the tracer.
pub(crate) fn is_named_pipe(tid: pid_t, from: u64, at: u64) -> bool {
    let mut path = vec![0; libc::PATH_MAX as usize];
    // The path is perhaps the last of its memory, so read up to the end of its page first.
    let first = 4096 - (at % 4096) as usize;
    if !memory::read(tid, at, &mut path[..first]) {
        return false;
    }
    if !path[..first].contains(&0) {
        memory::read(tid, at + first as u64, &mut path[first..]);
    }
    let path = std::ffi::CStr::from_bytes_until_nul(&path).unwrap_or_default();
    let from = match (path.to_bytes().first(), from as c_int) {
        (Some(b'/'), _) => "root".to_string(),
        (_, libc::AT_FDCWD) => "cwd".to_string(),
        (_, fd) => format!("fd/{fd}"),
    };
    let path_of = format!("/proc/{tid}/{from}");
    let mut how = ResolveFlags::CACHED;
    how.set(ResolveFlags::IN_ROOT, from == "root");
    let file = rustix::fs::open(path_of, OFlags::PATH, Mode::empty())
        .and_then(|folder| openat2(folder, path, OFlags::PATH, Mode::empty(), how));
    let file =
        file.ok().and_then(|file| status_of(std::process::id() as pid_t, file.as_raw_fd() as u64));
    file.is_some_and(|file| format(&file) == libc::S_IFIFO)
}

/// Returns the socket that a process has as this descriptor; `None` if it is no socket.
pub(crate) fn socket(process: pid_t, fd: u64) -> Option<FileId> {
    let file = status_of(process, fd)?;
    (format(&file) == libc::S_IFSOCK).then(|| id(&file))
}
