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
    /// This thread waits for what comes from outside of the tree, which the text names.
    AwaitsOutside(pid_t, &'static str),
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
    fn awaited(&self, thread: &Thread, call: &Call, tree: &Processes) -> Option<Census>;
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
mod tests {
    use super::*;
    use crate::ends::{EndedBy, ended_by};
    use crate::line::Ns;
    use crate::sys::notices::Notice;
    use crate::thread::{Before, Change, Deadline, Last, Then, Untraced};
    use crate::timeout::{Remaining, TimedCall, When};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::hash::{BuildHasher, RandomState};

    const THREADS: usize = 4;

    /// What happens in the small kernel.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// The tracer reads, and sees what has happened until then.
        Look,
        /// A thread that runs waits for another thread.
        Wait(usize),
        /// A thread that runs counts the wakeup of another, or lets its last one take effect.
        Wake(usize, usize),
        /// A thread that runs sleeps for a moment, unseen by the tracer.
        SleepZero(usize),
        /// A thread that runs stops for the tracer.
        Stop(usize, Stop),
        /// The kernel ends the sleep, the poll or the sending of a signal of a thread.
        Finish(usize),
        /// A thread that runs ends.
        Exit(usize),
        /// A thread outside of the tree wakes one, and nothing counts that.
        WakeUnseen(usize),
    }

    /// Why a thread has stopped, or has sent a notice.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Stop {
        /// It creates a timer, of which the tracer has to see the result.
        Create,
        HasCreated,
        /// It begins a wait with a deadline.
        Wait(Ns),
        /// Its wait with a deadline has ended.
        WaitEnded {
            is_interrupted: bool,
        },
        /// It sends a notice about a sleep. The kernel would let it sleep for a time of zero, too.
        Sleep(Ns),
        /// It sends a notice about a wait with the kernel's own timeout.
        Poll(Ns),
        /// It sends a signal to another thread, or gets one.
        SendSignal(usize),
        GetSignal,
        /// It makes another thread.
        Fork(usize),
        /// It is new, or was interrupted.
        Plain,
        /// It is at a call that it has not made, after a wait whose deadline has come.
        Skipped,
    }

    impl Stop {
        /// Returns whether the thread sleeps until the tracer answers, in this call.
        fn notice(self) -> Option<libc::c_long> {
            match self {
                Stop::Sleep(_) => Some(libc::SYS_nanosleep),
                Stop::Poll(_) => Some(libc::SYS_poll),
                _ => None,
            }
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Doing {
        Absent,
        Runs {
            wakes: Option<usize>,
        },
        Signals(usize),
        /// It waits for another thread, or with a timeout of the tracer's or of the kernel's own.
        Waits,
        WaitsTraced,
        Polls,
        /// It waits for the answer to its notice.
        Held,
        SleepsZero,
        Stopped(Stop),
        Ended,
    }

    const IDLE: Doing = Doing::Runs { wakes: None };

    /// Each thread with its activity, what is still to happen, and the tracer's deadlines.
    struct Kernel {
        threads: RefCell<[(Doing, u64); THREADS]>,
        steps: RefCell<Vec<Step>>,
        follows_wakeups: bool,
        deadlines: RefCell<BTreeMap<usize, Ns>>,
        now: Cell<Ns>,
        unseen_ns: Cell<u64>,
    }

    impl Kernel {
        /// Makes the steps until the next reading.
        fn run(&self) {
            let next = || self.steps.borrow_mut().pop();
            while let Some(step) = next().filter(|step| !matches!(step, Step::Look)) {
                self.step(step);
            }
        }

        fn step(&self, step: Step) {
            let threads = &mut *self.threads.borrow_mut();
            let counts = u64::from(self.follows_wakeups);
            let can_wake =
                |doing| matches!(doing, Doing::Waits | Doing::WaitsTraced | Doing::Polls);
            let woken = |doing| match doing {
                Doing::WaitsTraced => Doing::Stopped(Stop::WaitEnded { is_interrupted: false }),
                _ => IDLE,
            };
            match step {
                Step::Wait(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Waits,
                Step::SleepZero(at) if threads[at].0 == IDLE => threads[at].0 = Doing::SleepsZero,
                Step::Exit(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Ended,
                Step::Stop(at, stop) if threads[at].0 == IDLE => {
                    if let Stop::Fork(new) = stop {
                        if threads[new].0 != Doing::Absent {
                            return;
                        }
                        threads[new].0 = Doing::Stopped(Stop::Plain);
                    }
                    threads[at].0 = Doing::Stopped(stop);
                }
                Step::Wake(by, at) => match threads[by].0 {
                    Doing::Runs { wakes: Some(at) } => {
                        threads[by].0 = IDLE;
                        if can_wake(threads[at].0) {
                            threads[at] = (woken(threads[at].0), threads[at].1 + 1 - counts);
                        }
                    }
                    IDLE if can_wake(threads[at].0) => {
                        threads[by].0 = Doing::Runs { wakes: Some(at) };
                        threads[at].1 += counts;
                    }
                    _ => {}
                },
                Step::WakeUnseen(at) if can_wake(threads[at].0) => {
                    threads[at] = (woken(threads[at].0), threads[at].1 + 1 - counts);
                    self.unseen_ns.set(self.unseen_ns.get() + 1);
                }
                Step::Finish(at) => match threads[at].0 {
                    doing @ (Doing::SleepsZero | Doing::Polls) => {
                        threads[at] = (IDLE, threads[at].1 + 1);
                        // The kernel's own timeout is over, so its time has passed.
                        let deadline = self.deadlines.borrow().get(&at).copied();
                        if let Some(deadline) = deadline.filter(|_| doing == Doing::Polls) {
                            self.now.set(self.now.get().max(deadline));
                        }
                    }
                    Doing::Signals(to) => {
                        threads[at].0 = IDLE;
                        let stop = match threads[to].0 {
                            Doing::WaitsTraced => Stop::WaitEnded { is_interrupted: true },
                            Doing::Waits | Doing::Polls | Doing::Held => Stop::GetSignal,
                            _ => return,
                        };
                        threads[to] = (Doing::Stopped(stop), threads[to].1 + 1);
                    }
                    _ => {}
                },
                _ => {}
            }
        }

        fn read(&self, thread: &Thread) -> (Doing, u64) {
            self.run();
            self.threads.borrow()[thread.tid as usize]
        }

        /// Has the tracer take the stop, the notice or the end of a thread.
        fn take(&self, tree: &mut Tree, at: usize) {
            let tid = at as pid_t;
            let stop = match self.threads.borrow()[at].0 {
                Doing::Stopped(stop) => stop,
                Doing::Ended => {
                    tree.signals = Signals::UnderWay;
                    tree.threads.remove(&tid);
                    self.deadlines.borrow_mut().remove(&at);
                    return;
                }
                _ => return,
            };
            tree.threads.entry(tid).or_insert_with(|| Thread::new(tid, 0));
            let notice = Notice::of_nothing(tid);
            let call = |ns, endless| {
                let (when, remaining) = (When::After(ns), Remaining::No);
                TimedCall { when, timed_out: 0, endless, remaining }
            };
            let deadline = |ns| Some(self.now.get() + ns);
            let change = match stop {
                Stop::Create => Change::CreatesTimer,
                Stop::HasCreated => Change::EndsCall { is_interrupted: false },
                Stop::WaitEnded { is_interrupted } => Change::EndsCall { is_interrupted },
                Stop::Wait(ns) => {
                    let before = Before::Stop(notice.registers());
                    Change::Waits(call(ns, Endless::AsItIs), deadline(ns), before)
                }
                Stop::Sleep(ns) => {
                    let before = Before::Notice(notice);
                    Change::Waits(call(ns, Endless::Pause), deadline(ns), before)
                }
                Stop::Poll(ns) => {
                    let (call, deadline) = (call(ns, Endless::AsItIs), self.now.get() + ns);
                    let at = (libc::SYS_poll, 0, [0; 6]);
                    let wait = Untraced { call, at, deadline, expiry: None };
                    Change::WaitsUntraced(wait, Some(notice))
                }
                Stop::SendSignal(_) => Change::SendsSignal,
                Stop::GetSignal => {
                    let lasts = tree.state(tid).untraced().is_some();
                    Change::GetsSignal { number: 1, has_handler: true, lasts }
                }
                Stop::Fork(new) => {
                    let new = new as pid_t;
                    tree.threads.entry(new).or_insert_with(|| Thread::new(new, 0));
                    Change::GoesOn
                }
                Stop::Plain => Change::Stops,
                Stop::Skipped => {
                    let before = Before::Skipped(notice.registers());
                    Change::Waits(call(5, Endless::AsItIs), deadline(5), before)
                }
            };
            self.on(tree, at, change);
        }

        /// Passes the tracer's state what it has learnt, and does to the thread what it has to do.
        fn on(&self, tree: &mut Tree, at: usize, change: Change) {
            let effects = tree.on(at as pid_t, change, self.now.get());
            match effects.deadline {
                Deadline::Keep => None,
                Deadline::Arm(ns) => self.deadlines.borrow_mut().insert(at, ns),
                Deadline::Cancel => self.deadlines.borrow_mut().remove(&at),
            };
            // Exactly the threads in a wait have a deadline armed, except that a sleep which a
            // signal interrupts is answered in vain.
            let (state, is_armed) =
                (tree.state(at as pid_t), self.deadlines.borrow().contains_key(&at));
            assert!(is_armed == state.has_deadline() || matches!(state, State::Held(..)));
            let (doing, activity) = self.threads.borrow()[at];
            let next = match (effects.then, doing) {
                (Then::Resume(_), Doing::Stopped(Stop::SendSignal(to))) => Doing::Signals(to),
                (Then::Resume(_), _) => IDLE,
                (Then::ResumeToExit, _) => Doing::Stopped(Stop::HasCreated),
                (Then::ResumeToNextCall, _) => Doing::Stopped(Stop::Skipped),
                (Then::Wait(_), _) => Doing::WaitsTraced,
                (Then::MakeCall(_), Doing::Stopped(Stop::Poll(_))) => Doing::Polls,
                (Then::MakeCall(Before::Skipped(_)), _) => IDLE,
                (Then::MakeCall(_), _) => Doing::SleepsZero,
                (Then::Return(..), Doing::Held | Doing::Stopped(Stop::Sleep(_))) => IDLE,
                (Then::Interrupt | Then::Wake, doing) => match doing {
                    Doing::WaitsTraced => Doing::Stopped(Stop::WaitEnded { is_interrupted: true }),
                    Doing::Signals(to) => Doing::Stopped(Stop::SendSignal(to)),
                    Doing::Stopped(_) | Doing::Ended => doing,
                    _ => Doing::Stopped(Stop::Plain),
                },
                (Then::Nothing, Doing::Stopped(Stop::Sleep(_))) => Doing::Held,
                _ => doing,
            };
            // A thread that sleeps is woken for this.
            let is_woken = doing != next && !matches!(doing, Doing::Stopped(_));
            self.threads.borrow_mut()[at] = (next, activity + u64::from(is_woken));
            if matches!((effects.then, next), (Then::Return(..), IDLE)) {
                self.on(tree, at, Change::IsReleased);
            }
        }

        /// Moves the clock to the next deadline, and ends the waits that are due.
        fn jump(&self, tree: &mut Tree) {
            let next = self.deadlines.borrow().values().min().copied();
            self.now.set(self.now.get().max(next.unwrap_or(0)));
            for at in 0..THREADS {
                let deadline = self.deadlines.borrow().get(&at).copied();
                if deadline.is_none_or(|deadline| deadline > self.now.get()) {
                    continue;
                }
                self.deadlines.borrow_mut().remove(&at);
                let Some(thread) = tree.threads.get_mut(&(at as pid_t)) else { continue };
                let untraced = thread.state.untraced();
                let progress =
                    untraced.map_or(Progress::Ended, |wait| wait.progress(self.call(thread)));
                self.on(tree, at, Change::IsDue(progress));
            }
        }
    }

    impl Look for Kernel {
        fn follows_wakeups(&self) -> bool {
            self.follows_wakeups
        }

        fn unseen_ns(&self) -> u64 {
            self.run();
            self.unseen_ns.get()
        }

        fn activity(&self, thread: &mut Thread) -> Option<u64> {
            Some(self.read(thread).1)
        }

        fn state(&self, thread: &mut Thread) -> Option<u8> {
            Some(match self.read(thread).0 {
                Doing::Runs { .. } | Doing::Signals(_) => b'R',
                Doing::Stopped(stop) if stop.notice().is_none() => b't',
                Doing::Ended => b'Z',
                _ => b'S',
            })
        }

        fn call(&self, thread: &mut Thread) -> InCall {
            let number = match self.read(thread).0 {
                Doing::Waits | Doing::WaitsTraced => libc::SYS_futex,
                Doing::SleepsZero | Doing::Held => libc::SYS_nanosleep,
                Doing::Polls => libc::SYS_poll,
                Doing::Stopped(stop) => match stop.notice() {
                    Some(number) => number,
                    None => return InCall::Runs,
                },
                _ => return InCall::Runs,
            };
            InCall::Waits((number, 0, [0; 6]))
        }

        fn awaited(&self, of: &Thread, call: &Call, _: &Processes) -> Option<Census> {
            (ended_by(call) != EndedBy::Tree).then_some(Census::Awaits(of.tid, call.0))
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let (thread, other) = (0..THREADS, 0..THREADS);
        let stop = prop_oneof![
            Just(Stop::Create),
            (1..50_u64).prop_map(Stop::Wait),
            (0..50_u64).prop_map(Stop::Sleep),
            (1..50_u64).prop_map(Stop::Poll),
            other.clone().prop_map(Stop::SendSignal),
            other.clone().prop_map(Stop::Fork),
        ];
        let step = prop_oneof![
            8 => Just(Step::Look),
            8 => thread.clone().prop_map(Step::Wait),
            8 => (thread.clone(), other).prop_map(|(by, at)| Step::Wake(by, at)),
            2 => thread.clone().prop_map(Step::SleepZero),
            8 => (thread.clone(), stop).prop_map(|(at, stop)| Step::Stop(at, stop)),
            6 => thread.clone().prop_map(Step::Finish),
            1 => thread.clone().prop_map(Step::Exit),
            2 => thread.prop_map(Step::WakeUnseen),
        ];
        proptest::collection::vec(step, 0..200)
    }

    fn seeded() -> ProptestConfig {
        let seed = match std::env::var("TICKLESS_SEED") {
            Ok(text) => text.parse().expect("TICKLESS_SEED is a decimal number"),
            Err(_) => RandomState::new().hash_one(0),
        };
        println!("replay: TICKLESS_SEED={seed} cargo test -p tickless-warp --lib asleep::");
        let rng_seed = RngSeed::Fixed(seed);
        ProptestConfig { failure_persistence: None, rng_seed, cases: 1_500, ..Default::default() }
    }

    proptest! {
        #![proptest_config(seeded())]

        /// The clock moves only if no thread runs, is about to, or awaits work in the kernel (A3),
        /// whatever stops the tracer has yet to take. A stop whose SIGCHLD is lost stays untaken.
        #[test]
        fn the_clock_moves_only_if_nothing_is_under_way(
            steps in steps(), taken in proptest::collection::vec(0..1_u8 << THREADS, 40),
            follows_wakeups: bool, first in 0..THREADS,
        ) {
            let mut threads = [(IDLE, 0); THREADS];
            threads[THREADS - 1].0 = Doing::Absent;
            let (threads, steps) = (RefCell::new(threads), RefCell::new(steps));
            let (deadlines, now, unseen_ns) = (RefCell::default(), Cell::new(1), Cell::new(1));
            let kernel = Kernel { threads, steps, follows_wakeups, deadlines, now, unseen_ns };
            let mut tree = Tree::default();
            for tid in 0..THREADS as pid_t - 1 {
                let mut thread = Thread::new(tid, 0);
                thread.state = State::Free(Last::Nothing);
                tree.threads.insert(tid, thread);
            }
            let mut taken = taken.into_iter();
            while !kernel.steps.borrow().is_empty() {
                let mask = taken.next().unwrap_or(u8::MAX);
                for at in (0..THREADS).filter(|at| mask >> at & 1 != 0) {
                    kernel.take(&mut tree, at);
                }
                kernel.run();
                if census(&mut tree, &kernel, first as pid_t) != Census::Asleep {
                    kernel.run();
                    continue;
                }
                // The tracer sees each notice, because it polls for them.
                let notices = kernel.threads.borrow().map(|(doing, _)| match doing {
                    Doing::Stopped(stop) => stop.notice().is_some(),
                    _ => false,
                });
                if notices.contains(&true) {
                    let noticed = (0..THREADS).filter(|at| notices[*at]);
                    noticed.for_each(|at| kernel.take(&mut tree, at));
                    continue;
                }
                for (tid, in_call) in std::mem::take(&mut tree.fell_asleep) {
                    let wait = tree.state(tid).untraced();
                    if wait.is_some_and(|wait| wait.progress(in_call) == Progress::Ended) {
                        kernel.on(&mut tree, tid as usize, Change::HasWaited);
                    }
                }
                let is_asleep = |doing| {
                    use Doing::{Absent, Ended, Held, Polls, Waits, WaitsTraced};
                    matches!(doing, Waits | WaitsTraced | Polls | Held | Ended | Absent)
                };
                let threads = *kernel.threads.borrow();
                let next = kernel.deadlines.borrow().values().min().copied();
                if next.is_none_or(|next| next > kernel.now.get()) {
                    prop_assert!(threads.iter().all(|(doing, _)| is_asleep(*doing)), "{threads:?}");
                }
                // Without a deadline, a timer of a program expires.
                if next.is_none() && threads[first].0 == Doing::Waits {
                    kernel.threads.borrow_mut()[first] = (IDLE, threads[first].1 + 1);
                }
                kernel.jump(&mut tree);
            }
        }
    }
}
