//! What the kernel shows of a thread: its state and its system call in `/proc`, and how often it
//! has run or was woken.

use crate::asleep::{Census, Look, Processes};
use crate::ends::{EndedBy, ended_by};
use crate::sys::descriptors::{self, FileId};
use crate::sys::memory;
use crate::sys::thread_events::ThreadEvents;
use crate::thread::{Call, InCall};
use crate::tree::Thread;
use libc::pid_t;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// What data come from that no thread of the tree sends, with what a message calls it.
pub(crate) type Inputs = HashMap<FileId, &'static str>;

/// The kernel of this machine.
pub(crate) struct Kernel<'a> {
    /// The eBPF program that follows wakeups, where it is loaded.
    pub(crate) events: Option<&'a ThreadEvents>,
    pub(crate) is_disk_at_work: bool,
    /// `None` if waits for what comes from outside do not hold the clock.
    pub(crate) inputs: Option<&'a Inputs>,
}

impl Look for Kernel<'_> {
    fn is_disk_at_work(&self) -> bool {
        self.is_disk_at_work
    }

    fn follows_wakeups(&self) -> bool {
        self.events.is_some()
    }

    fn activity(&self, thread: &mut Thread) -> Option<u64> {
        match self.events {
            Some(events) => Some(events.wakes(thread.tid)),
            None => runs(thread),
        }
    }

    fn state(&self, thread: &mut Thread) -> Option<u8> {
        state(thread)
    }

    fn call(&self, thread: &mut Thread) -> InCall {
        in_call(thread)
    }

    fn awaited(&self, thread: &Thread, call: &Call, tree: &Processes) -> Option<Census> {
        let process = thread.process;
        if let Some(what) = self.inputs.and_then(|inputs| input(inputs, thread, call)) {
            return Some(Census::AwaitsOutside(thread.tid, what));
        }
        let is_event = |fd| descriptors::is_event(process, fd);
        let is_of_tree = match ended_by(call) {
            EndedBy::Tree => true,
            EndedBy::Kernel => false,
            EndedBy::Descriptors(from, to) => match [from, to].map(is_event) {
                [true, false] => !descriptors::is_ready(process, from, libc::POLLIN),
                [false, true] => !descriptors::is_ready(process, to, libc::POLLOUT),
                [are_events, _] => are_events,
            },
            EndedBy::Lock(fd) => is_locked_by_others(process, fd, tree),
            EndedBy::Path(from, at) => descriptors::is_named_pipe(thread.tid, from, at),
        };
        (!is_of_tree).then_some(Census::Awaits(thread.tid, call.0))
    }
}

/// Returns for which input a thread waits, in read(2), poll(2), select(2), epoll_wait(2) or a call
/// like these.
fn input(inputs: &Inputs, thread: &Thread, &(number, _, args): &Call) -> Option<&'static str> {
    /// The maximum number of descriptors of one call that are looked at.
    const COUNT_MAX: u64 = 1_024;
    let [first, second, ..] = args;
    let of = |fd: u64| {
        let file = descriptors::status_of(thread.process, fd)?;
        let terminal = || descriptors::is_terminal(&file).then_some("a terminal");
        inputs.get(&descriptors::id(&file)).copied().or_else(terminal)
    };
    let read = |length: u64, at| {
        let mut bytes = vec![0; length as usize];
        memory::read(thread.tid, at, &mut bytes).then_some(bytes)
    };
    match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => of(first),
        _ if inputs.is_empty() => None,
        libc::SYS_poll | libc::SYS_ppoll => {
            read(8 * second.min(COUNT_MAX), first)?.chunks_exact(8).find_map(|poll| {
                let [a, b, c, d, events, ..] = *poll else { return None };
                let fd = u32::from_ne_bytes([a, b, c, d]);
                (i16::from(events) & libc::POLLIN != 0).then(|| of(fd.into())).flatten()
            })
        }
        libc::SYS_select | libc::SYS_pselect6 => {
            let count = first.min(COUNT_MAX);
            let set = read(count.div_ceil(64) * 8, second)?;
            (0..count).filter(|fd| set[(fd / 8) as usize] >> (fd % 8) & 1 != 0).find_map(of)
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            in_epoll(inputs, thread.process, first, EPOLL_DEPTH)
        }
        _ => None,
    }
}

/// How deep instances of epoll(7) are in one another at most.
const EPOLL_DEPTH: u32 = 5;

