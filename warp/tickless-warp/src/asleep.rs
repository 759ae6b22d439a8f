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
//! A thread that waits for a disk (state D) is not asleep: what it waits for is under way. So is
//! what a thread waits for that sleeps (state S) in a call of which no end is known; `ends` has the
//! calls that wait for the tree.
//!
//! The census reads the kernel through [`Look`]. Its tests read a small kernel, whose threads run
//! on between any two readings.

use crate::sys::ptrace::Call;
use crate::thread::{InCall, Progress, Signals, State, Wait};
use crate::timeout::Endless;
use crate::tree::{Process, Thread, Tree};
use libc::{c_long, pid_t};
use std::collections::HashMap;

/// Whether every thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Census {
    Asleep,
    /// This thread runs, or is about to.
    Awake(pid_t),
    /// This thread sleeps in this system call, and something that the tracer does not see ends it.
    Awaits(pid_t, c_long),
    /// This thread waits for what is outside of the tree, which the text names if users are told.
    AwaitsOutside(pid_t, Option<&'static str>),
}

/// How a census reads what a thread does.
pub(crate) trait Look {
    /// Returns whether the activity is the number of wakeups, which rises before a thread runs.
    fn follows_wakeups(&self) -> bool;
    /// Returns for how long threads have run while which a wakeup is perhaps not counted.
    fn unseen_ns(&self) -> u64;
    /// Returns the activity of a thread; `None` if it cannot be read.
    fn activity(&self, thread: &mut Thread) -> Option<u64>;
    /// Returns the letter of a thread's state.
    fn state(&self, thread: &mut Thread) -> Option<u8>;
    fn call(&self, thread: &mut Thread) -> InCall;
    /// Returns what holds the clock if no thread of the tree, or signal, ends the sleep of a thread
    /// in a call.
    fn awaited(&self, thread: &mut Thread, call: &Call, tree: &Processes) -> Option<Census>;
}

/// The processes of a tree, by their numbers.
pub(crate) type Processes = HashMap<pid_t, Process>;

/// Returns whether a thread that was once found asleep has not run since, and is not about to.
fn has_slept_on(look: &impl Look, thread: &mut Thread) -> bool {
    if thread.activity_asleep.is_none() {
        return false;
    }
    // Read the state before the activity, which then shows whether the thread has woken since.
    (look.follows_wakeups() || matches!(look.state(thread), Some(b'S' | b'Z' | b'X')))
        && look.activity(thread) == thread.activity_asleep
}

/// Returns whether a thread is asleep that will report the end of its sleep to the tracer. If its
/// state has to be read, adds the thread and its activity to `found`.
fn sleeps_until_report(look: &impl Look, thread: &mut Thread, found: &mut Found) -> bool {
    if look.follows_wakeups() {
        let activity = look.activity(thread);
        if thread.activity_asleep == activity {
            return true;
        }
        found.push((thread.tid, activity));
    }
    sleep(look, thread).is_some()
}

/// Returns whether a thread runs, where only its state tells.
fn is_awake(look: &impl Look, thread: Option<&mut Thread>) -> bool {
    thread.is_some_and(|thread| {
        matches!(thread.state, State::Free(_) | State::Waiting(_))
            && !look.follows_wakeups()
            && sleep(look, thread).is_none()
    })
}

/// Threads that were found asleep by their state, each with its activity before that reading.
type Found = Vec<(pid_t, Option<u64>)>;

