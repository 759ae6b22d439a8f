//! The tracer's loop: takes the events of threads, ends the waits that are due, and when every
//! thread waits, moves the clock.

use super::clock::VirtualClock;
use super::state::{Due, Engine, PAUSE};
use super::untraced::flows;
use super::ways::Ways;
use crate::asleep::{Census, census};
use crate::deadlines::Deadlines;
use crate::error::WarpError;
use crate::filter::{ALLOW, Looks, NOTIFY, TRACE, filter};
use crate::line::Ns;
use crate::look::{Kernel, only_time_ends};
use crate::options::{Ended, Note, Options, Outcome, Outside, Pace};
use crate::page::patch::Functions;
use crate::report::Log;
use crate::sys::events::{self, Handling};
use crate::sys::launch::{Filters, launch};
use crate::sys::notices::Listener;
use crate::sys::ptrace::{self, Call};
use crate::sys::thread_events::ThreadEvents;
use crate::sys::turns::Turns;
use crate::thread::{InCall, Last, Signals, State};
use crate::tree::Tree;
use libc::pid_t;
use rustix::thread::set_current_timer_slack;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::num::NonZero;
use std::time::{Duration, Instant};

/// How long other processes are allowed to run on after the program itself has ended.
const LEFTOVERS: Duration = Duration::from_secs(1);
/// How often to check for a clock that does not move, and after how many checks a note explains
/// why.
const CHECK: Duration = Duration::from_secs(1);
const PATIENCE: u32 = 10;
/// How often the clock jumps between two checks of a program that perhaps waits for ever.
const OFTEN: u64 = 100;
/// The time between two checks of threads that run: the first interval, and the longest.
const FIRST_LOOK: Duration = Duration::from_micros(20);
const LAST_LOOK: Duration = Duration::from_millis(10);
/// After this many events without a jump, the program counts as busy, and is checked less often.
const BUSY: u32 = 16;
/// How many times the tracer checks the threads without a pause, before it sleeps.
const SPINS: u32 = 10;

/// Runs a program in virtual time, and returns when it has ended.
///
/// Blocks. For a process without other threads and children: this takes SIGCHLD, and the exit
/// status of every child. Forwards signals to the program while it runs. `notes` gets what the user
/// should know.
///
/// # Errors
///
/// [`WarpError`], if the program could not be started.
pub fn run(
    program: &OsString,
    args: &[OsString],
    options: &Options,
    notes: &mut dyn FnMut(Note),
) -> Result<Outcome, WarpError> {
    let start = Instant::now();
    let ways = Ways::inherited();
    let thread_events = ThreadEvents::start();
    let numbers = match (flows(options), &thread_events) {
        (false, _) => TRACE,
        (true, None) => NOTIFY,
        (true, Some(_)) => ALLOW,
    };
    let looks = if options.pace == Pace::Frozen { Looks::Trap } else { Looks::Pass };
    let filters =
        Filters { notifying: filter(NOTIFY, numbers, looks), tracing: filter(TRACE, TRACE, looks) };
    let mut launched = launch(program, args, &filters)?;
    let handling = Handling::install(launched.pid);
    // Makes the timeouts of this thread exact to 1 us; otherwise the kernel adds up to 50 us.
    let _ = set_current_timer_slack(NonZero::new(1_000));
    events::raise_file_limit();
    let clock = VirtualClock::new(options)?;
    let now = clock.now();
    // A frozen clock moves by jumps only, and some programs wait until it is past a time.
    let step = u64::from(options.pace == Pace::Frozen);
    let mut engine = Engine {
        options,
        notes,
        deadlines: Deadlines::new(now, step, options.seed),
        clock,
        tree: Tree::default(),
        functions: Functions::of_this_kernel(),
        listener: launched.listener.take(),
        thread_events,
        handling,
        root: launched.pid,
        ended: None,
        has_begun: false,
        last: launched.pid,
        has_resumed: false,
        tries_in: 0,
        stops_in: 0,
        turns: None,
        timers: HashMap::new(),
        timers_by_fd: HashMap::new(),
        descriptors_made: 0,
        socket_timeouts: HashMap::new(),
        ways,
        has_terminals: false,
        has_filters: events::signal_mask(std::process::id() as pid_t, "Seccomp:") != Some(0),
        noted: HashSet::new(),
        log: options.reports.then(Log::default),
        jumped: None,
    };
    engine.tree.add(launched.pid);
    if let Some(until) = options.until {
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        engine.deadlines.arm(now.saturating_add(until), Due::Until);
    }
    if engine.clock.page.is_none() && !options.traps_counter {
        engine.note(Note::SlowClocks);
    }
    engine.run();
    if !engine.has_begun
        && let Some(error) = launched.failure(program)
    {
        return Err(error);
    }
    Ok(Outcome {
        ended: engine.ended.unwrap_or(Ended::Signal(libc::SIGKILL)),
        passed: engine.clock.passed(),
        used: start.elapsed(),
        jumps: engine.clock.jumps,
        report: engine.log.take().map(Log::finish),
    })
}

