//! The events of the traced threads, and waiting for the next event.
//!
//! SIGCHLD is blocked in the tracer, and stays pending from the first event on. So the tracer can
//! take all events, decide that there is nothing to do, and sleep without missing one. It calls
//! waitpid(2) only after a SIGCHLD, because that call takes time for each thread of the tree.
#![expect(unsafe_code, reason = "waitpid(2) and signals")]

use super::notices::Listener;
use libc::{c_int, pid_t};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// What happened to a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The thread has ended with a status, as waitpid(2) returns it.
    Ended(c_int),
    /// The thread has stopped before a call that the filter traps.
    Call,
    /// The thread has stopped at the end of a system call.
    Exit,
    /// The thread makes a new thread, or with fork(2) the first thread of a process.
    NewThread,
    /// The thread makes a process, and waits until that process runs a program or ends.
    NewBorrower,
    /// The thread runs a new program.
    NewProgram,
    /// The thread's process has been stopped, by this signal.
    GroupStop,
    /// The thread stops because it is new, was interrupted, or has its memory back after vfork(2).
    Stop,
    /// A signal is about to be delivered.
    Signal(c_int),
}

/// Whether there has been a SIGCHLD since the last call of waitpid(2) that found nothing.
static HAS_EVENTS: AtomicBool = AtomicBool::new(true);

/// Returns the next event of any thread; `None` if nothing has happened since the last one.
pub(crate) fn next() -> Option<(pid_t, Event)> {
    if !HAS_EVENTS.load(Ordering::Relaxed) && !take_pending() {
        return None;
    }
    HAS_EVENTS.store(false, Ordering::Relaxed);
    let mut status = 0;
    // SAFETY: the kernel stores to one integer.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) };
    (tid > 0).then(|| {
        HAS_EVENTS.store(true, Ordering::Relaxed);
        (tid, event(status))
    })
}

/// Takes a SIGCHLD that is pending. Returns whether one was.
fn take_pending() -> bool {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel reads the set and the time.
    unsafe { libc::sigtimedwait(&sigchld(), null_mut(), &raw const none) > 0 }
}

/// Returns the set of the signal SIGCHLD.
fn sigchld() -> libc::sigset_t {
    // SAFETY: a zeroed set is valid, and empty.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: the call adds to a set.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGCHLD) };
    set
}

/// Waits for the next event of one thread.
pub(crate) fn next_of(tid: pid_t) -> Option<Event> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel stores to one integer.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
        if found == tid {
            return Some(event(status));
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

fn event(status: c_int) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Ended(status);
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => Event::Call,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK => Event::NewThread,
        libc::PTRACE_EVENT_VFORK => Event::NewBorrower,
        libc::PTRACE_EVENT_VFORK_DONE => Event::Stop,
        libc::PTRACE_EVENT_EXEC => Event::NewProgram,
        libc::PTRACE_EVENT_STOP => match signal {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => Event::GroupStop,
            _ => Event::Stop,
        },
        _ if signal == libc::SIGTRAP | 0x80 => Event::Exit,
        _ => Event::Signal(signal),
    }
}

/// The number of this process, which it is otherwise a system call to get.
pub(crate) static OWN: LazyLock<u32> = LazyLock::new(std::process::id);

/// The process that gets the signals which are sent to the tracer.
static ROOT: AtomicI32 = AtomicI32::new(0);

/// The process of the tree that has last sent a signal to a group of processes; otherwise 0.
pub(crate) static GROUP_SENDER: AtomicI32 = AtomicI32::new(0);

