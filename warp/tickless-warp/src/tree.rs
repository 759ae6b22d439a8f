//! The threads of the program and its children, and what each is doing as far as the tracer knows.

use crate::line::Ns;
use crate::options;
use crate::sys::notices::Notice;
use crate::sys::ptrace::Registers;
use crate::timeout::{NS, TimedCall, When};
use libc::{c_long, pid_t};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use tickless_core::local::Key;

/// A wait with a deadline.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) call: TimedCall,
    /// The thread's registers at the begin of the call.
    pub(crate) registers: Registers,
    /// When the wait ends; `None` if that is beyond the range of the clock.
    pub(crate) deadline: Option<Ns>,
    /// The armed deadline, until it has come.
    pub(crate) key: Option<Key>,
    pub(crate) since: Ns,
}

/// A wait with a timeout that the kernel itself ends, unseen by the tracer. The kernel's timeout is
/// right while the virtual clock does not jump, and comes too late after a jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untraced {
    pub(crate) call: TimedCall,
    pub(crate) number: c_long,
    pub(crate) ip: u64,
    pub(crate) args: [u64; 6],
    pub(crate) deadline: Ns,
    /// The armed deadline, until it has come.
    pub(crate) key: Option<Key>,
    /// When the kernel's timeout ends the wait. Identifies a wait that began without a notice (the
    /// seccomp message about a system call); `None` for one with a notice, or if it is not known.
    pub(crate) expiry: Option<Ns>,
    /// Whether the thread was asleep when its deadline came.
    pub(crate) was_asleep: bool,
}

impl Untraced {
    /// Returns whether a thread with these registers is in this wait.
    pub(crate) fn is_at(&self, &(number, ip, args): &Call) -> bool {
        // The kernel repeats an interrupted poll(2) under another number: restart_syscall(2).
        let is_number = number == self.number || number == libc::SYS_restart_syscall;
        is_number && (ip, args) == (self.ip, self.args)
    }
}

/// A system call: its number, the address of the instruction after it, and its arguments. A thread
/// that sleeps outside of all system calls has the number -1.
pub(crate) type Call = (c_long, u64, [u64; 6]);

/// The files of a thread in `/proc`, opened when first needed.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) stat: Option<File>,
    pub(crate) runs: Option<File>,
    pub(crate) call: Option<File>,
}

/// A wait that a signal has interrupted, and whose call the kernel perhaps repeats.
#[derive(Clone, Copy)]
pub(crate) struct Interrupted {
    pub(crate) registers: Registers,
    pub(crate) deadline: Option<Ns>,
}

/// Whether a signal is perhaps on its way to a thread in a call that only sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signals {
    None,
    UnderWay,
}

/// What a thread does.
#[derive(Clone, Copy)]
pub(crate) enum State {
    /// The thread is new, and has not yet stopped for the first time.
    New,
    /// The thread runs, or waits in a call without a timeout or with the kernel's own timeout.
    Free,
    /// The thread makes a call that only sleeps. It is blocked until the tracer answers its notice
    /// (the seccomp message about the call); only a signal can end the sleep early.
    Held(Wait, Notice),
    /// The thread is in a wait that has no timeout in the kernel. ptrace reports the call's end.
    Waiting(Wait),
    /// The tracer has interrupted the thread's wait (see `Waiting`), because its deadline has come.
    Ending(Wait),
    /// The thread is in timer_create(2), whose result the tracer has to see.
    CreatingTimer { clock: u64, event: u64, id: u64 },
    /// The thread is in io_submit(2), for this context. The tracer has to see how much it submits.
    Submitting(u64),
    /// The thread's process has been stopped by a signal.
    Stopped,
    /// The thread waits for its child of vfork(2).
    Lending,
}

pub(crate) struct Thread {
    pub(crate) tid: pid_t,
    pub(crate) process: pid_t,
    pub(crate) state: State,
    pub(crate) interrupted: Option<Interrupted>,
    /// The thread's last wait with the kernel's own timeout, unless it is known to have ended.
    pub(crate) untraced: Option<Untraced>,
    pub(crate) files: Files,
    /// The thread's activity (how often it was woken or ran) when it was last found asleep.
    pub(crate) activity_asleep: Option<u64>,
}

impl Thread {
    pub(crate) fn new(tid: pid_t, process: pid_t) -> Thread {
        Thread {
            tid,
            process,
            state: State::New,
            interrupted: None,
            untraced: None,
            files: Files::default(),
            activity_asleep: None,
        }
    }

    /// Returns the number of the system call in which the thread waits for a time.
    pub(crate) fn call_of_wait(&self) -> Option<i64> {
        match self.state {
            State::Held(wait, _) | State::Waiting(wait) | State::Ending(wait) => {
                Some(wait.registers.orig_rax.cast_signed())
            }
            _ => None,
        }
    }
}

/// A process, that is the threads with one `tgid`.
#[derive(Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Whether the second filter is installed, which traps calls on sockets.
    pub(crate) has_socket_filter: bool,
    /// By how many nanoseconds the monotonic and the boottime clock of its time namespace are ahead
    /// of the tracer's.
    pub(crate) ahead: [i64; 2],
}

