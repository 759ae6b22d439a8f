//! The census, and what the tracer does with its findings, on a small kernel whose threads run on
//! between any two readings.

use super::*;
use crate::ends::{EndedBy, ended_by};
use crate::line::Ns;
use crate::sys::notices::Notice;
use crate::thread::{Before, Change, Deadline, Last, Sleep, Then, Untraced};
use crate::timeout::{Remaining, TimedCall, When, timed_call};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

const THREADS: usize = 4;
/// Timeouts are in milliseconds.
const MS: Ns = 1_000_000;

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
    /// It sends a notice about a wait with the kernel's own timeout, or if the tracer follows
    /// wakeups, begins one unseen.
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
    Polls(Ns),
    /// It waits for the answer to its notice.
    Held,
    SleepsZero,
    Stopped(Stop),
    Ended,
}

const IDLE: Doing = Doing::Runs { wakes: None };

/// Each thread with its activity, what is still to happen, and the deadlines: those of the tracer,
/// when each wait ends in truth, and the end of each thread's last sleep by the kernel's clock.
struct Kernel {
    threads: RefCell<[(Doing, u64); THREADS]>,
    steps: RefCell<Vec<Step>>,
    follows_wakeups: bool,
    deadlines: RefCell<BTreeMap<usize, Ns>>,
    ends: RefCell<BTreeMap<usize, Ns>>,
    expiries: RefCell<BTreeMap<usize, Ns>>,
    now: Cell<Ns>,
    /// By how much the clock has jumped ahead of the kernel's.
    ahead: Cell<Ns>,
    unseen_ns: Cell<u64>,
}

impl Kernel {
    /// Makes the steps until the next reading.
    fn run(&self) {
        self.now.set(self.now.get() + 1);
        let next = || self.steps.borrow_mut().pop();
        while let Some(step) = next().filter(|step| !matches!(step, Step::Look)) {
            self.step(step);
        }
    }