/// The signals that users send to a program in the foreground.
const FORWARDED: [c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// Passes a signal on to the program, unless a terminal or a process of the tree sent it to both.
extern "C" fn forward(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure.
    let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
    let is_own = code == libc::SI_USER && sender == GROUP_SENDER.load(Ordering::Relaxed);
    let root = ROOT.load(Ordering::Relaxed);
    if code != libc::SI_KERNEL && !is_own && root > 0 {
        // SAFETY: a signal handler is allowed to call kill(2).
        unsafe { libc::kill(root, signal) };
    }
}

/// Notes a SIGCHLD that has ended ppoll(2).
extern "C" fn note(_: c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    HAS_EVENTS.store(true, Ordering::Relaxed);
}

/// The signal handling that the tracer needs. Dropping this restores what was before.
pub(crate) struct Handling {
    before: Vec<(c_int, libc::sigaction)>,
    mask: libc::sigset_t,
    /// The mask while the tracer waits.
    waiting: libc::sigset_t,
}

impl Handling {
    /// Forwards signals to the program, and blocks SIGCHLD.
    pub(crate) fn install(root: pid_t) -> Handling {
        ROOT.store(root, Ordering::Relaxed);
        let replace = |signal, handler| {
            let mut before = std::mem::MaybeUninit::uninit();
            // SAFETY: a zeroed structure is valid, with an empty mask.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: the handlers call at most kill(2), and `before` is filled in.
            unsafe {
                libc::sigaction(signal, &raw const action, before.as_mut_ptr());
                (signal, before.assume_init())
            }
        };
        let forward = forward as extern "C" fn(_, _, _) as usize;
        let mut before: Vec<_> =
            FORWARDED.into_iter().map(|signal| replace(signal, forward)).collect();
        let note = note as extern "C" fn(_, _, _) as usize;
        before.push(replace(libc::SIGCHLD, note));
        let mut mask = sigchld();
        // SAFETY: the call reads one set, and fills in the other.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &sigchld(), &raw mut mask) };
        let mut waiting = mask;
        // SAFETY: the call removes from a set.
        unsafe { libc::sigdelset(&raw mut waiting, libc::SIGCHLD) };
        Handling { before, mask, waiting }
    }

    /// Sleeps until a traced thread has an event, or `listener` a notice, at most for `at_most`.
    pub(crate) fn wait(&self, at_most: Duration, listener: Option<&Listener>) {
        let timeout = libc::timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let fd = listener.map_or(-1, Listener::fd);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure, the timeout and the mask live until the call returns.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, &raw const self.waiting) };
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        ROOT.store(0, Ordering::Relaxed);
        for (signal, action) in &self.before {
            // SAFETY: this restores what was there.
            unsafe { libc::sigaction(*signal, &raw const *action, null_mut()) };
        }
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut()) };
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: pid_t, signal: c_int) {
    // SAFETY: takes numbers only.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the mask of signals that the line `name` of a thread's `/proc/TID/status` contains.
pub(crate) fn signal_mask(tid: pid_t, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Queues a signal for a process, or for one thread of it, as an expired timer of timer_create(2)
/// does (since Linux 2.6.31).
pub(crate) fn queue_timer_signal(tgid: pid_t, tid: Option<pid_t>, signal: c_int, info: &[u64; 16]) {
    let info = info.as_ptr();
    // SAFETY: the array has the size of a siginfo_t, which the kernel copies.
    unsafe {
        match tid {
            Some(tid) => libc::syscall(libc::SYS_rt_tgsigqueueinfo, tgid, tid, signal, info),
            None => libc::syscall(libc::SYS_rt_sigqueueinfo, tgid, signal, info),
        }
    };
}

/// Returns the number of the thread of a process that has this number in the process's own
/// namespace (`NSpid`, since Linux 4.1).
pub(crate) fn thread_in_namespace(process: pid_t, number: pid_t) -> pid_t {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    let has_number = |thread: &pid_t| {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        own.and_then(|own| own.split_whitespace().last()?.parse().ok()) == Some(number)
    };
    threads.find(has_number).unwrap_or(number)
}

/// Reads the time-stamp counter, after all earlier loads.
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has both instructions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// The clock of the CPU time that all threads of process 1 have had: the complement of the process,
/// and in the low bits how that is measured.
pub(crate) const CPU_OF_PROCESS_1: libc::clockid_t = !1 << 3 | 2;

/// Reads a clock of the kernel.
pub(crate) fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel stores to one structure.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Returns whether the kernel has a clock with this number.
pub(crate) fn has_clock(id: libc::clockid_t) -> bool {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel stores to one structure.
    unsafe { libc::clock_gettime(id, &raw mut time) == 0 }
}

/// Raises this process's limit of open files to the maximum: it keeps some open for each thread.
pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