/// The traced threads and processes, by their numbers.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) threads: HashMap<pid_t, Thread>,
    pub(crate) processes: HashMap<pid_t, Process>,
    /// The armed deadlines of untraced waits that a census (the check of all threads) found ended.
    pub(crate) ended_waits: Vec<Key>,
    /// Threads that have run, and that a census (the check of all threads) has then found asleep.
    pub(crate) fell_asleep: Vec<pid_t>,
    /// Threads that stopped before the tracer got the stop of their parent that announces them.
    unannounced: HashSet<pid_t>,
}

impl Tree {
    /// Adds a thread, unless it is known.
    pub(crate) fn add(&mut self, tid: pid_t) -> &mut Thread {
        let processes = &mut self.processes;
        self.threads.entry(tid).or_insert_with(|| {
            let (process, name) = identity(tid);
            let process = process.unwrap_or(tid);
            processes.entry(process).or_insert_with(|| {
                let ahead = namespace_ahead(process).unwrap_or_default();
                Process { name, ahead, has_socket_filter: false }
            });
            Thread::new(tid, process)
        })
    }

    /// Adds a thread that its parent has made. Perhaps it is known already, or has even ended.
    pub(crate) fn announce(&mut self, tid: pid_t) {
        if !self.unannounced.remove(&tid) {
            self.add(tid);
        }
    }

    /// Adds a thread that has an event, unless it is known.
    pub(crate) fn appears(&mut self, tid: pid_t) -> &mut Thread {
        if !self.threads.contains_key(&tid) {
            self.unannounced.insert(tid);
        }
        self.add(tid)
    }

    pub(crate) fn set(&mut self, tid: pid_t, state: State) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = state;
        }
    }

    /// Removes a thread. If it was the first thread of its process, removes the process too,
    /// because the kernel reports the end of the first thread after those of all others.
    pub(crate) fn remove(&mut self, tid: pid_t) -> Option<Thread> {
        self.processes.remove(&tid);
        self.threads.remove(&tid)
    }

    pub(crate) fn process_of(&self, tid: pid_t) -> pid_t {
        self.threads.get(&tid).map_or(tid, |thread| thread.process)
    }

    /// Returns by how many nanoseconds a clock is ahead in a thread's time namespace.
    pub(crate) fn namespace_ahead(&self, tid: pid_t, clock: u64) -> i64 {
        let process = self.processes.get(&self.process_of(tid));
        let [monotonic, boottime] = process.map_or([0; 2], |process| process.ahead);
        match clock {
            1 | 4 | 6 => monotonic,
            7 | 9 => boottime,
            _ => 0,
        }
    }

    /// Returns whether a thread has other clocks than the tracer's time namespace.
    pub(crate) fn is_in_time_namespace(&self, tid: pid_t) -> bool {
        self.processes.get(&self.process_of(tid)).is_some_and(|process| process.ahead != [0; 2])
    }

    /// Converts a time of a thread's clock to one of the tracer's time namespace.
    pub(crate) fn outside_of_namespace(&self, tid: pid_t, when: When) -> When {
        let When::At { clock, ns } = when else { return when };
        let ahead = self.namespace_ahead(tid, clock);
        When::At { clock, ns: ns.saturating_add_signed(ahead.saturating_neg()) }
    }

    /// Returns a process of the tree and the name of its program.
    pub(crate) fn name_of(&self, tid: pid_t) -> options::Process {
        let pid = self.process_of(tid);
        let name = self.processes.get(&pid).map(|process| process.name.clone());
        options::Process { pid, name: name.unwrap_or_default() }
    }
}

/// Returns the process of a thread and the name of its program.
fn identity(tid: pid_t) -> (Option<pid_t>, String) {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let process = field("Tgid:").and_then(|process| process.parse().ok());
    (process, field("Name:").unwrap_or_default().to_string())
}

/// Reads how far the clocks of a process's time namespace are ahead of the tracer's own (since
/// Linux 5.6). `None` if the namespace is the tracer's.
fn namespace_ahead(process: pid_t) -> Option<[i64; 2]> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/time")).ok();
    let of = process.to_string();
    if namespace(&of)? == namespace("self")? {
        return None;
    }
    let offsets = |of: &str| {
        let text = fs::read_to_string(format!("/proc/{of}/timens_offsets")).ok()?;
        let mut numbers = text.lines().map(|line| {
            let mut words = line.split_whitespace().skip(1).map_while(|word| word.parse().ok());
            let (seconds, nanos): (i64, i64) = (words.next()?, words.next()?);
            Some(seconds.saturating_mul(NS as i64).saturating_add(nanos))
        });
        Some([numbers.next()??, numbers.next()??])
    };
    let ([monotonic, boottime], [own, own_boottime]) = (offsets(&of)?, offsets("self")?);
    Some([monotonic.saturating_sub(own), boottime.saturating_sub(own_boottime)])
}
