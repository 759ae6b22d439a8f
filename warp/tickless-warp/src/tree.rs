//! The threads of the program and its children, and what each is doing as far as the tracer knows.

use crate::line::Ns;
use crate::options;
use crate::thread::{Change, Effects, InCall, Signals, State};
use crate::timeout::{NS, When};
use libc::pid_t;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::OwnedFd;

/// The files of a thread in `/proc`, opened when first needed.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) stat: Option<File>,
    pub(crate) runs: Option<File>,
    pub(crate) call: Option<File>,
    /// The thread itself, whose descriptors can be copied.
    pub(crate) descriptors: Option<OwnedFd>,
    /// `fdinfo` of instances of epoll(7), and of what is in them.
    pub(crate) infos: HashMap<u64, Option<File>>,
}

pub(crate) struct Thread {
    pub(crate) tid: pid_t,
    pub(crate) process: pid_t,
    pub(crate) state: State,
    pub(crate) files: Files,
    /// The thread's activity (how often it was woken or ran) when it was last found asleep.
    pub(crate) activity_asleep: Option<u64>,
    /// The call in which it was then.
    pub(crate) call_asleep: InCall,
}

impl Thread {
    pub(crate) fn new(tid: pid_t, process: pid_t) -> Thread {
        let (state, files) = (State::New, Files::default());
        Thread { tid, process, state, files, activity_asleep: None, call_asleep: InCall::Runs }
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
    /// Threads that have run, and that a census (the check of all threads) has then found asleep,
    /// each with its call, unless the tracer has learnt something of it since.
    pub(crate) fell_asleep: HashMap<pid_t, InCall>,
    /// Whether a signal is perhaps on its way to a thread that is held in a sleep.
    pub(crate) signals: Signals,
    /// The same of signals that the kernel sends by itself, for data or a message that arrives.
    pub(crate) signals_of_kernel: Signals,
    /// For how long threads had run at the last census while which a wakeup is not counted.
    pub(crate) unseen_ns: u64,
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

    /// Changes the state of a thread by what the tracer has learnt. Returns what the tracer must
    /// do.
    pub(crate) fn on(&mut self, tid: pid_t, change: Change, now: Ns) -> Effects {
        let Some(thread) = self.threads.get_mut(&tid) else { return Effects::default() };
        let effects = thread.state.on(change, now);
        self.fell_asleep.remove(&tid);
        if effects.signals == Signals::UnderWay {
            self.signals = Signals::UnderWay;
        }
        effects
    }

    pub(crate) fn state(&self, tid: pid_t) -> State {
        self.threads.get(&tid).map_or(State::New, |thread| thread.state)
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
