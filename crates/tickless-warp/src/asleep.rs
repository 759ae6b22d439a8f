//! Who is asleep: decides whether every thread of the tree waits.
//!
//! Only threads that run can wake others. So the threads that may have run without a report are
//! read twice, state and number of runs: if none has run between the two readings, then at one
//! moment all of them were asleep. A thread in a trapped wait reports its end before it does
//! anything else, so it is read once, between the two. A thread that the tracer holds, and one that
//! only a signal can wake, are not read at all, unless a signal has been sent.
//!
//! A thread that waits for a disk (state D) is not asleep: what it waits for is under way.

use crate::timeout::Endless;
use crate::tree::{State, Thread, Tree};
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
pub(crate) fn census(tree: &mut Tree, first: pid_t, signals: bool) -> Census {
    if let Some(thread) = tree.threads.get_mut(&first) {
        if matches!(thread.state, State::Free | State::Waiting(_)) && !is_asleep(thread) {
            return Census::Awake(first);
        }
    }
    let mut before = Vec::new();
    for thread in tree.threads.values_mut() {
        match thread.state {
            State::New | State::Ending(_) | State::Calling(..) => return Census::Awake(thread.tid),
            State::Held(_) | State::Stopped | State::Lending | State::Waiting(_) => {}
            State::Free => {
                if !is_asleep(thread) {
                    return Census::Awake(thread.tid);
                }
                before.push((thread.tid, runs(thread)));
            }
        }
    }
    for thread in tree.threads.values_mut() {
        let State::Waiting(wait) = thread.state else { continue };
        let only_sleeps = wait.call.endless == Endless::Pause && !signals;
        if !only_sleeps && !is_asleep(thread) {
            return Census::Awake(thread.tid);
        }
    }
    // A single thread cannot have been woken by another after it was read.
    if before.len() > 1 {
        for (tid, runs_before) in before {
            let Some(thread) = tree.threads.get_mut(&tid) else { continue };
            if runs(thread) != runs_before || !is_asleep(thread) {
                return Census::Awake(tid);
            }
        }
    }
    Census::Asleep
}

/// Returns whether a thread waits for an event, or has ended. A thread that has stopped for the
/// tracer has an event which is not handled yet.
fn is_asleep(thread: &mut Thread) -> bool {
    let path = format_args!("/proc/{}/task/{}/stat", thread.process, thread.tid);
    let mut text = [0; 512];
    let Some(length) = read(&mut thread.stat, path, &mut text) else { return true };
    let text = &text[..length];
    let name_end = text.iter().rposition(|byte| *byte == b')');
    let state = name_end.and_then(|end| text.get(end + 2));
    matches!(state, Some(b'S' | b'Z' | b'X'))
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
