//! What the kernel shows of a thread: its state and its system call in `/proc`, and how often it
//! has run or was woken.

use crate::asleep::Look;
use crate::ends::{EndedBy, ended_by};
use crate::sys::descriptors;
use crate::sys::thread_events::ThreadEvents;
use crate::thread::{Call, InCall};
use crate::tree::Thread;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The kernel of this machine.
pub(crate) struct Kernel<'a> {
    /// The eBPF program that follows wakeups, where it is loaded.
    pub(crate) events: Option<&'a ThreadEvents>,
    pub(crate) is_disk_at_work: bool,
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

    fn waits_for_tree(&self, thread: &Thread, call: &Call) -> bool {
        let is_event = |fd| descriptors::is_event(thread.process, fd);
        match ended_by(call) {
            EndedBy::Tree => true,
            EndedBy::Kernel => false,
            EndedBy::Descriptors(one, other) => is_event(one) || (one != other && is_event(other)),
            EndedBy::Path(from, at) => descriptors::is_named_pipe(thread.tid, from, at),
        }
    }
}

/// Reads the system call in which a thread is (`/proc/PID/task/TID/syscall`, since Linux 2.6.27,
/// with CONFIG_HAVE_ARCH_TRACEHOOK).
pub(crate) fn in_call(thread: &mut Thread) -> InCall {
    let path = format_args!("/proc/{}/task/{}/syscall", thread.process, thread.tid);
    let mut text = [0; 256];
    let Some(length) = read(&mut thread.files.call, path, &mut text) else {
        return InCall::Unknown;
    };
    std::str::from_utf8(&text[..length]).map_or(InCall::Unknown, parse)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{Mark, Untraced};
    use crate::timeout::timed_call;

    #[test]
    fn a_thread_that_runs_may_yet_wait() {
        let args = [5, 0x7ff0, 128, 1_000, 0, 0];
        let number = libc::SYS_epoll_wait;
        let call = timed_call(number, args, |_| None).unwrap();
        let (deadline, mark) = (0, Mark::Unknown);
        let wait = Untraced { call, number, ip: 0x4000, args, deadline, mark };
        let is_in = |text| match parse(text) {
            InCall::Waits(call) => Some(wait.is_at(&call)),
            _ => None,
        };
        assert_eq!(is_in("232 0x5 0x7ff0 0x80 0x3e8 0x0 0x0 0x7fe0 0x4000\n"), Some(true));
        assert_eq!(is_in("232 0x5 0x7ff0 0x80 0x3e7 0x0 0x0 0x7fe0 0x4000\n"), Some(false));
        assert_eq!(is_in("202 0x5 0x7ff0 0x80 0x0 0x0 0x0 0x7fe0 0x4002\n"), Some(false));
        assert_eq!(is_in("-1 0x7fe0 0x4000\n"), Some(false));
        assert_eq!(parse("running\n"), InCall::Runs);
    }
}
