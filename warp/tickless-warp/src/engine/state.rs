//! The state of the tracer, which all files of this module use.

use super::clock::VirtualClock;
use super::timer::{Timer, TimerId};
use super::ways::Ways;
use crate::deadlines::Deadlines;
use crate::options::{Ended, Note, Options};
use crate::page::patch::Functions;
use crate::report::Log;
use crate::sys::descriptors::FileId;
use crate::sys::events::Handling;
use crate::sys::notices::Listener;
use crate::sys::thread_events::ThreadEvents;
use crate::sys::turns::Turns;
use crate::tree::Tree;
use libc::pid_t;
use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

/// What comes due.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Due {
    /// The wait of a thread ends.
    Wait(pid_t),
    /// A timer of a program expires.
    Timer(TimerId),
    /// The time of the whole run ends.
    Until,
}

/// For how many waits the clock is not tried to move for a thread that runs alone, once another one
/// was awake, or the thread has made another call after its last wait.
pub(super) const PAUSE: u32 = 16;

/// The tracer of one program and all processes that it starts.
pub(crate) struct Engine<'a> {
    pub(crate) options: &'a Options,
    pub(crate) notes: &'a mut dyn FnMut(Note),
    pub(crate) clock: VirtualClock,
    pub(crate) deadlines: Deadlines<Due>,
    pub(crate) tree: Tree,
    /// The vDSO's functions that are replaced; `None` where the kernel maps no vDSO.
    pub(crate) functions: Option<Functions>,
    /// The descriptor on which notices of the filter arrive; `None` where all waits are traced.
    pub(crate) listener: Option<Listener>,
    /// Wakeups and sleeps of the threads; `None` where the kernel allows no eBPF programs.
    pub(crate) thread_events: Option<ThreadEvents>,
    pub(crate) handling: Handling,
    pub(crate) root: pid_t,
    /// How the program itself has ended, while other processes that it started still run.
    pub(crate) ended: Option<Ended>,
    /// Whether execve(2) has started the program; until then it has only been forked.
    pub(crate) has_begun: bool,
    /// The thread that was resumed last.
    pub(crate) last: pid_t,
    /// Whether a thread has been resumed in this round of the loop, or a timer has expired.
    pub(crate) has_resumed: bool,
    /// How many waits of threads that run alone to let pass before the clock is tried to move.
    pub(crate) tries_in: u32,
    /// For how many such waits not to stop the thread at its next call.
    pub(crate) stops_in: u32,
    /// The thread that takes turns with the tracer.
    pub(crate) turns: Option<Turns>,
    pub(crate) timers: HashMap<TimerId, Timer>,
    /// The timer that a process's descriptor was when the process last made a call on it.
    pub(crate) timers_by_fd: HashMap<(pid_t, u64), TimerId>,
    /// How many timers that are descriptors have been made so far.
    pub(crate) descriptors_made: u64,
    /// For each socket's number: its timeouts for receiving and sending, in ns; 0 for none.
    pub(crate) socket_timeouts: HashMap<FileId, [u64; 2]>,
    /// What leads out of the tree.
    pub(crate) ways: Ways,
    /// Whether a program of the tree has made a pseudo-terminal.
    pub(crate) has_terminals: bool,
    /// Whether a program of the tree, or what has started the tracer, has a filter of seccomp(2).
    pub(crate) has_filters: bool,
    /// The kinds of notes that are given once, and have been.
    pub(crate) noted: HashSet<Discriminant<Note>>,
    /// The log from which the report is made; `None` if the caller wants no report.
    pub(crate) log: Option<Log>,
    /// By how much the clock has just jumped, to the next deadline; for the log, if there is one.
    pub(crate) jumped: Option<Duration>,
}

impl Engine<'_> {
    pub(crate) fn note(&mut self, note: Note) {
        (self.notes)(note);
    }

    /// Gives a note, unless one of its kind was given so before.
    pub(crate) fn note_once(&mut self, note: Note) {
        if self.noted.insert(discriminant(&note)) {
            self.note(note);
        }
    }
}

/// The result of a call that was given an address which cannot be read or written.
pub(crate) const FAULT: i64 = -(libc::EFAULT as i64);
pub(crate) const INVALID: i64 = -(libc::EINVAL as i64);
