//! Decides whether every thread of the tree waits.
//!
//! Only threads that run can wake others. So the threads that may have run without a report are
//! read twice, state and number of runs: if none has run between the two readings, then at one
//! moment all of them were asleep. If none has run since the last census, that one was the first
//! reading. A thread in a trapped wait reports its end before it does anything else, so it is read
//! once, between the two. A thread that the tracer holds, and one that only a signal can wake, are
//! not read at all, unless a signal has been sent.
//!
//! A thread that waits for a disk (state D) is not asleep: what it waits for is under way.

use crate::timeout::Endless;
use crate::tree::{Signals, State, Thread, Tree};
use libc::pid_t;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Whether every thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Census {
    Asleep,
    /// This thread runs, or is about to.
    Awake(pid_t),
}

/// Decides whether every thread waits. `first` is read first, because it ran last. `signals` says
/// whether signals may be under way, so that threads that only sleep have to be read too.
pub(crate) fn census(tree: &mut Tree, first: pid_t, signals: Signals) -> Census {
    let last = tree.threads.get_mut(&first);
    if let Some(thread) = last
        && matches!(thread.state, State::Free | State::Waiting(_))
        && !is_asleep(thread)
    {
        return Census::Awake(first);
    }
    // Those that have run since they were last found asleep, with their number of runs.
    let mut changed = Vec::new();
    for thread in tree.threads.values_mut() {
        match thread.state {
            State::New | State::Ending(_) | State::CreatingTimer { .. } => {
                return Census::Awake(thread.tid);
            }
            State::Held(_) | State::Stopped | State::Lending | State::Waiting(_) => {}
            State::Free => {
                if has_slept_on(thread) {
                    continue;
                }
                // The runs first: a thread that is asleep afterwards has to get a CPU again to run,
                // which increases them.
                let runs = runs(thread);
                if !is_asleep(thread) {
                    return Census::Awake(thread.tid);
                }
                changed.push((thread.tid, runs));
            }
        }
    }
    let may_be_signalled = signals == Signals::UnderWay;
    for thread in tree.threads.values_mut() {
        let is_asleep = match thread.state {
            State::Waiting(wait) if wait.call.endless == Endless::Pause && !may_be_signalled => {
                true
            }
            State::Waiting(_) => is_asleep(thread),
            // vfork(2) waits for its child in the state of a thread that waits for a disk.
            State::Lending => {
                matches!(state(thread), Some(b'D' | b'S' | b'Z' | b'X')) && !runs_now(thread)
            }
            _ => true,
        };
        if !is_asleep {
            return Census::Awake(thread.tid);
        }
    }
    // If none has run since the last census, none can have woken another after that was read.
    if changed.is_empty() {
        return Census::Asleep;
    }
    for (tid, runs) in changed {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        thread.runs_asleep = runs;
        // A thread whose runs cannot be read is compared by its state only.
        if !has_slept_on(thread) && (runs.is_some() || !is_asleep(thread)) {
            return Census::Awake(tid);
        }
    }
    for thread in tree.threads.values_mut() {
        let is_free = matches!(thread.state, State::Free) && thread.runs_asleep.is_some();
        if is_free && !has_slept_on(thread) {
            return Census::Awake(thread.tid);
        }
    }
    Census::Asleep
}

/// Returns whether a thread that was once found asleep has not run since, and is not about to. The
/// state first: a thread that was about to run then has run afterwards, or is seen.
fn has_slept_on(thread: &mut Thread) -> bool {
    thread.runs_asleep.is_some()
        && matches!(state(thread), Some(b'S' | b'Z' | b'X'))
        && runs(thread) == thread.runs_asleep
}

/// Returns whether a thread waits for an event, or has ended. A thread that has stopped for the
/// tracer has an event which is not handled yet.
fn is_asleep(thread: &mut Thread) -> bool {
    match state(thread) {
        // A thread gets this state a little before it leaves its CPU, and may yet find that it need
        // not wait. The file `syscall` has the word "running" for a thread on a CPU.
        Some(b'S') => !runs_now(thread),
        state => matches!(state, Some(b'Z' | b'X')),
    }
}

/// Returns whether a thread is on a CPU, or queued for one (since Linux 2.6.27, with
/// CONFIG_HAVE_ARCH_TRACEHOOK).
fn runs_now(thread: &mut Thread) -> bool {
    let path = format_args!("/proc/{}/task/{}/syscall", thread.process, thread.tid);
    let mut text = [0; 256];
    let length = read(&mut thread.call, path, &mut text);
    length.is_some_and(|length| text[..length].starts_with(b"running"))
}

/// Returns the letter of a thread's state; X, for an ended one, if it is gone.
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

/// Reads a file again that is kept open. `None` if the thread is gone.
fn read(file: &mut Option<File>, path: std::fmt::Arguments<'_>, text: &mut [u8]) -> Option<usize> {
    if file.is_none() {
        *file = File::open(path.to_string()).ok();
    }
    file.as_ref()?.read_at(text, 0).ok().filter(|length| *length > 0)
}
