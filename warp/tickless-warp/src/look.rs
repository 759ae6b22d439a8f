//! What the kernel shows of a thread: its state and its system call in `/proc`, and how often it
//! has run or was woken.

use crate::asleep::{Census, Look, Processes};
use crate::ends::{EndedBy, ended_by};
use crate::sys::descriptors::{self, FileId};
use crate::sys::events::{CPU_OF_PROCESS_1, OWN, clock};
use crate::sys::memory;
use crate::sys::ptrace::Call;
use crate::sys::thread_events::ThreadEvents;
use crate::thread::InCall;
use crate::timeout::is_futex_wait;
use crate::tree::Thread;
use libc::{c_long, c_short, pid_t};
use rustix::fs::Statx;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Files whose other end is not in the tree, each with the event of poll(2) that comes from there,
/// and what a message calls that end, if a wait for it is worth one.
pub(crate) type Outer = HashMap<(FileId, c_short), Awaited>;
type Awaited = Option<&'static str>;

/// The kernel of this machine.
pub(crate) struct Kernel<'a> {
    /// The eBPF program that follows wakeups, where it is loaded.
    pub(crate) events: Option<&'a ThreadEvents>,
    /// `None` if waits for what comes from outside do not hold the clock.
    pub(crate) outer: Option<&'a Outer>,
}

