//! The model checkers, behind one trait, so that one body runs under each of them.
//!
//! | checker | what it does | what it is for |
//! |---|---|---|
//! | loom | every schedule up to so many preemptions, every value a load may return | orderings |
//! | shuttle | random schedules of sequentially consistent threads | depth |
//!
//! A body is plain code that is run again for every schedule. It may share nothing with another
//! run but what it writes and never reads, such as counts for the end of the test; else the
//! checkers would explore something that is not the body. Each checker has a binary of its own,
//! since each makes itself at home in the process's panic hook.
//!
//! `cargo test` explores little, so that it stays quick; with `TICKLESS_MODELS=deep` the bounds
//! are those of `ci/models.sh`, and with `LOOM_MAX_PREEMPTIONS` what that says.

use std::env;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::CpuId;

/// A world in which a checker decides who goes on and what loads return.
pub trait Checker: Sized + Send + Sync + 'static {
    /// Its name, for what is printed.
    const NAME: &'static str;
    /// Are its schedules a sample, rather than all there are?
    const IS_RANDOM: bool;
    /// An atomic word that the checker watches.
    type Word: Word;
    /// Mutual exclusion that the checker watches.
    type Lock<T: Send>: Lock<T>;
    /// Where threads sleep.
    type Parking: Parking;
    /// A thread that has been started.
    type Thread;

    /// Runs `body` under as many schedules as it takes; panics if it does under one of them.
    fn explore(depth: Depth, body: impl Fn() + Send + Sync + 'static);
    /// Starts a thread on a CPU.
    fn spawn(cpu: CpuId, thread: impl FnOnce() + Send + 'static) -> Self::Thread;
    /// Waits for a thread's end.
    fn join(thread: Self::Thread);
    /// Writes a word and returns what it held.
    fn swap(word: &Self::Word, value: u64, order: Ordering) -> u64;
    /// Adds one to a word.
    fn add_one(word: &Self::Word, order: Ordering);
    /// Lets others go on: for every round of a loop that waits.
    fn yield_now();
    /// A sequentially consistent fence.
    fn fence();
    /// The CPU that the caller is on.
    fn here() -> CpuId;
    /// Takes the caller to a CPU.
    fn go_to(cpu: CpuId);
}

/// Where threads sleep until they are woken, as futex(2) has it.
pub trait Parking: Send + Sync {
    /// Nobody sleeps there.
    fn new() -> Self;
    /// Sleeps if `still` says so; whoever wakes comes before that is asked or after it sleeps.
    fn park(&self, still: impl FnOnce() -> bool);
    /// Wakes everybody who sleeps.
    fn unpark(&self);
}

/// How far a model is explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Depth {
    /// Preemptions of one schedule, under loom.
    pub preemptions: usize,
    /// Schedules, under shuttle.
    pub schedules: usize,
}

impl Depth {
    /// For most models: what is usual, or deep, as the environment says.
    pub fn usual() -> Depth {
        match env::var("TICKLESS_MODELS").as_deref() {
            Ok("deep") => Depth { preemptions: 3, schedules: 4_000 },
            _ => Depth { preemptions: 2, schedules: 500 },
        }
    }

    /// For bodies with so many steps that one preemption has to do less often.
    pub fn shallower(self) -> Depth {
        Depth { preemptions: self.preemptions - 1, ..self }
    }
}

/// Explores a body and says how many schedules there were.
pub fn explore<C: Checker>(name: &str, depth: Depth, body: impl Fn() + Send + Sync + 'static) {
    let schedules = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&schedules);
    C::explore(depth, move || {
        count.fetch_add(1, Ordering::Relaxed);
        body();
    });
    println!("{name}: {} schedules under {}", schedules.load(Ordering::Relaxed), C::NAME);
}
