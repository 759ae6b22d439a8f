//! Scenes: concurrent code that is written once and runs on simulated and on real CPUs, to compare
//! the model with a real machine.
//!
//! In a [`Scene`] two CPUs, or all of them, work on shared words. Its code is generic over a
//! [`Backend`]: the simulated machine, or threads pinned to real CPUs, with real atomics. Three
//! scenes set the prices in a real machine's file ([`fit`]). The times of the others are predicted
//! by simulation ([`simulate`]) and compared with measured times, which the fit does not use.
//!
//! | file | holds |
//! |---|---|
//! | here | the backend and the list of scenes |
//! | `primitives` | ping-pong, counter, ticket lock, seqlock, queue |
//! | `library` | the timer core's own code: a cancel, a combined clock |
//! | `simulate` | scenes on a simulated machine |
//! | `fit` | prices from measured scenes |

pub mod fit;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod library;
mod primitives;
pub mod simulate;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use tickless_core::clock::combined::ReadPolicy;
use tickless_core::platform::{Ordering, Word};
use tickless_core::time::Ns;

/// The CPUs that scenes run on. Each function acts for the CPU that calls it.
pub trait Backend: Send + Sync + Debug + 'static {
    /// A shared word.
    type Word: Shared;
    /// Returns which side of the scene the calling CPU plays, from 0.
    fn side() -> usize;
    /// Returns the current time, from a counter of the CPU's own.
    fn now() -> Ns;
    /// Performs one round of a waiting loop.
    fn relax(round: u32);
    /// Computes for about this long.
    fn work(duration: Ns);
    /// Charges the private work of one critical section of the timer core, where it does not
    /// take its time by itself.
    fn section();
}

/// A word with an atomic addition.
pub trait Shared: Word + Debug + 'static {
    /// Adds to the word. Returns the previous value.
    fn add(&self, value: u64) -> u64;
}

impl Shared for std::sync::atomic::AtomicU64 {
    fn add(&self, value: u64) -> u64 {
        self.fetch_add(value, Ordering::AcqRel)
    }
}

impl Shared for crate::platform::SimWord {
    fn add(&self, value: u64) -> u64 {
        self.fetch_add(value)
    }
}

/// A value on a cache line of its own. 128 bytes, because some CPUs fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A new word on a line of its own.
fn word<W: Backend>() -> Line<W::Word> {
    Line(W::Word::new(0))
}

/// What one side of a scene has done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SideResult {
    /// The number of operations; zero for a side that only assists the other.
    pub ops: u64,
    /// The time that they took.
    pub ns: f64,
}

/// One play of a scene: each side calls it once, and it returns when that side has finished.
pub type Play = Arc<dyn Fn() -> SideResult + Send + Sync>;

/// Returns the nanoseconds for each operation: the average time of the sides that did operations,
/// divided by the operations of all sides.
pub fn per_operation(sides: &[SideResult]) -> f64 {
    let counted = sides.iter().filter(|side| side.ops > 0);
    let ns: f64 = counted.clone().map(|side| side.ns).sum();
    let ops: u64 = counted.clone().map(|side| side.ops).sum();
    ns / counted.count().max(1) as f64 / ops.max(1) as f64
}

/// A scene.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Scene {
    /// One side writes 64 lines, the other follows them, each load depending on the last.
    /// Nanoseconds for a line.
    Transfer,
    /// The sides pass a word back and forth, and wait by loading it. Nanoseconds for a round trip.
    PingPong,
    /// As [`PingPong`](Scene::PingPong), but each side waits with a compare-exchange loop.
    PingPongByExchange,
    /// One side alone arms and cancels a timer of the core. Nanoseconds for both.
    OwnTimer,
    /// Both sides add to one word. Nanoseconds for an addition, by either side.
    Counter,
    /// All CPUs add to one word.
    CounterByAll,
    /// Both sides take a ticket lock and add to the guarded word. Nanoseconds for a holding.
    TicketLock,
    /// All CPUs take the ticket lock.
    TicketLockByAll,
    /// One side writes four words about every microsecond, the other reads them. Nanoseconds for
    /// a read.
    SeqLock,
    /// One side puts numbers into a ring of 64, the other takes them out. Nanoseconds for a
    /// number.
    Queue,
    /// One side arms a timer of the core on its base, the other cancels it. Nanoseconds for a
    /// cancel that waits, with one reading of the clock.
    Cancel,
    /// Both sides read a device that takes a microsecond a read. Nanoseconds for a value.
    ClockDirect,
    /// Both sides read the device through the combined counter. Nanoseconds for a value.
    ClockCombined,
}

impl Scene {
    /// The scenes that set prices.
    pub const FITTED: [Scene; 3] = [Scene::Transfer, Scene::PingPong, Scene::OwnTimer];

    /// The scenes of two CPUs that are predicted.
    pub const PREDICTED: [Scene; 8] = [
        Scene::PingPongByExchange,
        Scene::Counter,
        Scene::TicketLock,
        Scene::SeqLock,
        Scene::Queue,
        Scene::Cancel,
        Scene::ClockDirect,
        Scene::ClockCombined,
    ];

