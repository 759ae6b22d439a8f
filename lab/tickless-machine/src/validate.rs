//! Scenes: small concurrent benchmarks that run the same code on simulated and on real CPUs, to
//! compare the simulation with a real machine.
//!
//! In a [`Scene`] two CPUs, or all of them, work on shared words. Its code is generic over a
//! [`Backend`]: the simulated machine, or threads pinned to real CPUs, with real atomics. Five
//! scenes are measured on a real machine to set prices (the durations of operations) in the
//! machine's file ([`fit`]). The times of all other scenes are predicted by simulation
//! ([`simulate`]) and compared with measured times, which the fit does not use.

pub mod fit;
#[expect(unsafe_code, reason = "a platform promises exclusive locks")]
mod library;
mod primitives;
pub mod simulate;

use primitives::SlotOrder;
use std::fmt::Debug;
use std::sync::Arc;
use tickless_core::clock::combined::ReadPolicy;
use tickless_core::platform::{Ordering, OwnLine, Word};
use tickless_core::time::Ns;

/// The CPUs that scenes run on, simulated or real. Each function acts for the CPU that calls it.
pub trait Backend: Send + Sync + Debug + 'static {
    type Word: Word + Debug + 'static;
    /// The cache lines of the data that a lock guards, where they are simulated.
    type Guarded: Default + Send + Sync + Debug;
    /// Returns the number of the calling CPU's role in the scene, from 0: the first side writes,
    /// for example, and the second reads.
    fn side() -> usize;
    fn now() -> Ns;
    /// Performs one round of a waiting loop. `round` is the number of the round, from 0.
    fn relax(round: u32);
    fn work(duration: Ns);
    /// Called before an access whose address depends on what the previous access has loaded.
    fn depend();
    /// Called in each critical section of the timer library on a `T`. The simulation charges the
    /// time of the section here; on real CPUs it takes its time by itself.
    fn section<T>(guarded: &Self::Guarded);
}