/// What the loop remembers between two rounds.
#[derive(Default)]
struct Rounds {
    /// Rounds of the loop since a thread of the program last caused an event.
    quiet: u32,
    /// Rounds of the loop in which a thread caused an event, since the clock last jumped.
    busy: u32,
    checked: Option<Instant>,
    /// Checks that have found every thread asleep, since the last event.
    asleep: u32,
    /// Checks that found a thread awake, since the last jump or the last check that found none.
    awake: u32,
    ended_since: Option<Instant>,
    /// Jumps until the last check, and checks since the clock has not jumped often between two.
    jumps: u64,
    jumping: u32,
}

impl Engine<'_> {
    fn run(&mut self) {
        let mut rounds = Rounds::default();
        let mut has_come = false;
        loop {
            let jumps = self.clock.jumps;
            let mut is_quiet = true;
            self.has_resumed = false;
            // Before the clock jumped to a deadline, all events were taken.
            while let Some((tid, event)) = (!has_come).then(events::next).flatten() {
                self.handle(tid, event);
                is_quiet = false;
            }
            // Take one notice (a thread's message about its call) per round: the tracer should
            // sleep right after its answer, because both take turns on one CPU.
            let listener = self.listener.as_ref().filter(|_| !has_come);
            if let Some(notice) = listener.and_then(Listener::next) {
                self.begin_by_notice(notice);
                is_quiet = false;
            }
            if self.tree.threads.is_empty() {
                return;
            }
            self.clock.refine();
            let now = self.clock.now();
            while let Some(due) = self.deadlines.pop(now) {
                self.is_due(due);
                self.has_resumed |= matches!(due, Due::Timer(_));
                is_quiet = false;
            }
            if is_quiet {
                rounds.quiet += 1;
            } else {
                (rounds.quiet, rounds.asleep) = (0, 0);
                rounds.busy = rounds.busy.saturating_add(1);
            }
            let before = self.clock.jumps;
            let has_jumped = self.jump(&rounds);
            has_come = self.clock.jumps > before;
            if self.clock.jumps > jumps {
                (rounds.awake, rounds.busy) = (0, 0);
            }
            if !has_jumped {
                self.sleep(&mut rounds);
            }
        }
    }

    fn is_due(&mut self, due: Due) {
        if let Some(by) = self.jumped.take() {
            self.log_jump(due, by);
        }
        match due {
            Due::Wait(tid) => self.end_wait(tid),
            Due::Timer(id) => self.expire(id),
            Due::Until => {
                self.ended = Some(Ended::Until);
                self.tree.signals = Signals::UnderWay;
                events::kill(self.root, libc::SIGTERM);
            }
        }
    }

    /// Moves the clock to the next deadline if every thread waits. Returns whether it did anything.
    fn jump(&mut self, rounds: &Rounds) -> bool {
        // A thread that has just been resumed runs.
        let runs = rounds.quiet == 0 && (self.has_resumed || rounds.busy > BUSY);
        if !self.clock.jumps_when_idle() || runs {
            return false;
        }
        // Look for waits without a notice in quiet rounds only: a thread with an event still runs.
        let may_hide = self.hides_waits() && rounds.quiet > 0;
        if self.deadlines.next().is_none() && !may_hide {
            return false;
        }
        if self.census() != Census::Asleep {
            return false;
        }
        if self.takes_event() {
            return true;
        }
        // First: the census has read the calls in which threads have just begun to sleep.
        let is_held = self.is_held_by_outside();
        self.find_waits();
        let Some(next) = self.deadlines.next().filter(|_| !is_held) else { return false };
        let before = self.clock.passed();
        self.clock.jump_to(next);
        self.jumped = self.log.as_ref().map(|_| self.clock.passed().saturating_sub(before));
        true
    }

    /// Handles what has happened while a census read the threads. Returns whether anything has.
    fn takes_event(&mut self) -> bool {
        // A thread has perhaps ended.
        if let Some((tid, event)) = events::next() {
            self.handle(tid, event);
            return true;
        }
        // Perhaps a thread sleeps only until the tracer takes its notice.
        let notice = self.listener.as_ref().and_then(Listener::next);
        notice.map(|notice| self.begin_by_notice(notice)).is_some()
    }

    /// Moves a frozen clock by its smallest step for a thread that waits for no time, if all others
    /// wait: some programs repeat such a wait until the clock is past a time.
    pub(crate) fn pass_no_time(&mut self, tid: pid_t) {
        if self.options.pace == Pace::Frozen && self.do_others_wait(tid) {
            self.clock.jump_to(self.clock.now() + 1);
        }
    }

    /// For a thread that is stopped before a call, or has sent a notice about it: moves the clock
    /// to the deadline of the call, if all other threads wait, no deadline is earlier, and only the
    /// deadline ends the call. Returns whether it did. The thread then need neither begin the wait
    /// nor be interrupted in it.
    pub(crate) fn jump_alone(&mut self, tid: pid_t, call: &Call, deadline: Ns) -> bool {
        let is_next = |engine: &Self| engine.deadlines.next().is_none_or(|next| next > deadline);
        // Only a thread that runs alone was the last one to be resumed.
        if !flows(self.options) || self.last != tid || !is_next(self) {
            return false;
        }
        if self.tries_in > 0 || self.tree.signals == Signals::UnderWay {
            self.tries_in = self.tries_in.saturating_sub(1);
            return false;
        }
        if !self.do_others_wait(tid) {
            self.tries_in = PAUSE;
            return false;
        }
        // The only thread has stopped, and nothing else can have an event.
        if self.tree.threads.len() > 1 && self.takes_event() {
            return false;
        }
        let is_held = self.is_held_by_outside();
        self.find_waits();
        if is_held || !is_next(self) {
            return false;
        }
        // Read only now what the other threads can change.
        let outer = (self.options.outside == Outside::Wait).then_some(&self.ways.outer);
        let thread = self.tree.threads.get_mut(&tid);
        if !thread.is_some_and(|thread| only_time_ends(outer, thread, call)) {
            self.tries_in = PAUSE;
            return false;
        }
        self.clock.jump_to(deadline);
        true
    }

    /// Resumes a thread whose wait the clock has jumped over, on the tracer's CPU if no others have
    /// lately been awake: until its next call, which is perhaps such a wait as well, but not if it
    /// has made other calls. The kernel asks no filter of seccomp about that call, so only if there
    /// are no others.
    pub(crate) fn resume_to_next_call(&mut self, tid: pid_t) {
        let is_alone = self.tries_in == 0;
        if !is_alone || self.turns.as_ref().is_some_and(|turns| turns.tid != tid) {
            self.end_turns();
        }
        if is_alone {
            self.turns = self.turns.take().or_else(|| Turns::of(tid));
            self.turns.iter_mut().for_each(Turns::follow);
        }
        if is_alone && self.stops_in == 0 && !self.has_filters {
            return ptrace::resume_to_next_call(tid);
        }
        self.tries_in = self.tries_in.saturating_sub(1);
        self.stops_in = self.stops_in.saturating_sub(1);
        ptrace::resume(tid, 0);
    }

    pub(crate) fn end_turns(&mut self) {
        self.turns.take().iter().for_each(|turns| turns.release(turns.tid));
    }

    /// Decides whether all threads but one, which has stopped, wait.
    fn do_others_wait(&mut self, tid: pid_t) -> bool {
        let replace = |tree: &mut Tree, state| {
            let thread = tree.threads.get_mut(&tid);
            thread.map(|thread| {
                thread.call_asleep = InCall::Runs;
                std::mem::replace(&mut thread.state, state)
            })
        };
        let state = replace(&mut self.tree, State::Stopped(Last::Nothing));
        let found = self.census();
        state.and_then(|state| replace(&mut self.tree, state));
        found == Census::Asleep
    }

    /// Decides whether every thread waits, and remembers one that does not.
    fn census(&mut self) -> Census {
        let outer = (self.options.outside == Outside::Wait).then_some(&self.ways.outer);
        // Before all else: a reader outside that goes on later wakes a thread, which then shows.
        if outer.is_some() && self.is_output_full() {
            return Census::Awaits(self.last, libc::SYS_write);
        }
        let look = Kernel { events: self.thread_events.as_ref(), outer };
        let found = census(&mut self.tree, &look, self.last);
        match found {
            Census::Asleep => {}
            Census::Awake(tid) | Census::Awaits(tid, _) => self.last = tid,
            Census::AwaitsOutside(tid, what) => self.note_outside(tid, what),
        }
        found
    }

    /// Sleeps until the next event or deadline, or the next check of the threads that run.
    fn sleep(&mut self, rounds: &mut Rounds) {
        self.check_leftovers(rounds);
        self.check_patience(rounds);
        let next = self.deadlines.next();
        let may_wait = next.is_some() || self.hides_waits();
        let looks = may_wait && self.clock.jumps_when_idle();
        if (looks || self.turns.is_some()) && rounds.quiet < SPINS && rounds.busy <= BUSY {
            std::thread::yield_now();
            return;
        }
        self.end_turns();
        // The longer the program was busy, the less it matters to notice early that it is idle.
        let first = FIRST_LOOK * (rounds.busy / BUSY).clamp(1, 50);
        let look = first.saturating_mul(1 << (rounds.quiet - SPINS.min(rounds.quiet)).min(16));
        let look = if looks { look.min(LAST_LOOK) } else { Duration::from_secs(1) };
        let at_most = next.map_or(look, |next| self.clock.real_time_until(next).min(look));
        self.handling.wait(at_most, self.listener.as_ref());
    }

    /// After a while, ends the processes that are left of a program that has ended.
    fn check_leftovers(&mut self, rounds: &mut Rounds) {
        if self.ended.is_none() {
            return;
        }
        let since = *rounds.ended_since.get_or_insert_with(Instant::now);
        if since.elapsed() > LEFTOVERS && !self.tree.processes.is_empty() {
            self.end_leftovers();
            rounds.ended_since = Some(Instant::now() + PATIENCE * CHECK);
        }
    }

    /// Explains once why nothing moves.
    fn check_patience(&mut self, rounds: &mut Rounds) {
        let checked = *rounds.checked.get_or_insert_with(Instant::now);
        if checked.elapsed() < CHECK || !self.clock.jumps_when_idle() {
            return;
        }
        rounds.checked = Some(Instant::now());
        self.tree.signals = Signals::UnderWay;
        let found = self.census();
        match found {
            Census::Asleep => (rounds.asleep, rounds.awake) = (rounds.asleep + 1, 0),
            _ => (rounds.asleep, rounds.awake) = (0, rounds.awake + 1),
        }
        let is_jumping = self.clock.jumps - rounds.jumps > OFTEN;
        rounds.jumping = if is_jumping { rounds.jumping + 1 } else { 0 };
        rounds.jumps = self.clock.jumps;
        let process = self.tree.name_of(self.last);
        let jumps_long = rounds.jumping == PATIENCE && !self.options.is_counter_virtual();
        if jumps_long && reads_counter(process.pid) {
            self.note_once(Note::Counter(process.clone()));
        }
        if rounds.asleep >= PATIENCE && self.deadlines.next().is_none() {
            self.note_once(Note::NoDeadline(process));
        } else if rounds.awake >= PATIENCE {
            self.note_once(match found {
                Census::Awaits(_, call) => Note::Awaits(process, call),
                Census::AwaitsOutside(..) => return,
                _ => Note::Computes(process, self.options.pace),
            });
        }
    }
}

/// Returns whether the program of a process has the instruction `rdtsc`, followed by the usual
/// shift by which both halves of the counter become one number.
fn reads_counter(process: pid_t) -> bool {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    const SHIFT: [u8; 4] = [0x48, 0xc1, 0xe2, 0x20];
    let program = std::fs::read(format!("/proc/{process}/exe")).unwrap_or_default();
    program
        .windows(16)
        .any(|code| code.starts_with(&RDTSC) && code[2..].windows(4).any(|of| of == SHIFT))
}