    /// The scenes of all CPUs, which are predicted on machines with more than two.
    pub const CONTENDED: [Scene; 2] = [Scene::CounterByAll, Scene::TicketLockByAll];

    /// Returns the number of CPUs that take part, on a machine of `cpus`.
    pub const fn sides(self, cpus: usize) -> usize {
        match self {
            Scene::CounterByAll | Scene::TicketLockByAll => cpus,
            _ => 2,
        }
    }

    /// The name of the scene's cell.
    pub const fn name(self) -> &'static str {
        match self {
            Scene::Transfer => "ping_pong.line",
            Scene::PingPong => "ping_pong.round_trip",
            Scene::PingPongByExchange => "ping_pong.by_exchange",
            Scene::OwnTimer => "own_timer.arm_and_cancel",
            Scene::Counter => "counter.addition",
            Scene::TicketLock => "ticket_lock.holding",
            Scene::CounterByAll => "counter.addition_by_all",
            Scene::TicketLockByAll => "ticket_lock.holding_by_all",
            Scene::SeqLock => "seqlock.read",
            Scene::Queue => "queue.item",
            Scene::Cancel => "cancel.another_cpus_timer",
            Scene::ClockDirect => "clock.direct.value",
            Scene::ClockCombined => "clock.combined.value",
        }
    }

    /// Prepares one play with this number of sides and rounds.
    pub fn play<W: Backend>(self, sides: usize, rounds: u64) -> Play {
        match self {
            Scene::Transfer => primitives::transfer::<W>(rounds / 16),
            Scene::PingPong => primitives::ping_pong::<W>(rounds),
            Scene::PingPongByExchange => primitives::ping_pong_by_exchange::<W>(rounds),
            Scene::OwnTimer => library::own_timer::<W>(rounds),
            Scene::Counter | Scene::CounterByAll => primitives::counter::<W>(sides, rounds),
            Scene::TicketLock | Scene::TicketLockByAll => {
                primitives::ticket_lock::<W>(sides, rounds)
            }
            Scene::SeqLock => primitives::seq_lock::<W>(rounds),
            Scene::Queue => primitives::queue::<W>(rounds),
            Scene::Cancel => library::cancel_across::<W>(rounds),
            Scene::ClockDirect => library::clock::<W>(ReadPolicy::Direct, rounds / 4),
            Scene::ClockCombined => library::clock::<W>(ReadPolicy::Combined, rounds / 4),
        }
    }
}

/// Starts all sides of a play together, and ends [`repeat`](Gate::repeat) on all of them when the
/// first has finished.
struct Gate<W: Backend> {
    ready: Line<W::Word>,
    ended: Line<W::Word>,
    sides: u64,
}

impl<W: Backend> Gate<W> {
    fn new(sides: usize) -> Gate<W> {
        Gate { ready: word::<W>(), ended: word::<W>(), sides: sides as u64 }
    }

    /// Waits until all sides have arrived. Returns the time.
    fn enter(&self) -> Ns {
        self.ready.add(1);
        wait_for::<W, _>(|| (self.ready.load(Ordering::Acquire) >= self.sides).then_some(()));
        W::now()
    }

    /// Repeats `operation`, at most `rounds` times, until another side has finished. Checks for
    /// that after every 16 operations.
    fn repeat(&self, rounds: u64, mut operation: impl FnMut()) -> SideResult {
        const CHECK_EVERY: u64 = 16;
        let begun = self.enter();
        let mut ops = 0;
        while ops < rounds {
            operation();
            ops += 1;
            if ops % CHECK_EVERY == 0 && self.has_ended() {
                break;
            }
        }
        let ns = W::now().since(begun).0 as f64;
        self.ended.store(1, Ordering::Release);
        SideResult { ops, ns }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Runs `first` on side 0 and `second` on side 1 by turns. `first` gets the time of the
    /// start. Only `second` is measured, as `ops` operations.
    fn take_turns(
        &self,
        turn: &W::Word,
        rounds: u64,
        ops: u64,
        first: impl Fn(Ns),
        second: impl Fn(),
    ) -> SideResult {
        let start = self.enter();
        let side = W::side() as u64;
        let mut ns = 0;
        for round in 0..rounds {
            let mine = 2 * round + side;
            wait_for::<W, _>(|| (turn.load(Ordering::Acquire) == mine).then_some(()));
            if side == 0 {
                first(start);
            } else {
                let begun = W::now();
                second();
                ns += W::now().since(begun).0;
            }
            turn.store(mine + 1, Ordering::Release);
        }
        SideResult { ops: ops * rounds * side, ns: ns as f64 }
    }
}

/// Waits until `ready` returns a value.
fn wait_for<W: Backend, T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let mut round = 0;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        W::relax(round);
        round = round.saturating_add(1);
    }
}