/// Returns which input is in an instance of epoll(7), or in one that is in it.
fn in_epoll(inputs: &Inputs, process: pid_t, fd: u64, depth: u32) -> Option<&'static str> {
    let depth = depth.checked_sub(1)?;
    let own = descriptors::id(&descriptors::status_of(process, fd)?);
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).ok()?;
    info.lines().filter_map(|line| line.strip_prefix("tfd:")).find_map(|line| {
        let (fd, _) = line.trim_start().split_once(' ')?;
        let field = |name| {
            let text = line.split_once(name)?.1.trim_start();
            u64::from_str_radix(text.split(' ').next()?, 16).ok()
        };
        let device = field("sdev:")?;
        // The kernel's number of a device has 20 bits for its minor number.
        let id = ((device >> 20) as u32, (device & 0xf_ffff) as u32, field("ino:")?);
        let reads = field("events:")? & libc::EPOLLIN as u64 != 0;
        let nested = || (id == own).then(|| in_epoll(inputs, process, fd.parse().ok()?, depth));
        inputs.get(&id).copied().filter(|_| reads).or_else(|| nested().flatten())
    })
}

/// Returns whether another process of the tree has an open file that holds a lock, with the number
/// of the file that a process has as this descriptor (fdinfo has it since Linux 5.14).
fn is_locked_by_others(process: pid_t, fd: u64, tree: &Processes) -> bool {
    let info = |of: pid_t, fd| fs::read_to_string(format!("/proc/{of}/fdinfo/{fd}"));
    let own = info(process, fd.to_string()).unwrap_or_default();
    let Some(number) = own.lines().find_map(|line| line.strip_prefix("ino:")) else { return false };
    let file = format!(":{} ", number.trim());
    let is_lock = |line: &str| line.starts_with("lock:") && line.contains(&file);
    tree.keys().filter(|of| **of != process).any(|of| {
        let fds = fs::read_dir(format!("/proc/{of}/fdinfo")).into_iter().flatten().flatten();
        let mut infos = fds.filter_map(|fd| info(*of, fd.file_name().into_string().ok()?).ok());
        infos.any(|info| info.lines().any(is_lock))
    })
}

/// Reads the system call in which a thread is (`/proc/PID/task/TID/syscall`, since Linux 2.6.27,
/// with CONFIG_HAVE_ARCH_TRACEHOOK).
pub(crate) fn in_call(thread: &mut Thread) -> InCall {
    let path = format_args!("/proc/{}/task/{}/syscall", thread.process, thread.tid);
    let mut text = [0; 256];
    let length = read(&mut thread.files.call, path, &mut text);
    let text = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
    text.map_or(InCall::Waits((-1, 0, [0; 6])), parse)
}

/// Parses the text of the file `syscall`, which has the word "running" for a thread that is on a
/// CPU, or queued for one.
fn parse(text: &str) -> InCall {
    let call = || {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        if number < 0 {
            return Some((number, 0, [0; 6]));
        }
        let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let args = [next()?, next()?, next()?, next()?, next()?, next()?];
        let [_, ip] = [next()?, next()?];
        Some((number, ip, args))
    };
    call().map_or(InCall::Runs, InCall::Waits)
}

/// Returns the letter of a thread's state; X, that of an ended thread, if there is no such thread.
fn state(thread: &mut Thread) -> Option<u8> {
    let path = format_args!("/proc/{}/task/{}/stat", thread.process, thread.tid);
    let mut text = [0; 512];
    let Some(length) = read(&mut thread.files.stat, path, &mut text) else { return Some(b'X') };
    let text = &text[..length];
    let name_end = text.iter().rposition(|byte| *byte == b')');
    name_end.and_then(|end| text.get(end + 2)).copied()
}

/// Returns how often a thread has got a CPU (since Linux 2.6.13, with CONFIG_SCHED_INFO).
fn runs(thread: &mut Thread) -> Option<u64> {
    let path = format_args!("/proc/{}/task/{}/schedstat", thread.process, thread.tid);
    let mut text = [0; 128];
    let length = read(&mut thread.files.runs, path, &mut text)?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split_whitespace().nth(2)?.parse().ok()
}

/// Reads a file of `/proc`, and keeps it open for the next read. `None` if the thread has ended.
fn read(file: &mut Option<File>, path: std::fmt::Arguments<'_>, text: &mut [u8]) -> Option<usize> {
    if file.is_none() {
        *file = File::open(path.to_string()).ok();
    }
    file.as_ref()?.read_at(text, 0).ok().filter(|length| *length > 0)
}
