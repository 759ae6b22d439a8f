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

use crate::timeout::Endless;
use crate::tree::{Call, Signals, State, Thread, Tree, Wait};
use libc::{c_long, pid_t};

/// Whether every thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Census {
    Asleep,
    /// This thread runs, or is about to.
    Awake(pid_t),
    /// This thread sleeps in this system call, and something that the tracer does not see ends it.
    Awaits(pid_t, c_long),
}

/// What a thread does, by its system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InCall {
    /// The thread is on a CPU, or queued for one.
    Runs,
    Waits(Call),
    /// The kernel does not tell.
    Unknown,
}

/// How a census reads what a thread does.
pub(crate) trait Look {
    /// Returns whether a disk works for the tree, also if no thread waits for it.
    fn is_disk_at_work(&self) -> bool;
    /// Returns whether the activity is the number of wakeups, which rises before a thread runs.
    fn follows_wakeups(&self) -> bool;
    /// Returns the activity of a thread; `None` if it cannot be read.
    fn activity(&self, thread: &mut Thread) -> Option<u64>;
    /// Returns the letter of a thread's state.
    fn state(&self, thread: &mut Thread) -> Option<u8>;
    fn call(&self, thread: &mut Thread) -> InCall;
    /// Returns whether a thread of the tree, or a signal, ends the sleep of a thread in a call.
    fn waits_for_tree(&self, thread: &Thread, call: &Call) -> bool;
}

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

/// Threads that were found asleep by their state, each with its activity before that reading.
type Found = Vec<(pid_t, Option<u64>)>;

