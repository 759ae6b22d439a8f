//! The *census*: decides whether every thread of the traced processes waits.
//!
//! Only threads that run can wake others. So the state and activity of each thread that can run
//! without a report to the tracer are read twice: if none has run between the two readings, then at
//! one moment all of them were asleep. If none has run since the last census, that census serves as
//! the first reading. A thread in a trapped wait reports the end of the wait before it does
//! anything else, so it is read once, between the two readings. A thread that only a signal or the
//! tracer can wake is not read at all, unless a signal has been sent.
//!
//! A thread's activity is the number of its wakeups, which an eBPF program counts, or without that
//! the number of times that it got a CPU. A thread that was asleep, and has not been woken since,
//! is asleep, so its state need not be read again: with the eBPF program, a census reads only the
//! states of those threads that have run since the last census.
//!
//! A thread that waits for a disk (state D) is not asleep: what it waits for is under way.

use crate::sys::thread_events::ThreadEvents;
use crate::timeout::Endless;
use crate::tree::{Signals, State, Thread, Tree, Wait};
use libc::{c_long, pid_t};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Whether every thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Census {
    Asleep,
    /// This thread runs, or is about to.
    Awake(pid_t),
}

/// How a census reads a thread's activity: its wakeups or, without an eBPF program, its runs.
#[derive(Clone, Copy)]
struct Activity<'a>(Option<&'a ThreadEvents>);

impl Activity<'_> {
    /// Returns the activity of a thread; `None` if it cannot be read.
    fn of(&self, thread: &mut Thread) -> Option<u64> {
        match self.0 {
            Some(events) => Some(events.wakes(thread.tid)),
            None => runs(thread),
        }
    }

    /// Returns whether a thread that was once found asleep has not run since, and is not about to.
    fn has_slept_on(&self, thread: &mut Thread) -> bool {
        if thread.activity_asleep.is_none() {
            return false;
        }
        // Read the state before the activity, which then shows whether the thread has woken since.
        (self.0.is_some() || matches!(state(thread), Some(b'S' | b'Z' | b'X')))
            && self.of(thread) == thread.activity_asleep
    }

    /// Returns whether a thread is asleep that will report the end of its sleep to the tracer. If
    /// its state has to be read, adds the thread and its activity to `found`.
    fn sleeps_until_report(&self, thread: &mut Thread, found: &mut Found) -> bool {
        let Some(events) = self.0 else { return is_asleep(thread) };
        let activity = Some(events.wakes(thread.tid));
        if thread.activity_asleep == activity {
            return true;
        }
        found.push((thread.tid, activity));
        is_asleep(thread)
    }
}

/// Threads that were found asleep by their state, each with its activity before that reading.
type Found = Vec<(pid_t, Option<u64>)>;

/// Decides whether every thread waits. Without the eBPF program, the thread `first` is read first,
/// because it ran last. If signals are perhaps under way, threads that only sleep are read, too.
pub(crate) fn census(
    tree: &mut Tree,
    events: Option<&ThreadEvents>,
    first: pid_t,
    signals: Signals,
) -> Census {
    let activity = Activity(events);
    let last = tree.threads.get_mut(&first);
    if let Some(thread) = last
        && matches!(thread.state, State::Free | State::Waiting(_))
        && events.is_none()
        && !is_asleep(thread)
    {
        return Census::Awake(first);
    }
    // Threads that have run since they were last found asleep. Those in `reporting` will report
    // when they run again; those in `changed` will not.
    let (mut reporting, mut changed) = (Found::new(), Found::new());
    // Threads to be read after all those that can run without a report.
    let mut second = Vec::new();
    let may_be_signalled = signals == Signals::UnderWay;
    let ended_waits = &mut tree.ended_waits;
    for thread in tree.threads.values_mut() {
        match thread.state {
            State::New | State::Ending(_) | State::CreatingTimer { .. } => {
                return Census::Awake(thread.tid);
            }
            State::Stopped => {}
            State::Waiting(Wait { call, .. }) | State::Held(Wait { call, .. }, _)
                if call.endless == Endless::Pause && !may_be_signalled => {}
            State::Waiting(_) | State::Held(..) | State::Lending => second.push(thread.tid),
            State::Free => {
                if activity.has_slept_on(thread) {
                    continue;
                }
                thread.activity_asleep = None;
                // Read the activity before the state: the comparison below then finds each wakeup
                // that comes after the reading of the state.
                let before = activity.of(thread);
                if !is_asleep(thread) {
                    return Census::Awake(thread.tid);
                }
                if untraced_wait(thread) == UntracedWait::Ended {
                    ended_waits.extend(thread.untraced.take().and_then(|wait| wait.key));
                }
                changed.push((thread.tid, before));
            }
        }
    }
    for tid in second {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        let is_asleep = match thread.state {
            // In vfork(2), a thread waits for its child in the state of a wait for a disk.
            State::Lending => {
                matches!(state(thread), Some(b'D' | b'S' | b'Z' | b'X')) && !runs_now(thread)
            }
            _ => activity.sleeps_until_report(thread, &mut reporting),
        };
        if !is_asleep {
            return Census::Awake(tid);
        }
    }
    for &(tid, before) in &changed {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        let is_asleep = matches!(state(thread), Some(b'S' | b'Z' | b'X'));
        // If a thread's activity cannot be read, only its state is compared.
        if !is_asleep || (before.is_some() && activity.of(thread) != before) {
            return Census::Awake(tid);
        }
    }
    // The threads in `changed` have run, and have perhaps woken others: read these again.
    if !changed.is_empty() {
        for thread in tree.threads.values_mut() {
            let is_free = matches!(thread.state, State::Free) && thread.activity_asleep.is_some();
            if is_free && !activity.has_slept_on(thread) {
                return Census::Awake(thread.tid);
            }
        }
    }
    // The kernel counts a wakeup a little before it changes the thread's state. So while any thread
    // runs, the activity of a sleeping thread perhaps includes a wakeup that has yet to take
    // effect. Store the activities only now, because no thread runs.
    tree.fell_asleep.extend(changed.iter().map(|(tid, _)| tid));
    for (tid, activity) in changed.into_iter().chain(reporting) {
        if let Some(thread) = tree.threads.get_mut(&tid) {
            thread.activity_asleep = activity;
        }
    }
    Census::Asleep
}