    fn step(&self, step: Step) {
        let threads = &mut *self.threads.borrow_mut();
        let counts = u64::from(self.follows_wakeups);
        let can_wake = |doing| matches!(doing, Doing::Waits | Doing::WaitsTraced | Doing::Polls(_));
        let woken = |doing| match doing {
            Doing::WaitsTraced => Doing::Stopped(Stop::WaitEnded { is_interrupted: false }),
            _ => IDLE,
        };
        match step {
            Step::Wait(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Waits,
            Step::SleepZero(at) if threads[at].0 == IDLE => threads[at].0 = Doing::SleepsZero,
            Step::Exit(at) if threads[at].0 == IDLE => threads[at].0 = Doing::Ended,
            Step::Stop(at, Stop::Poll(ms)) if threads[at].0 == IDLE && self.follows_wakeups => {
                threads[at].0 = Doing::Polls(ms);
                self.ends.borrow_mut().insert(at, self.now.get() + ms * MS);
                self.expiries.borrow_mut().insert(at, self.kernels_now() + ms * MS);
            }
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
                doing @ (Doing::SleepsZero | Doing::Polls(_)) => {
                    threads[at] = (IDLE, threads[at].1 + 1);
                    // The kernel's own timeout is over, so its time has passed.
                    let end = self.ends.borrow().get(&at).copied();
                    if let Some(end) = end.filter(|_| doing != Doing::SleepsZero) {
                        self.now.set(self.now.get().max(end));
                    }
                }
                Doing::Signals(to) => {
                    threads[at].0 = IDLE;
                    let stop = match threads[to].0 {
                        Doing::WaitsTraced => Stop::WaitEnded { is_interrupted: true },
                        Doing::Waits | Doing::Polls(_) | Doing::Held => Stop::GetSignal,
                        _ => return,
                    };
                    threads[to] = (Doing::Stopped(stop), threads[to].1 + 1);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn kernels_now(&self) -> Ns {
        self.now.get() - self.ahead.get()
    }

    /// Returns what the tracer learns of the last sleep of a thread, if it follows wakeups.
    fn last_sleep(&self, at: usize) -> Option<Sleep> {
        let expiry = self.expiries.borrow().get(&at).copied();
        let (now, kernels_now) = (self.now.get(), self.kernels_now());
        self.follows_wakeups.then_some(Sleep { expiry, now, kernels_now })
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
        let call = |ms, endless| {
            let (when, remaining) = (When::After(ms * MS), Remaining::No);
            TimedCall { when, timed_out: 0, endless, remaining }
        };
        let deadline = |ms| Some(self.now.get() + ms * MS);
        let change = match stop {
            Stop::Create => Change::CreatesTimer,
            Stop::HasCreated => Change::EndsCall { is_interrupted: false },
            Stop::WaitEnded { is_interrupted } => Change::EndsCall { is_interrupted },
            Stop::Wait(ms) => {
                let before = Before::Stop(notice.registers());
                Change::Waits(call(ms, Endless::AsItIs), deadline(ms), before)
            }
            Stop::Sleep(ms) => {
                let before = Before::Notice(notice);
                Change::Waits(call(ms, Endless::Pause), deadline(ms), before)
            }
            Stop::Poll(ms) => {
                let (at, deadline) = (poll(ms), self.now.get() + ms * MS);
                let call = timed_call(at.0, at.2, |_| None).unwrap();
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
        // A wait that the tracer has seen to begin ends when the tracer has armed it for.
        if let (Change::Waits(..) | Change::WaitsUntraced(_, Some(_)), Deadline::Arm(ns)) =
            (change, effects.deadline)
        {
            self.ends.borrow_mut().insert(at, ns);
        }
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
            (Then::MakeCall(_), Doing::Stopped(Stop::Poll(ms))) => Doing::Polls(ms),
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
        let distance = next.unwrap_or(0).saturating_sub(self.now.get());
        self.now.set(self.now.get() + distance);
        self.ahead.set(self.ahead.get() + distance);
        for at in 0..THREADS {
            let deadline = self.deadlines.borrow().get(&at).copied();
            if deadline.is_none_or(|deadline| deadline > self.now.get()) {
                continue;
            }
            self.deadlines.borrow_mut().remove(&at);
            let Some(thread) = tree.threads.get_mut(&(at as pid_t)) else { continue };
            let expiry = self.expiries.borrow().get(&at).copied();
            let untraced = thread.state.untraced().filter(|wait| wait.is_last(expiry));
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
            Doing::Polls(ms) => return InCall::Waits(poll(ms)),
            Doing::Stopped(stop) => match stop.notice() {
                Some(number) => number,
                None => return InCall::Runs,
            },
            _ => return InCall::Runs,
        };
        InCall::Waits((number, 0, [0; 6]))
    }

    fn awaited(&self, of: &mut Thread, call: &Call, _: &Processes) -> Option<Census> {
        (ended_by(call) != EndedBy::Tree).then_some(Census::Awaits(of.tid, call.0))
    }
}

/// Returns the call of a poll with a timeout.
fn poll(ms: Ns) -> Call {
    (libc::SYS_poll, 0, [0, 0, ms, 0, 0, 0])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (thread, other) = (0..THREADS, 0..THREADS);
    let stop = prop_oneof![
        Just(Stop::Create),
        (1..50_u64).prop_map(Stop::Wait),
        (0..50_u64).prop_map(Stop::Sleep),
        (1..4_u64).prop_map(Stop::Poll),
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
    ProptestConfig { failure_persistence: None, rng_seed, cases: 8_000, ..Default::default() }
}

proptest! {
    #![proptest_config(seeded())]

    /// The clock moves only if no thread runs, is about to, or awaits work in the kernel (A3),
    /// whatever stops the tracer has yet to take. A stop whose SIGCHLD is lost stays untaken.
    #[test]
    fn the_clock_moves_only_if_nothing_is_under_way(
        steps in steps(), taken in proptest::collection::vec(0..2_u8 << THREADS, 40),
        follows_wakeups: bool, first in 0..THREADS,
    ) {
        let mut threads = [(IDLE, 0); THREADS];
        threads[THREADS - 1].0 = Doing::Absent;
        let (threads, steps) = (RefCell::new(threads), RefCell::new(steps));
        let [deadlines, ends, expiries] = [const { RefCell::new(BTreeMap::new()) }; 3];
        let [now, ahead, unseen_ns] = [1, 0, 1].map(Cell::new);
        let kernel = Kernel {
            threads, steps, follows_wakeups, deadlines, ends, expiries, now, ahead, unseen_ns,
        };
        let mut tree = Tree::default();
        for tid in 0..THREADS as pid_t - 1 {
            let mut thread = Thread::new(tid, 0);
            thread.state = State::Free(Last::Nothing);
            tree.threads.insert(tid, thread);
        }
        let mut taken = taken.into_iter();
        while !kernel.steps.borrow().is_empty() {
            let mask = taken.next().unwrap_or((1 << THREADS) - 1);
            for at in (0..THREADS).filter(|at| mask >> at & 1 != 0) {
                kernel.take(&mut tree, at);
            }
            kernel.run();
            if census(&mut tree, &kernel, first as pid_t) != Census::Asleep {
                kernel.run();
                continue;
            }
            // An event comes before the tracer takes what the census has found.
            if mask >> THREADS != 0 {
                kernel.run();
                (0..THREADS).for_each(|at| kernel.take(&mut tree, at));
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
                let sleep = kernel.last_sleep(tid as usize);
                if let Some(change) = tree.state(tid).found(in_call, sleep) {
                    kernel.on(&mut tree, tid as usize, change);
                }
            }
            let is_asleep = |doing| {
                use Doing::{Absent, Ended, Held, Polls, Waits, WaitsTraced};
                matches!(doing, Waits | WaitsTraced | Polls(_) | Held | Ended | Absent)
            };
            let threads = *kernel.threads.borrow();
            let next = kernel.deadlines.borrow().values().min().copied();
            if next.is_none_or(|next| next > kernel.now.get()) {
                prop_assert!(threads.iter().all(|(doing, _)| is_asleep(*doing)), "{threads:?}");
                for at in 0..THREADS {
                    use Doing::{Held, Polls, WaitsTraced};
                    if matches!(threads[at].0, WaitsTraced | Polls(_) | Held) {
                        let [armed, end] = [&kernel.deadlines, &kernel.ends]
                            .map(|of| of.borrow().get(&at).copied());
                        prop_assert!(armed == end || end <= Some(kernel.now.get()), "{threads:?}");
                    }
                }
            }
            // Without a deadline, a timer of a program expires.
            if next.is_none() && threads[first].0 == Doing::Waits {
                kernel.threads.borrow_mut()[first] = (IDLE, threads[first].1 + 1);
            }
            kernel.jump(&mut tree);
        }
    }
}
