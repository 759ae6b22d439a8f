//! Whom Tickless is compared with, behind one small trait for each kind of use.
//!
//! | kind | what it must be able to do | cases |
//! |---|---|---|
//! | [`Table`] | one thread arms, cancels, pushes out | W1, W2, W6 |
//! | [`Shared`] | any thread arms and cancels | W4, W4x |
//! | [`Expire`] | fire a great many timers | W3 |
//! | [`Sleeper`] | wake up in time | W5 |
//!
//! Peers in other languages are programs ([`foreign`]) that do the work of W1 to W4x.
//!
//! All deadlines are given as a distance from a fixed present, the moment at which the table
//! was made; peers that read the clock themselves count from then on.

pub mod async_io_timer;
pub mod batches;
pub mod bit_wheel;
pub mod delay_queue;
pub mod fixed;
pub mod foreign;
pub mod hash_wheel;
pub mod heap;
pub mod local;
pub mod naive;
pub mod nexus;
pub mod timeout;
pub mod tokio_sleep;
pub mod tree;

use crate::latency::Latencies;
use std::time::{Duration, Instant};

/// Timers as one thread uses them, with some pending all the time.
pub trait Table: Sized + 'static {
    /// For the first column of the tables.
    const NAME: &'static str;

    /// A table without timers.
    fn new() -> Self;

    /// Runs `f` with what these timers need around them on a thread.
    fn around<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        f(self)
    }

    /// Called once when all timers have been added.
    fn settle(&mut self) {}

    /// Makes a timer and arms it. Timers are numbered from zero as they come.
    fn add(&mut self, after: Duration);

    /// Arms one timer more, and cancels it.
    fn pair(&mut self, after: Duration);

    /// Moves a pending timer to a later time.
    fn push_out(&mut self, timer: usize, after: Duration);

    /// So many pairs, one after the other unless a peer takes them in batches.
    fn pair_all(&mut self, after: &[Duration]) {
        after.iter().for_each(|&after| self.pair(after));
    }

    /// The same of pushing out.
    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        plan.iter().for_each(|&(timer, after)| self.push_out(timer as usize, after));
    }

    /// How many timers are pending.
    fn pending(&mut self) -> usize;

    /// Bytes of what the user keeps of each timer, outside the heap.
    fn handle_bytes() -> usize;
}

/// A [`Table`] of whatever type; one indirect call for many operations.
pub trait AnyTable {
    fn add_all(&mut self, after: &[Duration]);
    fn pairs(&mut self, after: &[Duration]);
    fn push_all_out(&mut self, plan: &[(u32, Duration)]);
    fn pending(&mut self) -> usize;
}

impl<T: Table> AnyTable for T {
    fn add_all(&mut self, after: &[Duration]) {
        self.around(|table| after.iter().for_each(|&after| table.add(after)));
        self.settle();
    }

    fn pairs(&mut self, after: &[Duration]) {
        self.around(|table| table.pair_all(after));
    }

    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        self.around(|table| Table::push_all_out(table, plan));
    }

    fn pending(&mut self) -> usize {
        Table::pending(self)
    }
}

/// How to make a table.
pub struct TablePeer {
    pub name: &'static str,
    pub new: fn() -> Box<dyn AnyTable>,
    pub handle_bytes: usize,
}

fn table<T: Table>() -> TablePeer {
    TablePeer { name: T::NAME, new: || Box::new(T::new()), handle_bytes: T::handle_bytes() }
}

/// Every table, ours first.
pub fn tables() -> Vec<TablePeer> {
    vec![
        table::<local::Local>(),
        table::<batches::Batches>(),
        table::<timeout::FromNow>(),
        table::<timeout::ReadsClock>(),
        table::<heap::LazyHeap>(),
        table::<tree::Tree>(),
        table::<tokio_sleep::Sleeps>(),
        table::<delay_queue::Delays>(),
        table::<hash_wheel::HashWheel>(),
        table::<nexus::Nexus>(),
        table::<bit_wheel::BitWheel>(),
        table::<async_io_timer::AsyncIo>(),
    ]
}

/// Tables of timeouts that are all of one duration: for W1, and for pushes behind all others.
pub fn equal_tables() -> Vec<TablePeer> {
    vec![table::<fixed::Fixed>()]
}

/// Tables whose pair makes the timer anew and throws it away, where the plain row does not.
pub fn throwaway_tables() -> Vec<TablePeer> {
    vec![table::<local::Throwaway>(), table::<timeout::Throwaway>()]
}

/// Timers that any thread may arm and cancel.
pub trait Shared: Send + Sync + 'static {
    const NAME: &'static str;
    /// What travels from thread to thread: one word.
    type Timer: Send;

    fn new() -> Self;

    /// Runs `f` with what these timers need around them on a thread.
    fn around<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// A timer that is not armed.
    fn timer(&self) -> Self::Timer;
    fn arm(&self, timer: &mut Self::Timer, after: Duration);
    fn cancel(&self, timer: &mut Self::Timer);
}

/// Bulk expiry: arms a timer for each of these deadlines, all within a second, and lets them
/// expire. Returns how many callbacks ran, and the CPU time that the expiry took.
pub struct Expire {
    pub name: &'static str,
    /// How time passes, and whose CPU time is counted.
    pub how: &'static str,
    pub run: fn(&[Duration]) -> (u64, Duration),
}

pub const STEPS: &str = "steps of 1 ms, one thread";
/// A wheel may be late by 13 % of the distance.
pub const STEPS_MS: u64 = 1_150;
pub const LIVE: &str = "real time, all threads' CPU time";

/// Waits until so many timers have fired, and gives up when nothing can be coming any more.
pub fn wait_for(count: u64, fired: impl Fn() -> u64) {
    let began = Instant::now();
    while fired() < count && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every bulk expiry, ours first.
pub fn expirations() -> Vec<Expire> {
    vec![
        local::EXPIRE,
        batches::EXPIRE,
        timeout::EXPIRE_VIRTUAL,
        timeout::EXPIRE_LIVE,
        heap::EXPIRE,
        tree::EXPIRE,
        tokio_sleep::EXPIRE,
        delay_queue::EXPIRE,
        hash_wheel::EXPIRE,
        nexus::EXPIRE,
        bit_wheel::EXPIRE,
        async_io_timer::EXPIRE,
    ]
}

/// Runs so many timers for so long, each armed again when it fires for another 1 to 10 ms.
pub struct Sleeper {
    pub name: &'static str,
    pub run: fn(usize, Duration) -> Latencies,
}

/// Every sleeper, ours first.
pub fn sleepers() -> Vec<Sleeper> {
    vec![
        timeout::PRECISE,
        timeout::SLACK,
        timeout::COARSE,
        naive::SLEEPER,
        async_io_timer::SLEEPER,
        tokio_sleep::SLEEPER,
    ]
}
