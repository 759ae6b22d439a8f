//! Copies of descriptors of other processes, and what the tracer does with them: timers of
//! timerfd_create(2), and sockets.
#![expect(unsafe_code, reason = "system calls that take and return descriptors")]

use super::memory;
use libc::{c_int, pid_t};
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Copies a descriptor of another process into this process: pidfd_open(2), since Linux 5.3, and
/// pidfd_getfd(2), since Linux 5.6.
pub(crate) fn copy(process: pid_t, fd: u64) -> Option<OwnedFd> {
    // SAFETY: takes numbers, and returns a new descriptor.
    copy_of(&unsafe { owned(libc::syscall(libc::SYS_pidfd_open, process, 0)) }?, fd)
}

fn copy_of(pidfd: &OwnedFd, fd: u64) -> Option<OwnedFd> {
    // SAFETY: takes numbers, and returns a new descriptor.
    unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0)) }
}

/// # Safety
///
/// The number must be a new descriptor, or negative.
unsafe fn owned(fd: libc::c_long) -> Option<OwnedFd> {
    // SAFETY: the caller's condition.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// Returns whether a descriptor of another process and one of this process share an open file:
/// kcmp(2), since Linux 3.5.
pub(crate) fn is_same_file(process: pid_t, fd: u64, known: &OwnedFd) -> bool {
    const KCMP_FILE: c_int = 0;
    let (own, known) = (std::process::id(), known.as_raw_fd());
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

/// What a file is, and on which device. Unlike stat(2), this asks no file system that is a program.
fn status(fd: c_int, path: &std::ffi::CStr, flags: c_int) -> Option<libc::statx> {
    let flags = flags | libc::AT_STATX_DONT_SYNC;
    // SAFETY: any bytes are a valid structure, which the kernel fills in.
    let mut file: libc::statx = unsafe { std::mem::zeroed() };
    let to = &raw mut file;
    // SAFETY: as above; the path lives until the call returns.
    let done = unsafe { libc::statx(fd, path.as_ptr(), flags, libc::STATX_BASIC_STATS, to) } == 0;
    done.then_some(file)
}

pub(crate) fn status_of(process: pid_t, fd: u64) -> Option<libc::statx> {
    let path = CString::new(format!("/proc/{process}/fd/{}", fd as c_int)).unwrap_or_default();
    status(libc::AT_FDCWD, &path, 0)
}

/// Device and number of a file.
pub(crate) type FileId = (u32, u32, u64);

pub(crate) fn id(file: &libc::statx) -> FileId {
    (file.stx_dev_major, file.stx_dev_minor, file.stx_ino)
}

fn format(file: &libc::statx) -> u32 {
    u32::from(file.stx_mode) & libc::S_IFMT
}

pub(crate) fn is_terminal(file: &libc::statx) -> bool {
    format(file) == libc::S_IFCHR && matches!(file.stx_rdev_major, 4 | 5 | 136..=143)
}

/// Returns whether a thread that waits for a file waits for an event: it is a pipe, socket,
/// terminal, eventfd or the like.
pub(crate) fn is_event(file: &libc::statx) -> bool {
    const FUSE: (u32, u32) = (10, 229);
    match format(file) {
        libc::S_IFIFO | libc::S_IFSOCK | 0 => true,
        libc::S_IFCHR if file.stx_rdev_major == 1 => true,
        _ => is_terminal(file) || (file.stx_rdev_major, file.stx_rdev_minor) == FUSE,
    }
}

/// Returns whether a descriptor of a process has one of these events of poll(2).
pub(crate) fn is_ready(process: pid_t, fd: u64, events: libc::c_short) -> bool {
    copy(process, fd).is_some_and(|file| polled(&[file.as_raw_fd()], events) > 0)
}

/// Returns whether a descriptor of a thread has none of the events of a poll(2). Opens `pidfd`,
/// that of the thread, when first needed (`PIDFD_THREAD`, since Linux 6.9; before, of first
/// threads).
pub(crate) fn is_quiet(tid: pid_t, pidfd: &mut Option<OwnedFd>, of: &libc::pollfd) -> bool {
    const PIDFD_THREAD: c_int = libc::O_EXCL;
    if pidfd.is_none() {
        // SAFETY: takes numbers, and returns a new descriptor.
        let open = |flags: c_int| unsafe { owned(libc::syscall(libc::SYS_pidfd_open, tid, flags)) };
        *pidfd = open(PIDFD_THREAD).or_else(|| open(0));
    }
    let file = pidfd.as_ref().and_then(|pidfd| copy_of(pidfd, of.fd as u64));
    file.is_some_and(|file| polled(&[file.as_raw_fd()], of.events) == 0)
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

/// Returns the type of a process's socket, and of a Unix socket the process that listens at its
/// other end (otherwise 0).
pub(crate) fn peer(process: pid_t, fd: u64) -> Option<(c_int, pid_t)> {
    let socket = copy(process, fd)?;
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
    const RESOLVE_CACHED: u64 = 0x20;
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
    let folder = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path_of);
    let Ok(folder) = folder else { return false };
    // SAFETY: a zeroed structure is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    let in_root = if from == "root" { libc::RESOLVE_IN_ROOT } else { 0 };
    (how.flags, how.resolve) = (libc::O_PATH as u64, RESOLVE_CACHED | in_root);
    let (name, size) = (path.as_ptr(), size_of::<libc::open_how>());
    // SAFETY: the path and the structure live until the call returns a new descriptor.
    let file = unsafe {
        owned(libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), name, &raw const how, size))
    };
    let file = file.and_then(|file| status(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH));
    file.is_some_and(|file| format(&file) == libc::S_IFIFO)
}

/// Returns the socket that a process has as this descriptor; `None` if it is no socket.
pub(crate) fn socket(process: pid_t, fd: u64) -> Option<FileId> {
    let file = status_of(process, fd)?;
    (format(&file) == libc::S_IFSOCK).then(|| id(&file))
}
