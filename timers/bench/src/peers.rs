//! The timers that Tickless is compared with, behind a small trait for each kind of use.
//!
//! Peers in other languages are programs ([`foreign`]) that do the work of W1 to W4x.
//!
//! All deadlines are distances from a fixed current time, the moment at which the table was made;
//! peers that read the clock themselves count from there.

mod delay_queue;
pub mod executors;
pub mod fixed;
pub mod foreign;
pub mod heaps;
pub mod local;
mod nexus;
pub mod queues;
pub mod sleepers;
pub mod timeout;
pub mod tokio_sleep;

use crate::latency::{Latencies, Recorder, next_delay};
use crate::random::Random;
use crate::sample::{Stopwatch, of_tokio};
use delay_queue::DelayQueue;
use heaps::{LazyHeap, Tree};
use nexus::Nexus;
use queues::{Handles, Queue};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Timers of one thread, of which some are always pending.
///
/// The provided methods are compiled per peer: a call for many operations is one indirect call.
pub trait Table {
    /// Returns the runtime inside of which these timers must be used, if they need one.
    fn runtime(&self) -> Option<Handle> {
        None
    }

    /// Makes a timer and arms it. Timers are numbered from zero as they come.
    fn add(&mut self, after: Duration);

    fn pair(&mut self, after: Duration);

    fn push_out(&mut self, timer: usize, after: Duration);

    fn pending(&mut self) -> usize;

    fn add_all(&mut self, after: &[Duration]) {
        let runtime = self.runtime();
        let _entered = runtime.as_ref().map(Handle::enter);
        after.iter().for_each(|&after| self.add(after));
    }

    /// Pairs one after the other.
    fn pairs(&mut self, after: &[Duration]) {
        let runtime = self.runtime();
        let _entered = runtime.as_ref().map(Handle::enter);
        after.iter().for_each(|&after| self.pair(after));
    }

    /// Push-outs one after the other, unless a peer takes them in batches.
    fn push_all_out(&mut self, plan: &[(u32, Duration)]) {
        let runtime = self.runtime();
        let _entered = runtime.as_ref().map(Handle::enter);
        plan.iter().for_each(|&(timer, after)| self.push_out(timer as usize, after));
    }
}

pub struct TablePeer {
    pub name: &'static str,
    pub new: fn() -> Box<dyn Table>,
    /// The size of what the user keeps of each timer, outside the heap.
    pub handle_bytes: usize,
}

pub fn table<T: Table + Default + 'static, Handle>(name: &'static str) -> TablePeer {
    TablePeer { name, new: || Box::new(T::default()), handle_bytes: size_of::<Handle>() }
}

fn queue<Q: Queue>(name: &'static str) -> TablePeer {
    table::<Handles<Q>, Q::Handle>(name)
}

pub fn tables() -> Vec<TablePeer> {
    use tickless::{Timeout, local::Key};
    vec![
        table::<local::Local<{ local::PLAIN }>, Key>("**LocalTimers**"),
        table::<timeout::Timeouts<{ timeout::FROM_NOW }>, Timeout>(timeout::FROM_NOW_NAME),
        table::<timeout::Timeouts<{ timeout::READS_CLOCK }>, Timeout>(
            "**Timeout**, `start(d)`, reads the clock",
        ),
        queue::<LazyHeap>("std BinaryHeap, lazy deletion"),
        queue::<Tree>("std BTreeMap"),
        table::<tokio_sleep::Sleeps<false>, tokio_sleep::Handle>(tokio_sleep::NAME),
        table::<tokio_sleep::Sleeps<true>, tokio_sleep::Handle>(of_tokio!(
            "tokio `Sleep`, one thread, reads the clock"
        )),
        queue::<DelayQueue>("tokio-util `DelayQueue`"),
        queue::<Nexus>("nexus-timer `Wheel`"),
    ]
}

/// Tables of timeouts that all have one duration: for W1, and for pushes behind all others.
pub fn equal_tables() -> Vec<TablePeer> {
    vec![table::<fixed::Fixed, tickless::local::FixedKey>("**FixedTimeouts**, one duration")]
}