impl Look for Kernel<'_> {
    fn follows_wakeups(&self) -> bool {
        self.events.is_some()
    }

    /// Some kernels show no event while a thread of process 1 runs, not even that of an interrupt.
    /// `docs/dev/warp.md` has what was seen.
    fn unseen_ns(&self) -> u64 {
        // As process 1, the tracer has seen at its start that its own wakeups are counted.
        let events = self.events.filter(|_| *OWN != 1);
        events.map_or(0, |_| clock(CPU_OF_PROCESS_1))
    }

    /// Returns how often a thread was woken, or without the eBPF program how often it has got a CPU
    /// (since Linux 2.6.13, with CONFIG_SCHED_INFO).
    fn activity(&self, thread: &mut Thread) -> Option<u64> {
        if let Some(events) = self.events {
            return Some(events.wakes(thread.tid));
        }
        let path = format_args!("/proc/{}/task/{}/schedstat", thread.process, thread.tid);
        let mut text = [0; 128];
        let length = read(&mut thread.files.runs, path, &mut text)?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_whitespace().nth(2)?.parse().ok()
    }

    /// Returns the letter of a thread's state; X, that of an ended one, if there is no such thread.
    fn state(&self, thread: &mut Thread) -> Option<u8> {
        let path = format_args!("/proc/{}/task/{}/stat", thread.process, thread.tid);
        let mut text = [0; 512];
        let Some(length) = read(&mut thread.files.stat, path, &mut text) else { return Some(b'X') };
        let text = &text[..length];
        let name_end = text.iter().rposition(|byte| *byte == b')');
        name_end.and_then(|end| text.get(end + 2)).copied()
    }

    fn call(&self, thread: &mut Thread) -> InCall {
        in_call(thread)
    }

    fn awaited(&self, thread: &mut Thread, call: &Call, tree: &Processes) -> Option<Census> {
        let process = thread.process;
        // Without any, only a read of a terminal waits for what is outside.
        let looks = |outer: &&Outer| !outer.is_empty() || READS.contains(&call.0);
        if let Some(outer) = self.outer.filter(looks)
            && let Some(what) = awaits_outer(outer, thread, call)
        {
            return Some(Census::AwaitsOutside(thread.tid, what));
        }
        let is_event = |fd| {
            descriptors::status_of(process, fd).is_some_and(|file| descriptors::is_event(&file))
        };
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

/// Returns whether a thread that is stopped before a call would wait there until its time has
/// passed, while no other thread runs: in a sleep, for a futex with the expected value, or for a
/// few descriptors that are not ready. Not with a mask of signals: the call lets signals through
/// that have perhaps come long ago. Clears the events that poll(2) has found earlier.
pub(crate) fn only_time_ends(outer: Option<&Outer>, thread: &mut Thread, call: &Call) -> bool {
    /// Each descriptor takes a copy. A set of this many is one word of select(2).
    const COPIES_MAX: usize = 4;
    const COUNT_MAX: u64 = 64;
    let &(number, _, [first, second, third, fourth, fifth, sixth]) = call;
    let (count, mask) = match number {
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => return true,
        libc::SYS_futex => {
            let mut word = [0; 4];
            return is_futex_wait(number, call.2)
                && memory::read(thread.tid, first, &mut word)
                && u32::from_ne_bytes(word) == third as u32;
        }
        libc::SYS_poll => (second, 0),
        libc::SYS_ppoll => (second, fourth),
        libc::SYS_select => (first, 0),
        libc::SYS_pselect6 if sixth == 0 => (first, 0),
        // The argument points to the address of the mask.
        libc::SYS_pselect6 => {
            (first, memory::words(thread.tid, sixth).map_or(sixth, |[mask]| mask))
        }
        libc::SYS_epoll_wait => (1, 0),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => (1, fifth),
        _ => return false,
    };
    let outer = outer.filter(|outer| !outer.is_empty());
    let polls = polls(thread.tid, call).filter(|_| count <= COUNT_MAX && mask == 0);
    let Some(polls) = polls.filter(|polls| polls.len() <= COPIES_MAX) else { return false };
    let is_quiet = |poll: &libc::pollfd| {
        let Some(file) = descriptors::status_of(thread.tid, poll.fd as u64) else {
            return poll.fd < 0;
        };
        let awaited = outer.and_then(|outer| outer_of(outer, thread, number, poll, &file));
        awaited.is_none()
            && descriptors::is_event(&file)
            && descriptors::is_quiet(thread.tid, &mut thread.files.descriptors, poll)
    };
    let waits = polls.iter().all(is_quiet);
    if !waits || polls.iter().all(|poll| poll.revents == 0) {
        return waits;
    }
    let cleared = |of: &libc::pollfd| {
        u64::from(of.events.cast_unsigned()) << 32 | u64::from(of.fd.cast_unsigned())
    };
    memory::write_words(thread.tid, first, &polls.iter().map(cleared).collect::<Vec<u64>>())
}

pub(crate) const EPOLLS: [c_long; 3] =
    [libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];
const READS: [c_long; 4] = [libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg];

/// Returns the descriptors for which a thread waits in read(2), write(2), poll(2), select(2),
/// epoll_wait(2) or a call like these. `None` if it is another call, or its memory cannot be read.
fn polls(tid: pid_t, &(number, _, args): &Call) -> Option<Vec<libc::pollfd>> {
    /// The maximum number of descriptors of one call that are looked at.
    const COUNT_MAX: u64 = 1_024;
    let [first, second, third, fourth, ..] = args;
    let read = |words: u64, at| {
        let mut bytes = vec![[0; 8]; words as usize];
        let is_read = memory::read(tid, at, bytes.as_flattened_mut());
        is_read.then(|| bytes.into_iter().map(u64::from_ne_bytes).collect::<Vec<_>>())
    };
    let poll = |fd, events, revents| libc::pollfd { fd, events, revents };
    match number {
        libc::SYS_poll | libc::SYS_ppoll => {
            let of = |word: u64| poll(word as i32, (word >> 32) as i16, (word >> 48) as i16);
            Some(read(second.min(COUNT_MAX), first)?.into_iter().map(of).collect())
        }
        libc::SYS_select | libc::SYS_pselect6 => {
            let count = first.min(COUNT_MAX);
            let sets = [(second, libc::POLLIN), (third, libc::POLLOUT), (fourth, libc::POLLPRI)];
            let mut polls = Vec::new();
            for (at, events) in sets.into_iter().filter(|(at, _)| *at != 0) {
                let set = read(count.div_ceil(64), at)?;
                let fds = (0..count).filter(|fd| set[(fd / 64) as usize] >> (fd % 64) & 1 != 0);
                polls.extend(fds.map(|fd| poll(fd as i32, events, 0)));
            }
            Some(polls)
        }
        libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_pwritev2
        | libc::SYS_vmsplice
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_sendfile => Some(vec![poll(first as i32, libc::POLLOUT, 0)]),
        libc::SYS_tee | libc::SYS_splice => {
            let to = if number == libc::SYS_tee { second } else { third };
            Some(vec![poll(first as i32, libc::POLLIN, 0), poll(to as i32, libc::POLLOUT, 0)])
        }
        _ => {
            let is_one = [&READS[..], &EPOLLS].concat().contains(&number);
            is_one.then(|| vec![poll(first as i32, libc::POLLIN, 0)])
        }
    }
}

/// Returns for what outside of the tree a thread waits in a call.
pub(crate) fn awaits_outer(outer: &Outer, thread: &mut Thread, call: &Call) -> Option<Awaited> {
    let is_event_of = |event: c_short| outer.keys().any(|(_, of)| of & event != 0);
    let looks = |poll: &&libc::pollfd| {
        is_event_of(poll.events) || READS.contains(&call.0) || EPOLLS.contains(&call.0)
    };
    polls(thread.tid, call)?.iter().filter(looks).find_map(|poll| {
        let file = descriptors::status_of(thread.tid, poll.fd as u64)?;
        outer_of(outer, thread, call.0, poll, &file)
    })
}

/// Returns what is outside of the tree and causes the event of a file, or of one in it, for which a
/// thread waits.
fn outer_of(
    outer: &Outer,
    thread: &mut Thread,
    number: c_long,
    poll: &libc::pollfd,
    file: &Statx,
) -> Option<Awaited> {
    let own = descriptors::id(file);
    let reads = poll.events & libc::POLLIN != 0;
    let terminal = || (reads && descriptors::is_terminal(file)).then_some(Some("a terminal"));
    if EPOLLS.contains(&number) {
        return in_epoll(outer, thread, poll.fd as u64, own, EPOLL_DEPTH);
    }
    by_event(outer, own, poll.events).or_else(terminal)
}

/// Returns what is outside of the tree and causes one of these events of a file.
fn by_event(outer: &Outer, file: FileId, events: c_short) -> Option<Awaited> {
    let of = |event| outer.get(&(file, event)).filter(|_| events & event != 0).copied();
    of(libc::POLLIN).or_else(|| of(libc::POLLOUT))
}

/// How deep instances of epoll(7) are in one another at most.
const EPOLL_DEPTH: u32 = 5;

/// Returns what is outside of the tree and causes an event of an instance of epoll(7), which all
/// have the number `own`, or of one that is in it.
fn in_epoll(
    outer: &Outer,
    thread: &mut Thread,
    fd: u64,
    own: FileId,
    depth: u32,
) -> Option<Awaited> {
    const BYTES_MAX: usize = 1 << 24;
    let depth = depth.checked_sub(1)?;
    let path = format_args!("/proc/{}/fdinfo/{fd}", thread.tid);
    let mut info = vec![0; 2048];
    let file = thread.files.infos.entry(fd).or_default();
    // What fills the buffer is perhaps longer.
    let length = loop {
        let length = read(file, path, &mut info)?;
        if length < info.len() || length >= BYTES_MAX {
            break length;
        }
        info.resize(8 * length, 0);
    };
    let info = std::str::from_utf8(&info[..length]).ok()?;
    info.lines().filter_map(|line| line.strip_prefix("tfd:")).find_map(|line| {
        let (fd, _) = line.trim_start().split_once(' ')?;
        let field = |name| {
            let text = line.split_once(name)?.1.trim_start();
            u64::from_str_radix(text.split(' ').next()?, 16).ok()
        };
        let device = field("sdev:")?;
        // The kernel's number of a device has 20 bits for its minor number.
        let id = ((device >> 20) as u32, (device & 0xf_ffff) as u32, field("ino:")?);
        let mut events = field("events:")? as u32;
        // Programs ask for it once and for ever, and then sleep although they could write.
        if events & libc::EPOLLET as u32 != 0 {
            events &= !(libc::EPOLLOUT as u32);
        }
        let mut nested =
            || (id == own).then(|| in_epoll(outer, thread, fd.parse().ok()?, own, depth));
        by_event(outer, id, events as c_short).or_else(|| nested().flatten())
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

/// Reads a file of `/proc`, and keeps it open for the next read. `None` if the thread has ended.
fn read(file: &mut Option<File>, path: std::fmt::Arguments<'_>, text: &mut [u8]) -> Option<usize> {
    if file.is_none() {
        *file = File::open(path.to_string()).ok();
    }
    file.as_ref()?.read_at(text, 0).ok().filter(|length| *length > 0)
}