/// Decides whether every thread waits. Without the eBPF program, the thread `first` is read first,
/// because it ran last. If signals are perhaps under way, threads that only sleep are read, too;
/// if all are asleep, no signal is under way any more.
pub(crate) fn census(tree: &mut Tree, look: &impl Look, first: pid_t) -> Census {
    if is_awake(look, tree.threads.get_mut(&first)) {
        return Census::Awake(first);
    }
    // Threads that have run since they were last found asleep. Those in `reporting` will report
    // when they run again; those in `changed` will not.
    let (mut reporting, mut changed) = (Found::new(), Vec::new());
    // Threads to be read after all those that can run without a report.
    let mut second = Vec::new();
    let may_be_signalled = tree.signals == Signals::UnderWay;
    // Of a thread that has stopped, and runs alone, nothing is read.
    let reads = tree.threads.values().any(|thread| !matches!(thread.state, State::Stopped(_)));
    let unseen_ns = if reads { look.unseen_ns() } else { tree.unseen_ns };
    if unseen_ns != tree.unseen_ns {
        tree.threads.values_mut().for_each(|thread| thread.activity_asleep = None);
    }
    for thread in tree.threads.values_mut() {
        match thread.state {
            State::New | State::Ending(_) | State::CreatingTimer => {
                return Census::Awake(thread.tid);
            }
            State::Stopped(_) if !may_be_signalled => {}
            State::Waiting(Wait { call, .. }) | State::Held(Wait { call, .. }, _)
                if call.endless == Endless::Pause && !may_be_signalled => {}
            State::Stopped(_) | State::Waiting(_) | State::Held(..) | State::Lending => {
                second.push(thread.tid);
            }
            State::Free(_) => {
                if has_slept_on(look, thread) {
                    continue;
                }
                (thread.activity_asleep, thread.call_asleep) = (None, InCall::Runs);
                // Read the activity before the state: the comparison below then finds each wakeup
                // that comes after the reading of the state.
                let before = look.activity(thread);
                let Some(in_call) = sleep(look, thread) else { return Census::Awake(thread.tid) };
                let progress = thread.state.untraced().map(|wait| wait.progress(in_call));
                if let InCall::Waits(call) = in_call
                    && let Some(held) = look.awaited(thread, &call, &tree.processes)
                    && (progress != Some(Progress::Lasts)
                        || matches!(held, Census::AwaitsOutside(..)))
                {
                    return held;
                }
                changed.push((thread.tid, before, in_call));
            }
        }
    }
    for tid in second {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        let is_asleep = match thread.state {
            // A signal that ends the stop takes this letter away, or leads to an event.
            State::Stopped(_) => look.state(thread) == Some(b't'),
            // In vfork(2), a thread waits for its child in the state of a wait for a disk.
            State::Lending => {
                matches!(look.state(thread), Some(b'D' | b'S' | b'Z' | b'X'))
                    && look.call(thread) != InCall::Runs
            }
            _ => sleeps_until_report(look, thread, &mut reporting),
        };
        if !is_asleep {
            return Census::Awake(tid);
        }
        if let State::Waiting(wait) = thread.state
            && let Some(held @ Census::AwaitsOutside(..)) =
                look.awaited(thread, &wait.in_call(), &tree.processes)
        {
            return held;
        }
    }
    if let Some(tid) = runs_again(tree, look, &changed) {
        return Census::Awake(tid);
    }
    if reads && look.unseen_ns() != unseen_ns {
        return Census::Awake(first);
    }
    tree.unseen_ns = unseen_ns;
    // The kernel counts a wakeup a little before it changes the thread's state. So while any thread
    // runs, the activity of a sleeping thread perhaps includes a wakeup that has yet to take
    // effect. Store the activities only now, because no thread runs.
    tree.fell_asleep.extend(changed.iter().map(|(tid, _, in_call)| (*tid, *in_call)));
    tree.signals = tree.signals_of_kernel;
    let changed = changed.into_iter().map(|(tid, activity, _)| (tid, activity));
    for (tid, activity) in changed.chain(reporting) {
        if let Some(thread) = tree.threads.get_mut(&tid) {
            thread.activity_asleep = activity;
        }
    }
    Census::Asleep
}

/// Returns a thread that has run since it was found asleep. Those in `changed` have run since the
/// last census; each has its activity and its call.
fn runs_again(
    tree: &mut Tree,
    look: &impl Look,
    changed: &[(pid_t, Option<u64>, InCall)],
) -> Option<pid_t> {
    for &(tid, before, in_call) in changed {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        // A wakeup that was counted before the first reading has perhaps taken effect after it. The
        // thread then sleeps in another call, in which it perhaps awaits the kernel.
        let is_asleep = sleep(look, thread) == Some(in_call);
        // If a thread's activity cannot be read, only its state is compared.
        if !is_asleep || (before.is_some() && look.activity(thread) != before) {
            return Some(tid);
        }
    }
    if changed.is_empty() {
        return None;
    }
    // These threads have perhaps woken others: read those again.
    let slept =
        |of: &&mut Thread| of.activity_asleep.is_some() && matches!(of.state, State::Free(_));
    let mut others = tree.threads.values_mut().filter(slept);
    others.find_map(|thread| (!has_slept_on(look, thread)).then_some(thread.tid))
}

/// Returns the call in which a thread waits for an event, or has ended; `None` if it does neither.
/// A thread that has stopped for the tracer does not count as asleep: the tracer has yet to handle
/// its event.
fn sleep(look: &impl Look, thread: &mut Thread) -> Option<InCall> {
    match look.state(thread) {
        // A thread gets this state (S, asleep) a little before it leaves its CPU, and sometimes
        // finds then that it need not wait.
        Some(b'S') => Some(look.call(thread)).filter(|call| *call != InCall::Runs),
        Some(b'Z' | b'X') => Some(InCall::Ended),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