fn word<W: Backend>() -> OwnLine<W::Word> {
    OwnLine(W::Word::new(0))
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SideResult {
    /// The number of measured operations; zero for a side that only assists the other.
    pub ops: u64,
    pub ns: f64,
}

/// One run of a scene: a closure that each side calls once. It returns when the side has finished.
pub type Play = Arc<dyn Fn() -> SideResult + Send + Sync>;

/// Returns the nanoseconds for each operation: the average time of the sides that have done
/// operations, divided by the number of operations of all sides together.
pub fn per_operation(sides: &[SideResult]) -> f64 {
    let counted = sides.iter().filter(|side| side.ops > 0);
    let ns: f64 = counted.clone().map(|side| side.ns).sum();
    let ops: u64 = counted.clone().map(|side| side.ops).sum();
    ns / counted.count().max(1) as f64 / ops.max(1) as f64
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Scene {
    /// One side writes 64 cache lines. The other side then reads them, and each read gives the
    /// number of the next line, so that reads cannot overlap. Measured in ns for each line.
    Transfer,
    /// [`Transfer`](Scene::Transfer), but the reader also adds to each line.
    TransferAndAdd,
    /// [`Transfer`](Scene::Transfer), but the reader knows the lines' order, so reads can overlap.
    TransferAhead,
    /// The sides change a word in turn, and wait by loading it. Measured in ns per round trip.
    PingPong,
    /// [`PingPong`](Scene::PingPong), but each side waits by trying a compare-exchange in a loop.
    PingPongByExchange,
    /// One side alone arms and cancels a timer of the timer library. Measured in nanoseconds for an
    /// arming and a cancel together.
    OwnTimer,
    /// Both sides atomically add to one word. Measured in ns for each addition, by either side.
    Counter,
    /// All CPUs atomically add to one word. Measured in nanoseconds for each addition.
    CounterByAll,
    /// Both sides take a ticket lock and add to the word that it guards. Measured in nanoseconds
    /// for each time that the lock is held.
    TicketLock,
    /// All CPUs take a ticket lock and add to the word that it guards.
    TicketLockByAll,
    /// One side writes four words under a sequence lock about every microsecond; the other side
    /// reads them. Measured in nanoseconds for each read of all four.
    SeqLock,
    /// One side puts numbers into a ring buffer of 64, the other side takes them out. Measured in
    /// nanoseconds for each number.
    Queue,
    /// [`Queue`](Scene::Queue), but each number has a line of its own, and the lines follow each
    /// other in random order, so that a prefetcher cannot bring the next one.
    QueueApart,
    /// One side arms a timer of the timer library on its own CPU's base; the other side cancels it
    /// with a cancel that would wait for a running callback. Measured in nanoseconds for each
    /// cancel, including one reading of the clock.
    Cancel,
    /// Both sides read a device that takes a microsecond for each read. Measured in ns per read.
    ClockDirect,
    /// Both sides read the same device through the library's combined counter: one CPU's read of
    /// the device serves all that wait. Measured in nanoseconds for each value that a side gets.
    ClockCombined,
}

impl Scene {
    /// The scenes to whose measured times prices are fitted.
    pub const FITTED: [Scene; 5] = [
        Scene::Transfer,
        Scene::TransferAndAdd,
        Scene::TransferAhead,
        Scene::PingPong,
        Scene::OwnTimer,
    ];

    /// The scenes of two CPUs whose times are predicted by simulation, and not used by the fit.
    pub const PREDICTED: [Scene; 9] = [
        Scene::PingPongByExchange,
        Scene::Counter,
        Scene::TicketLock,
        Scene::SeqLock,
        Scene::Queue,
        Scene::QueueApart,
        Scene::Cancel,
        Scene::ClockDirect,
        Scene::ClockCombined,
    ];

    /// The scenes of all CPUs. Their times are predicted too, on machines with more than two CPUs.
    pub const CONTENDED: [Scene; 2] = [Scene::CounterByAll, Scene::TicketLockByAll];

    pub const fn sides(self, cpus: usize) -> usize {
        match self {
            Scene::CounterByAll | Scene::TicketLockByAll => cpus,
            _ => 2,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Scene::Transfer => "ping_pong.line",
            Scene::TransferAndAdd => "ping_pong.line_and_add",
            Scene::TransferAhead => "ping_pong.line_ahead",
            Scene::PingPong => "ping_pong.round_trip",
            Scene::PingPongByExchange => "ping_pong.by_exchange",
            Scene::OwnTimer => "own_timer.arm_and_cancel",
            Scene::Counter => "counter.addition",
            Scene::TicketLock => "ticket_lock.holding",
            Scene::CounterByAll => "counter.addition_by_all",
            Scene::TicketLockByAll => "ticket_lock.holding_by_all",
            Scene::SeqLock => "seqlock.read",
            Scene::Queue => "queue.item",
            Scene::QueueApart => "queue.item_apart",
            Scene::Cancel => "cancel.another_cpus_timer",
            Scene::ClockDirect => "clock.direct.value",
            Scene::ClockCombined => "clock.combined.value",
        }
    }

    /// Prepares one run of the scene: makes its words, and returns what each side calls.
    pub fn play<W: Backend>(self, sides: usize, rounds: u64) -> Play {
        // Scenes whose rounds take longer have fewer of them.
        match self {
            Scene::Transfer => primitives::transfer::<W>(rounds / 16),
            Scene::TransferAndAdd => primitives::transfer_and_add::<W>(rounds / 16),
            Scene::TransferAhead => primitives::transfer_ahead::<W>(rounds / 16),
            Scene::PingPong => primitives::ping_pong::<W>(rounds),
            Scene::PingPongByExchange => primitives::ping_pong_by_exchange::<W>(rounds),
            Scene::OwnTimer => library::own_timer::<W>(rounds),
            Scene::Counter | Scene::CounterByAll => primitives::counter::<W>(sides, rounds),
            Scene::TicketLock | Scene::TicketLockByAll => {
                primitives::ticket_lock::<W>(sides, rounds)
            }
            Scene::SeqLock => primitives::seq_lock::<W>(rounds),
            Scene::Queue => primitives::queue::<W>(rounds, SlotOrder::Ascending),
            Scene::QueueApart => primitives::queue::<W>(rounds, SlotOrder::Random),
            Scene::Cancel => library::cancel_across::<W>(rounds),
            Scene::ClockDirect => library::clock::<W>(ReadPolicy::Direct, rounds / 4),
            Scene::ClockCombined => library::clock::<W>(ReadPolicy::Combined, rounds / 4),
        }
    }
}

/// Starts all sides of a scene together. When the first side has finished, ends
/// [`repeat`](Gate::repeat) on the others, so that they do not run on without contention.
struct Gate<W: Backend> {
    ready: OwnLine<W::Word>,
    ended: OwnLine<W::Word>,
    sides: u64,
}

impl<W: Backend> Gate<W> {
    fn new(sides: usize) -> Gate<W> {
        Gate { ready: word::<W>(), ended: word::<W>(), sides: sides as u64 }
    }

    /// Waits until all sides have called it, so that they begin together.
    fn enter(&self) -> Ns {
        self.ready.add(1, Ordering::AcqRel);
        wait_for::<W, _>(|| (self.ready.load(Ordering::Acquire) >= self.sides).then_some(()));
        W::now()
    }

    /// Repeats `operation` `rounds` times, or until another side has finished, which it checks
    /// after every 16 operations.
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

    /// Runs `first` on side 0 and `second` on side 1, alternately. `first` gets the start time of
    /// the scene. Only the time of `second` is measured, and counted as `ops` operations each time.
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