/// Decides whether every thread waits. Without the eBPF program, the thread `first` is read first,
/// because it ran last. If signals are perhaps under way, threads that only sleep are read, too.
pub(crate) fn census(tree: &mut Tree, look: &impl Look, first: pid_t, signals: Signals) -> Census {
    // Before all else: a disk that ends its work later wakes a thread, which the readings show.
    if look.is_disk_at_work() {
        return Census::Awake(first);
    }
    let last = tree.threads.get_mut(&first);
    if let Some(thread) = last
        && matches!(thread.state, State::Free | State::Waiting(_))
        && !look.follows_wakeups()
        && sleep(look, thread).is_none()
    {
        return Census::Awake(first);
    }
    // Threads that have run since they were last found asleep. Those in `reporting` will report
    // when they run again; those in `changed` will not.
    let (mut reporting, mut changed) = (Found::new(), Vec::new());
    // Threads to be read after all those that can run without a report.
    let mut second = Vec::new();
    let may_be_signalled = signals == Signals::UnderWay;
    let ended_waits = &mut tree.ended_waits;
    for thread in tree.threads.values_mut() {
        match thread.state {
            State::New | State::Ending(_) | State::CreatingTimer { .. } | State::Submitting(_) => {
                return Census::Awake(thread.tid);
            }
            State::Stopped => {}
            State::Waiting(Wait { call, .. }) | State::Held(Wait { call, .. }, _)
                if call.endless == Endless::Pause && !may_be_signalled => {}
            State::Waiting(_) | State::Held(..) | State::Lending => second.push(thread.tid),
            State::Free => {
                if has_slept_on(look, thread) {
                    continue;
                }
                thread.activity_asleep = None;
                // Read the activity before the state: the comparison below then finds each wakeup
                // that comes after the reading of the state.
                let before = look.activity(thread);
                let Some(in_call) = sleep(look, thread) else { return Census::Awake(thread.tid) };
                let wait = untraced_wait(thread, in_call);
                if wait == UntracedWait::Ended {
                    ended_waits.extend(thread.untraced.take().and_then(|wait| wait.key));
                    if let InCall::Waits(call) = in_call
                        && !look.waits_for_tree(thread, &call)
                    {
                        return Census::Awaits(thread.tid, call.0);
                    }
                }
                changed.push((thread.tid, before, in_call));
            }
        }
    }
    for tid in second {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        let is_asleep = match thread.state {
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
    }
    for &(tid, before, in_call) in &changed {
        let Some(thread) = tree.threads.get_mut(&tid) else { continue };
        // A wakeup that was counted before the first reading has perhaps taken effect after it. The
        // thread then sleeps in another call, in which it perhaps awaits the kernel.
        let is_asleep = sleep(look, thread) == Some(in_call);
        // If a thread's activity cannot be read, only its state is compared.
        if !is_asleep || (before.is_some() && look.activity(thread) != before) {
            return Census::Awake(tid);
        }
    }
    // The threads in `changed` have run, and have perhaps woken others: read these again.
    if !changed.is_empty() {
        for thread in tree.threads.values_mut() {
            let is_free = matches!(thread.state, State::Free) && thread.activity_asleep.is_some();
            if is_free && !has_slept_on(look, thread) {
                return Census::Awake(thread.tid);
            }
        }
    }
    // The kernel counts a wakeup a little before it changes the thread's state. So while any thread
    // runs, the activity of a sleeping thread perhaps includes a wakeup that has yet to take
    // effect. Store the activities only now, because no thread runs.
    tree.fell_asleep.extend(changed.iter().map(|(tid, ..)| tid));
    let changed = changed.into_iter().map(|(tid, activity, _)| (tid, activity));
    for (tid, activity) in changed.chain(reporting) {
        if let Some(thread) = tree.threads.get_mut(&tid) {
            thread.activity_asleep = activity;
        }
    }
    Census::Asleep
}

/// Returns the call in which a thread waits for an event, or has ended; `None` if it does neither.
/// A thread that has stopped for the tracer does not count as asleep: the tracer has yet to handle
/// its event.
fn sleep(look: &impl Look, thread: &mut Thread) -> Option<InCall> {
    match look.state(thread) {
        // A thread gets this state (S, asleep) a little before it leaves its CPU, and sometimes
        // finds then that it need not wait.
        Some(b'S') => Some(look.call(thread)).filter(|call| *call != InCall::Runs),
        Some(b'Z' | b'X') => Some(InCall::Unknown),
        _ => None,
    }
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
pub(crate) fn untraced_wait(thread: &Thread, call: InCall) -> UntracedWait {
    let Some(wait) = thread.untraced else { return UntracedWait::Ended };
    match call {
        InCall::Waits(call) if !wait.is_at(&call) => UntracedWait::Ended,
        InCall::Runs => UntracedWait::Unknown,
        // If the kernel does not tell, the tracer compares registers at the deadline.
        InCall::Waits(_) | InCall::Unknown => UntracedWait::Lasts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::{EndedBy, ended_by};
    use crate::sys::notices::Notice;
    use crate::timeout::{Remaining, TimedCall, When};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::cell::RefCell;
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
        /// A thread that runs makes a sleep of zero, which the kernel ends.
        SleepZero(usize),
        /// A thread that runs stops for the tracer before a call.
        Call(usize, Stop),
        /// The kernel ends the sleep, the read or the sending of a signal of a thread.
        Finish(usize),
        /// A thread that runs ends.
        Exit(usize),
    }

    /// Why a thread has stopped.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Stop {
        /// It submits a disk read, and then waits for the end as for another thread.
        Read,
        /// It begins a wait with a deadline, which only a signal ends early if it is a pause.
        Wait { is_pause: bool },
        /// Its wait with a deadline has ended.
        WaitEnded,
        /// It sends a signal to another thread.
        Signal(usize),
        /// It makes another thread.
        Fork(usize),
        /// It is new.
        New,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Doing {
        Absent,
        Runs { wakes: Option<usize> },
        Signals(usize),
        Waits,
        WaitsTraced { is_pause: bool },
        SleepsZero,
        Stopped(Stop),
        Reads,
        Ended,
    }

    const IDLE: Doing = Doing::Runs { wakes: None };

    /// Each thread with its activity, and what is still to happen.
    struct Kernel {
        threads: RefCell<[(Doing, u64); THREADS]>,
        steps: RefCell<Vec<Step>>,
        follows_wakeups: bool,
    }

    impl Kernel {
        /// Makes the steps until the next reading.
        fn run(&self) {
            let next = || self.steps.borrow_mut().pop();
            std::iter::from_fn(next).take_while(|step| !matches!(step, Step::Look)).for_each(
                |step| {
                    self.step(step);
                },
            );
        }

        fn step(&self, step: Step) {
            let threads = &mut *self.threads.borrow_mut();
            let counts = u64::from(self.follows_wakeups);
            let can_wake =
                |doing| matches!(doing, Doing::Waits | Doing::WaitsTraced { is_pause: false });
            let woken = |doing| match doing {
                Doing::WaitsTraced { .. } => Doing::Stopped(Stop::WaitEnded),
                _ => IDLE,
            };
            match step {
                Step::Wait(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Waits,
                Step::SleepZero(at) if threads[at].0 == IDLE => threads[at].0 = Doing::SleepsZero,
                Step::Exit(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Ended,
                Step::Call(at, stop) if threads[at].0 == IDLE => {
                    if let Stop::Fork(new) = stop {
                        if threads[new].0 != Doing::Absent {
                            return;
                        }
                        threads[new].0 = Doing::Stopped(Stop::New);
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
                Step::Finish(at) => match threads[at].0 {
                    Doing::SleepsZero | Doing::Reads => threads[at] = (IDLE, threads[at].1 + 1),
                    Doing::Signals(to) => {
                        threads[at].0 = IDLE;
                        if matches!(threads[to].0, Doing::Waits | Doing::WaitsTraced { .. }) {
                            threads[to] = (woken(threads[to].0), threads[to].1 + 1);
                        }
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

        /// Has the tracer take the stop or the end of a thread, as the engine does.
        fn take(&self, tree: &mut Tree, at: usize, signals: &mut Signals) {
            let tid = at as pid_t;
            let doing = &mut self.threads.borrow_mut()[at].0;
            let stop = match *doing {
                Doing::Stopped(stop) => stop,
                Doing::Ended => {
                    *signals = Signals::UnderWay;
                    tree.threads.remove(&tid);
                    return;
                }
                _ => return,
            };
            let mut add = |tid| {
                tree.threads.entry(tid).or_insert_with(|| Thread::new(tid, 0));
            };
            *doing = match stop {
                Stop::Read => Doing::Reads,
                Stop::Wait { is_pause } => {
                    let notice = Notice::of_nothing(tid);
                    let endless = if is_pause { Endless::Pause } else { Endless::AsItIs };
                    let (when, remaining) = (When::After(1), Remaining::No);
                    let call = TimedCall { when, timed_out: 0, endless, remaining };
                    let (registers, deadline) = (notice.registers(), None);
                    let wait = Wait { call, registers, deadline, key: None, since: 0 };
                    let held =
                        if is_pause { State::Held(wait, notice) } else { State::Waiting(wait) };
                    tree.set(tid, held);
                    Doing::WaitsTraced { is_pause }
                }
                Stop::Signal(to) => {
                    *signals = Signals::UnderWay;
                    Doing::Signals(to)
                }
                Stop::Fork(new) => {
                    add(new as pid_t);
                    IDLE
                }
                Stop::New | Stop::WaitEnded => {
                    add(tid);
                    tree.set(tid, State::Free);
                    IDLE
                }
            };
        }
    }

    impl Look for Kernel {
        fn is_disk_at_work(&self) -> bool {
            self.run();
            self.threads.borrow().iter().any(|(doing, _)| *doing == Doing::Reads)
        }

        fn follows_wakeups(&self) -> bool {
            self.follows_wakeups
        }

        fn activity(&self, thread: &mut Thread) -> Option<u64> {
            Some(self.read(thread).1)
        }

        fn state(&self, thread: &mut Thread) -> Option<u8> {
            Some(match self.read(thread).0 {
                Doing::Runs { .. } | Doing::Signals(_) => b'R',
                Doing::Stopped(_) => b't',
                Doing::Ended => b'Z',
                _ => b'S',
            })
        }

        fn call(&self, thread: &mut Thread) -> InCall {
            InCall::Waits(match self.read(thread).0 {
                Doing::Waits | Doing::WaitsTraced { .. } => (libc::SYS_futex, 0, [0; 6]),
                Doing::SleepsZero => (libc::SYS_nanosleep, 0, [0; 6]),
                Doing::Reads => (libc::SYS_io_getevents, 0, [0; 6]),
                _ => return InCall::Runs,
            })
        }

        fn waits_for_tree(&self, _: &Thread, call: &Call) -> bool {
            ended_by(call) == EndedBy::Tree
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let (thread, other) = (0..THREADS, 0..THREADS);
        let stop = prop_oneof![
            Just(Stop::Read),
            any::<bool>().prop_map(|is_pause| Stop::Wait { is_pause }),
            other.clone().prop_map(Stop::Signal),
            other.clone().prop_map(Stop::Fork),
        ];
        let step = prop_oneof![
            8 => Just(Step::Look),
            8 => thread.clone().prop_map(Step::Wait),
            8 => (thread.clone(), other).prop_map(|(by, at)| Step::Wake(by, at)),
            2 => thread.clone().prop_map(Step::SleepZero),
            6 => (thread.clone(), stop).prop_map(|(at, stop)| Step::Call(at, stop)),
            6 => thread.clone().prop_map(Step::Finish),
            1 => thread.prop_map(Step::Exit),
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

        /// A census that finds every thread asleep is right: no thread runs, is about to, or awaits
        /// work in the kernel (A3), whatever stops the tracer has yet to take. After it, the tracer
        /// wakes a thread whose deadline has come.
        #[test]
        fn the_clock_moves_only_if_nothing_is_under_way(
            steps in steps(), taken in proptest::collection::vec(0..1_u8 << THREADS, 20),
            follows_wakeups: bool, first in 0..THREADS, due in 0..THREADS,
        ) {
            let mut threads = [(IDLE, 0); THREADS];
            threads[THREADS - 1].0 = Doing::Absent;
            let (threads, steps) = (RefCell::new(threads), RefCell::new(steps));
            let kernel = Kernel { threads, steps, follows_wakeups };
            let mut tree = Tree::default();
            for tid in 0..THREADS as pid_t - 1 {
                tree.threads.insert(tid, Thread::new(tid, 0));
                tree.set(tid, State::Free);
            }
            let mut signals = Signals::None;
            let mut taken = taken.into_iter();
            while !kernel.steps.borrow().is_empty() {
                // The engine takes all stops that it knows of before it reads.
                let mask = taken.next().unwrap_or(u8::MAX);
                for at in (0..THREADS).filter(|at| mask >> at & 1 != 0) {
                    kernel.take(&mut tree, at, &mut signals);
                }
                if census(&mut tree, &kernel, first as pid_t, signals) != Census::Asleep {
                    kernel.run();
                    continue;
                }
                signals = Signals::None;
                let threads = &mut *kernel.threads.borrow_mut();
                let is_asleep = |doing| {
                    use Doing::{Absent, Ended, Waits, WaitsTraced};
                    matches!(doing, Waits | WaitsTraced { .. } | Ended | Absent)
                };
                prop_assert!(threads.iter().all(|(doing, _)| is_asleep(*doing)), "{threads:?}");
                match threads[due].0 {
                    Doing::Waits => threads[due] = (IDLE, threads[due].1 + 1),
                    Doing::WaitsTraced { .. } => {
                        threads[due] = (Doing::Stopped(Stop::WaitEnded), threads[due].1 + 1);
                        tree.set(due as pid_t, State::Submitting(0));
                    }
                    _ => {}
                }
            }
        }
    }
}