/// Tables whose pair makes and drops its timer, where the plain row reuses one.
pub fn throwaway_tables() -> Vec<TablePeer> {
    use tickless::{Timeout, local::Key};
    vec![
        table::<local::Local<{ local::THROWAWAY }>, Key>(
            "**LocalTimers**, timer inserted and removed",
        ),
        table::<timeout::Timeouts<{ timeout::THROWAWAY }>, Timeout>(
            "**Timeout**, made and dropped",
        ),
    ]
}

pub trait Shared: Send + Sync + 'static {
    /// What travels from thread to thread: one word.
    type Timer: Send;

    fn new() -> Self;

    /// Runs `f` with what these timers need around them on a thread.
    fn around<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn timer(&self) -> Self::Timer;
    fn arm(&self, timer: &mut Self::Timer, after: Duration);
    fn cancel(&self, timer: &mut Self::Timer);
}

/// Lets a timer for each deadline expire. Returns how many callbacks ran, and their CPU time.
pub struct Expire {
    pub name: &'static str,
    /// How time passes, and whose CPU time is counted.
    pub how: &'static str,
    pub run: fn(&[Duration]) -> (u64, Duration),
}

pub const CAUGHT_UP: &str = "all due when the driver looks, one thread";
pub const STEPS: &str = "steps of 1 ms, one thread";
/// A wheel may be late by 13 % of the distance.
const STEPS_MS: u64 = 1_150;
pub const LIVE: &str = "real time, all threads' CPU time";

pub trait Steps: Table + Default {
    fn arm_all(&mut self, after: &[Duration]);

    /// Moves the time to this many milliseconds after the start. Returns how many timers fired.
    fn advance(&mut self, ms: u64) -> u64;
}

fn in_steps<T: Steps>(name: &'static str) -> Expire {
    let run = |after: &[Duration]| {
        let mut table = T::default();
        table.arm_all(after);
        let watch = Stopwatch::start();
        let fired = (1..=STEPS_MS).map(|ms| table.advance(ms)).sum();
        (fired, watch.elapsed())
    };
    Expire { name, how: STEPS, run }
}

pub fn wait_for(count: u64, fired: impl Fn() -> u64) {
    let began = Instant::now();
    while fired() < count && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn expirations() -> Vec<Expire> {
    vec![
        in_steps::<local::Local<{ local::PLAIN }>>("**LocalTimers**"),
        in_steps::<local::Local<{ local::KEYS }>>("**LocalTimers**, keys only: `advance_into`"),
        timeout::EXPIRE_VIRTUAL,
        timeout::EXPIRE_LIVE,
        in_steps::<Handles<LazyHeap>>("std BinaryHeap, lazy deletion"),
        in_steps::<Handles<Tree>>("std BTreeMap"),
        tokio_sleep::EXPIRE,
        queues::caught_up::<DelayQueue>("tokio-util `DelayQueue`"),
        in_steps::<Handles<Nexus>>("nexus-timer `Wheel`"),
    ]
}

/// A name, and a function that runs this many timers for this long, each rearmed for 1 to 10 ms.
pub type Sleeper = (&'static str, fn(usize, Duration) -> Latencies);

pub fn sleepers() -> Vec<Sleeper> {
    vec![
        timeout::PRECISE,
        timeout::SLACK,
        timeout::COARSE,
        sleepers::NAIVE,
        sleepers::ASYNC_IO,
        tokio_sleep::SLEEPER,
    ]
}

/// Sleeps for 1 to 10 ms after each sleep, and records its lateness.
async fn sleep_again_and_again<S: Future>(
    nth: usize,
    recorder: Arc<Mutex<Recorder>>,
    sleep_until: impl Fn(Instant) -> S,
) {
    let mut random = Random::seeded(nth as u64);
    loop {
        let due = Instant::now() + next_delay(&mut random);
        sleep_until(due).await;
        recorder.lock().expect("no task panics").note(due, Instant::now());
    }
}
