//! Starts the program under the filter: fork(2), seccomp(2) and execve(2).
#![expect(unsafe_code, reason = "fork(2), and system calls in the child")]

use crate::error::WarpError;
use crate::sys::notices::Listener;
use crate::sys::{descriptors, events, ptrace};
use libc::{c_char, c_int, pid_t, sock_filter as Op};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::ffi::{CString, OsString};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;

/// A program that has been started, and stops at its execve(2).
pub(crate) struct Launched {
    pub(crate) pid: pid_t,
    /// The descriptor on which the filter's notices arrive; `None` if the filter sends none.
    pub(crate) listener: Option<Listener>,
    /// The child reports here why it could not run the program; closed by a successful execve(2).
    reports: PipeReader,
}

/// What the child reports: the step at which it failed, with the error, or that it has its filter,
/// with the descriptor for notices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Filter = 1,
    Exec = 2,
    HasFilter = 3,
}

/// The filters that the child tries to install, in this order.
pub(crate) struct Filters {
    pub(crate) notifying: Vec<Op>,
    pub(crate) tracing: Vec<Op>,
}

/// Starts a program, traced by this thread.
pub(crate) fn launch(
    program: &OsString,
    args: &[OsString],
    filters: &Filters,
) -> Result<Launched, WarpError> {
    let failed = |error| WarpError::Process { error };
    let text = |text: &OsString| CString::new(text.clone().into_vec());
    let words: Result<Vec<CString>, _> = [program].into_iter().chain(args).map(text).collect();
    let words = words.map_err(|error| cannot_run(program, error.into()))?;
    let pointers: Vec<*const c_char> =
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    let (go_read, mut go) = io::pipe().map_err(failed)?;
    let (mut reports, report_write) = io::pipe().map_err(failed)?;
    // SAFETY: the child calls only functions that are allowed after fork(2).
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // Drop the child's copy of the writing end: the child's reads then end if the parent dies.
        drop(go);
        child(go_read.as_raw_fd(), report_write.as_raw_fd(), filters, &pointers);
    }
    if pid < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    drop((go_read, report_write));
    let mut begin = || {
        ptrace::seize(pid).map_err(WarpError::no_ptrace)?;
        go.write_all(&[1]).map_err(failed)?;
        let fd = match report(&mut reports).map_err(failed)? {
            (step, fd) if step == Step::HasFilter as i32 => u64::try_from(fd).ok(),
            (_, error) => {
                return Err(WarpError::NoSeccomp { error: io::Error::from_raw_os_error(error) });
            }
        };
        let fd = fd.map(|fd| descriptors::copy(pid, fd)).transpose();
        let fd = fd.map_err(|error| failed(error.into()))?;
        go.write_all(&[1]).map_err(failed)?;
        Ok(fd.map(Listener::new))
    };
    match begin() {
        Ok(listener) => Ok(Launched { pid, listener, reports }),
        Err(error) => {
            events::kill(pid, libc::SIGKILL);
            events::next_of(pid);
            Err(error)
        }
    }
}

/// Reads a report of the child: its step, and an error or a descriptor.
fn report(reports: &mut PipeReader) -> io::Result<(c_int, c_int)> {
    let mut report = [0; 8];
    reports.read_exact(&mut report)?;
    let word = |at: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|byte| report[at + byte]));
    Ok((word(0), word(4)))
}

impl Launched {
    /// Returns why the program could not be run, after the child has ended without running it.
    pub(crate) fn failure(&mut self, program: &OsString) -> Option<WarpError> {
        let (_, number) = report(&mut self.reports).ok()?;
        Some(cannot_run(program, io::Error::from_raw_os_error(number)))
    }
}

fn cannot_run(program: &OsString, error: io::Error) -> WarpError {
    WarpError::Program { name: program.to_string_lossy().into_owned(), error }
}

/// The child: waits until it is traced, installs a filter, and runs the program.
fn child(go: RawFd, reports: RawFd, filters: &Filters, words: &[*const c_char]) -> ! {
    let mut byte = 0_u8;
    // SAFETY: the system calls take the addresses of locals, and of strings in the child's copy of
    // the parent's memory. Each of these calls is allowed after fork(2).
    unsafe {
        let mut wait = || {
            if libc::read(go, (&raw mut byte).cast(), 1) != 1 {
                libc::_exit(127);
            }
        };
        let report = |step: Step, number: c_int| {
            let report = [step as i32, number];
            libc::write(reports, report.as_ptr().cast(), size_of_val(&report));
        };
        let fail = |step: Step| -> ! {
            report(step, io::Error::last_os_error().raw_os_error().unwrap_or(0));
            libc::_exit(127)
        };
        wait();
        let mut fd = install_one(filters);
        if fd.is_none() {
            // The kernel lets a process without privileges have a filter only if the process cannot
            // gain any privileges (since Linux 3.5).
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            fd = install_one(filters);
        }
        match fd {
            Some(fd) => report(Step::HasFilter, fd),
            None => fail(Step::Filter),
        }
        wait();
        // Rust makes its programs ignore SIGPIPE. Restore the default, as std's Command does.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execvp(words[0], words.as_ptr());
        fail(Step::Exec)
    }
}

/// Installs the first filter that the kernel accepts. Returns the descriptor for its notices, -1 if
/// it has none.
fn install_one(filters: &Filters) -> Option<c_int> {
    // The kernel refuses this if a filter of the container already sends notices.
    let fd = install(&filters.notifying, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as c_int);
    (fd >= 0).then_some(fd).or_else(|| (install(&filters.tracing, 0) == 0).then_some(-1))
}

/// seccomp(2), since Linux 3.17.
fn install(filter: &[Op], flags: c_int) -> c_int {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    let program = &raw const program;
    // SAFETY: the kernel copies the program.
    unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, program) as c_int }
}

/// Ends this process by the signal that ended the program. Returns if the signal does not end it.
pub fn end_by(signal: c_int) {
    // Write no core, because the program has left its own, if any.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // SAFETY: these calls take numbers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