/// Returns whether a thread waits for an event, or has ended. A thread that has stopped for the
/// tracer does not count as asleep: the tracer has yet to handle its event.
fn is_asleep(thread: &mut Thread) -> bool {
    match state(thread) {
        // A thread gets this state (S, asleep) a little before it leaves its CPU, and sometimes
        // finds then that it need not wait. The file `syscall` has the word "running" for a thread
        // on a CPU.
        Some(b'S') => !runs_now(thread),
        state => matches!(state, Some(b'Z' | b'X')),
    }
}

/// Returns whether a thread is on a CPU, or queued for one (since Linux 2.6.27, with
/// CONFIG_HAVE_ARCH_TRACEHOOK).
fn runs_now(thread: &mut Thread) -> bool {
    call(thread, |text| text.starts_with("running")).unwrap_or(false)
}

/// What is known of a thread's last untraced wait (one with the kernel's own timeout).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UntracedWait {
    /// The thread waits.
    Lasts,
    Ended,
    /// The thread runs: it is perhaps about to begin the wait or to go on with it, or has ended it.
    Unknown,
}

/// Returns whether a thread is still in its last untraced wait (one with the kernel's timeout).
pub(crate) fn untraced_wait(thread: &mut Thread) -> UntracedWait {
    let Some(wait) = thread.untraced else { return UntracedWait::Ended };
    match call(thread, |text| parse(text).map(|(number, ip, args)| wait.is_at(number, ip, args))) {
        Some(Some(false)) => UntracedWait::Ended,
        Some(None) => UntracedWait::Unknown,
        // `None`: no file `syscall`. At the deadline, the tracer compares registers instead.
        Some(Some(true)) | None => UntracedWait::Lasts,
    }
}

/// A system call: its number, the address of the instruction after it, and its arguments.
pub(crate) type Call = (c_long, u64, [u64; 6]);

/// Returns the system call in which a thread waits. `None` if it runs.
pub(crate) fn waiting_call(thread: &mut Thread) -> Option<Call> {
    call(thread, parse).flatten()
}

/// Parses the text of the file `syscall`. `None` if the thread runs.
fn parse(text: &str) -> Option<Call> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    // A thread that sleeps outside of all system calls has the number -1.
    if number < 0 {
        return Some((number, 0, [0; 6]));
    }
    let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let args = [next()?, next()?, next()?, next()?, next()?, next()?];
    let [_, ip] = [next()?, next()?];
    Some((number, ip, args))
}

/// Reads the system call in which a thread is: its number, arguments, stack and instruction.
fn call<T>(thread: &mut Thread, parse: impl FnOnce(&str) -> T) -> Option<T> {
    let path = format_args!("/proc/{}/task/{}/syscall", thread.process, thread.tid);
    let mut text = [0; 256];
    let length = read(&mut thread.call, path, &mut text)?;
    std::str::from_utf8(&text[..length]).ok().map(parse)
}

/// Returns the letter of a thread's state; X, that of an ended thread, if there is no such thread.
fn state(thread: &mut Thread) -> Option<u8> {
    let path = format_args!("/proc/{}/task/{}/stat", thread.process, thread.tid);
    let mut text = [0; 512];
    let Some(length) = read(&mut thread.stat, path, &mut text) else { return Some(b'X') };
    let text = &text[..length];
    let name_end = text.iter().rposition(|byte| *byte == b')');
    name_end.and_then(|end| text.get(end + 2)).copied()
}

/// Returns how often a thread has got a CPU (since Linux 2.6.13, with CONFIG_SCHED_INFO).
fn runs(thread: &mut Thread) -> Option<u64> {
    let path = format_args!("/proc/{}/task/{}/schedstat", thread.process, thread.tid);
    let mut text = [0; 128];
    let length = read(&mut thread.runs, path, &mut text)?;
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
    use crate::timeout::timed_call;
    use crate::tree::Untraced;

    #[test]
    fn a_thread_that_runs_may_yet_wait() {
        let args = [5, 0x7ff0, 128, 1_000, 0, 0];
        let number = libc::SYS_epoll_wait;
        let call = timed_call(number, args, |_| None).unwrap();
        let (deadline, key, expiry, was_asleep) = (0, None, None, false);
        let wait = Untraced { call, number, ip: 0x4000, args, deadline, key, expiry, was_asleep };
        let is_in = |text| parse(text).map(|(number, ip, args)| wait.is_at(number, ip, args));
        assert_eq!(is_in("232 0x5 0x7ff0 0x80 0x3e8 0x0 0x0 0x7fe0 0x4000\n"), Some(true));
        assert_eq!(is_in("232 0x5 0x7ff0 0x80 0x3e7 0x0 0x0 0x7fe0 0x4000\n"), Some(false));
        assert_eq!(is_in("202 0x5 0x7ff0 0x80 0x0 0x0 0x0 0x7fe0 0x4002\n"), Some(false));
        assert_eq!(is_in("-1 0x7fe0 0x4000\n"), Some(false));
        assert_eq!(is_in("running\n"), None);
    }
}
