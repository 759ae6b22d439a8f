//! Holding the model against a real machine: code that is written once and runs on both.
//!
//! A [`Scene`] is something that two CPUs do with shared words, or all of them. It is generic over
//! its [`World`]: the simulated machine, or two threads that stay on two real CPUs, with real
//! atomics. A few scenes set the prices of a real machine's file ([`fit`]); what the others take is
//! then predicted by simulation ([`simulate`]) and compared with what it takes for real. The fit
//! never sees the latter.
//!
//! | file | holds |
//! |---|---|
//! | here | worlds, scenes, and which there are |
//! | `primitives` | ping-pong, counter, ticket lock, seqlock, queue |
//! | `library` | the timer core's own code: a cancel, a combined clock |
//! | `simulate` | scenes on a simulated machine |
//! | `fit` | prices from measured scenes |

pub mod fit;
mod library;
mod primitives;
pub mod simulate;

use std::fmt::Debug;
use std::sync::Arc;
use tickless_core::platform::{Ordering, Word};
use tickless_core::time::Ns;

/// A machine that scenes are played on.
pub trait World: Clone + Default + Send + Sync + Debug + 'static {
    /// Its words.
    type Word: Shared;
    /// Which side of the scene the caller plays.
    fn side(&self) -> usize;
    /// The present, from a counter of the CPU's own.
    fn now(&self) -> Ns;
    /// A turn of a waiting loop.
    fn relax(&self, round: u32);
    /// Private work of about this long.
    fn work(&self, for_ns: Ns);
    /// Private work of one critical section of the timer core, where that is not simply done.
    fn section(&self);
}

/// A word that can be added to in one step.
pub trait Shared: Word + Debug + 'static {
    /// Adds to it. Returns what it held.
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

/// What has a cache line of its own, or a pair of them where those come in pairs.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// What one side did.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Played {
    /// Operations; none if this side only lets the other one do them.
    pub ops: u64,
    /// How long they took.
    pub ns: f64,
}

/// Something that several sides do together.
pub trait Scene<W: World>: Send + Sync {
    /// Plays one side, the world's own, from when all are there.
    fn play(&self, world: &W) -> Played;
}

/// Nanoseconds for each operation, from what the sides did: the time that passed for those who
/// did some, on average, over the operations of all.
pub fn per_operation(sides: &[Played]) -> f64 {
    let counted = sides.iter().filter(|side| side.ops > 0);
    let ns: f64 = counted.clone().map(|side| side.ns).sum();
    let ops: u64 = counted.clone().map(|side| side.ops).sum();
    ns / counted.count().max(1) as f64 / ops.max(1) as f64
}

/// The scenes there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Part {
    /// 64 lines go to and fro: one side writes them all, the other walks through them, each read
    /// waiting for the last. Nanoseconds for a line.
    Transfer,
    /// A word goes to and fro; each side waits by reading. Nanoseconds for a round trip.
    PingPong,
    /// The same, but each side waits by trying to exchange, so that the line never rests.
    PingPongByExchange,
    /// One side alone arms and cancels a timer of the core. Nanoseconds for both.
    OwnTimer,
    /// Both add to one word. Nanoseconds for an addition, by whichever side.
    Counter,
    /// All CPUs do so.
    CounterByAll,
    /// Both take a ticket lock and add to what it guards. Nanoseconds for a holding.
    TicketLock,
    /// All CPUs do so.
    TicketLockByAll,
    /// One writes four words about every microsecond, the other reads them. Nanoseconds for a
    /// read.
    SeqLock,
    /// One puts numbers into a ring of 64, the other takes them out. Nanoseconds for a number.
    Queue,
    /// One arms a timer of the core on its base, the other cancels it. Nanoseconds for a cancel
    /// that waits, with one reading of the clock.
    Cancel,
    /// Both read a device that takes a microsecond for each. Nanoseconds for a value.
    ClockDirect,
    /// Both read it through the combined counter. Nanoseconds for a value.
    ClockCombined,
}

impl Part {
    /// Those that prices are set from.
    pub const FITTED: [Part; 3] = [Part::Transfer, Part::PingPong, Part::OwnTimer];

    /// Those that are predicted.
    pub const PREDICTED: [Part; 8] = [
        Part::PingPongByExchange,
        Part::Counter,
        Part::TicketLock,
        Part::SeqLock,
        Part::Queue,
        Part::Cancel,
        Part::ClockDirect,
        Part::ClockCombined,
    ];

    /// Those that are predicted beside them on more than two CPUs.
    pub const CONTENDED: [Part; 2] = [Part::CounterByAll, Part::TicketLockByAll];

    /// How many CPUs play it on a machine that has so many.
    pub const fn sides(self, cpus: usize) -> usize {
        match self {
            Part::CounterByAll | Part::TicketLockByAll => cpus,
            _ => 2,
        }
    }

    /// As cells are named.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Transfer => "ping_pong.line",
            Part::PingPong => "ping_pong.round_trip",
            Part::PingPongByExchange => "ping_pong.by_exchange",
            Part::OwnTimer => "own_timer.arm_and_cancel",
            Part::Counter => "counter.addition",
            Part::TicketLock => "ticket_lock.holding",
            Part::CounterByAll => "counter.addition_by_all",
            Part::TicketLockByAll => "ticket_lock.holding_by_all",
            Part::SeqLock => "seqlock.read",
            Part::Queue => "queue.item",
            Part::Cancel => "cancel.another_cpus_timer",
            Part::ClockDirect => "clock.direct.value",
            Part::ClockCombined => "clock.combined.value",
        }
    }

    /// The scene, for one play of so many sides and rounds.
    pub fn scene<W: World>(self, world: &W, sides: usize, rounds: u64) -> Arc<dyn Scene<W>> {
        use tickless_clock::combined::ReadPolicy;
        match self {
            Part::Transfer => Arc::new(primitives::Transfer::new(rounds / 16)),
            Part::PingPong => Arc::new(primitives::PingPong::by_reading(rounds)),
            Part::PingPongByExchange => Arc::new(primitives::PingPong::by_exchange(rounds)),
            Part::OwnTimer => Arc::new(library::OwnTimer::new(world, rounds)),
            Part::Counter | Part::CounterByAll => Arc::new(primitives::Counter::new(sides, rounds)),
            Part::TicketLock | Part::TicketLockByAll => {
                Arc::new(primitives::Tickets::new(sides, rounds))
            }
            Part::SeqLock => Arc::new(primitives::SeqLock::new(rounds)),
            Part::Queue => Arc::new(primitives::Queue::new(rounds)),
            Part::Cancel => Arc::new(library::CancelAcross::new(world, rounds)),
            Part::ClockDirect => {
                Arc::new(library::Clock::new(world, ReadPolicy::Direct, rounds / 4))
            }
            Part::ClockCombined => {
                Arc::new(library::Clock::new(world, ReadPolicy::Combined, rounds / 4))
            }
        }
    }
}

/// Where all sides begin, and where the first to be through ends it for all.
#[derive(Debug)]
pub(crate) struct Gate<W: World> {
    ready: Line<W::Word>,
    over: Line<W::Word>,
    sides: u64,
}

impl<W: World> Gate<W> {
    /// For two sides.
    pub(crate) fn new() -> Gate<W> {
        Gate::of(2)
    }

    pub(crate) fn of(sides: usize) -> Gate<W> {
        let word = || Line(W::Word::new(0));
        Gate { ready: word(), over: word(), sides: sides as u64 }
    }

    /// Waits until all sides are here. Returns when that was.
    pub(crate) fn enter(&self, world: &W) -> Ns {
        self.ready.0.add(1);
        let mut round = 0;
        while self.ready.0.load(Ordering::Acquire) < self.sides {
            world.relax(round);
            round = round.saturating_add(1);
        }
        world.now()
    }

    /// Does `one` so often, or until another side is through; that is looked at now and then.
    pub(crate) fn repeat(&self, world: &W, rounds: u64, mut one: impl FnMut()) -> Played {
        const ASK_EVERY: u64 = 16;
        let begun = self.enter(world);
        let mut ops = 0;
        while ops < rounds {
            one();
            ops += 1;
            if ops % ASK_EVERY == 0 && self.is_over() {
                break;
            }
        }
        let ended = world.now();
        self.end();
        Played { ops, ns: ended.since(begun).0 as f64 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.0.load(Ordering::Acquire) != 0
    }

    pub(crate) fn end(&self) {
        self.over.0.store(1, Ordering::Release);
    }
}
