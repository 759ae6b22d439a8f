//! The designs that the study compares. A lock's *bias* lets the thread that uses the lock most
//! take it without an atomic exchange. Three designs are the library's: with the bias, without it,
//! and with a rule that ignores what the bias costs. Three are those of other runtimes.
//!
//! | contender | design | as in |
//! |---|---|---|
//! | `ours` | a base for each CPU, its lock biased by what the bias costs | this library |
//! | `fixed` | the same, with the bias after 1,024 times in a row | this library before |
//! | `unbiased` | the same, without a bias | this library without membarrier(2) |
//! | `mutex` | one wheel behind one lock; a push-out is one compare-and-swap | tokio |
//! | `heaps` | a heap for each CPU; a stop marks the timer, which is removed later | Go |
//! | `shards` | a wheel for each CPU; a timer's number decides which | hashed wheels |
//!
//! All but `heaps` run the library's core, so that only the design differs. Locks of `mutex` and
//! `shards` are the library's without a bias. Their threads spin and never park, in their favour.

use super::words::{BiasRule, Line, Memory, ServerHost, Slot, TurnByte, word};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tickless::policy::protocols::{Turns, Users};
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::link::WheelLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::cpu;
use tickless_machine::platform::{SimLock, SimWord};
use tickless_machine::ps::Ps;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Ours,
    Fixed,
    Unbiased,
    Mutex,
    Heaps,
    Shards,
}

impl Contender {
    pub const ALL: [Contender; 6] = [
        Contender::Ours,
        Contender::Fixed,
        Contender::Unbiased,
        Contender::Mutex,
        Contender::Heaps,
        Contender::Shards,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Contender::Ours => "ours",
            Contender::Fixed => "fixed",
            Contender::Unbiased => "unbiased",
            Contender::Mutex => "mutex",
            Contender::Heaps => "heaps",
            Contender::Shards => "shards",
        }
    }

    /// Returns the rule by which a thread gets a lock's bias (it then needs no atomic exchange).
    pub fn rule(self) -> BiasRule {
        match self {
            Contender::Ours => BiasRule::ByCost,
            Contender::Fixed => BiasRule::Fixed(1_024),
            _ => BiasRule::Never,
        }
    }
}

/// What the server does with the timers of a connection.
pub trait Timers: 'static {
    /// The timers of a connection.
    type Connection;
    /// Makes the timers of a connection, and arms its idle timeout on a CPU.
    fn open(&self, number: u64, cpu: CpuId) -> Self::Connection;
    /// Arms the deadline of a request, as a future that is polled once.
    fn arm(&self, connection: &Self::Connection);
    /// Pushes the idle timeout out.
    fn push_out(&self, connection: &Self::Connection);
    /// Cancels the deadline.
    fn cancel(&self, connection: &Self::Connection);
    fn close(&self, connection: Self::Connection);
    /// Fires what is due on a base.
    fn expire(&self, base: CpuId);
    fn bases(&self) -> u16;
}

const DEADLINE: Ns = Ns::from_secs(1);
const IDLE: Ns = Ns::from_secs(60);

type Timer = OwnedTimer<ServerHost, WheelLink<SimWord>>;

pub struct WheelConnection {
    deadline: Timer,
    idle: Timer,
    turns: Line<Turns<TurnByte>>,
    base: Option<CpuId>,
    /// The memory of the two timers.
    slots: Option<[Slot; 2]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Here,
    Hashed,
}

/// What making and dropping a timer shares.
pub struct Counted {
    users: Users<SimWord>,
    memory: Memory,
}

impl Counted {
    pub fn new(cpus: u16) -> Counted {
        Counted { users: Users::new(cpus.into()), memory: Memory::new(cpus) }
    }
}

pub struct Wheels {
    bases: Arc<Bases<ServerHost>>,
    place: Place,
    counted: Option<Counted>,
}

impl Wheels {
    pub fn new(bases: u16, place: Place, counted: Option<Counted>) -> Wheels {
        let bases = Arc::new(Bases::new(ServerHost, bases, Settings::default()));
        Wheels { bases, place, counted }
    }

    fn start(&self, timer: &Timer, base: Option<CpuId>, after: Ns) {
        let now = tickless_machine::platform::now();
        let options = Options { pinned: base, ..Options::default() };
        // Arming fails only after a shut-down, and these timers end with their connection.
        let _ = timer.start(Window::at(now.after(after)), now, options);
    }
}

fn cpu() -> usize {
    cpu::here().index()
}

impl Timers for Wheels {
    type Connection = Box<WheelConnection>;

    fn open(&self, number: u64, cpu: CpuId) -> Self::Connection {
        let slots = self.counted.as_ref().map(|counted| {
            [0, 1].map(|_| {
                counted.users.add(|| cpu.index());
                counted.memory.take()
            })
        });
        let timer = || OwnedTimer::new(&self.bases, number);
        let shard = || CpuId((number % u64::from(self.bases())) as u16);
        let connection = WheelConnection {
            deadline: timer(),
            idle: timer(),
            turns: Line(Turns::new()),
            base: (self.place == Place::Hashed).then(shard),
            slots,
        };
        let first = connection.base.unwrap_or(CpuId(cpu.0 % self.bases()));
        self.start(&connection.idle, Some(first), IDLE);
        Box::new(connection)
    }

    fn arm(&self, connection: &Self::Connection) {
        connection.turns.0.reset();
        connection.turns.0.register(|| ());
        self.start(&connection.deadline, connection.base, DEADLINE);
    }

    fn push_out(&self, connection: &Self::Connection) {
        self.start(&connection.idle, connection.base, IDLE);
    }

    fn cancel(&self, connection: &Self::Connection) {
        connection.deadline.cancel();
    }

    fn close(&self, connection: Self::Connection) {
        let WheelConnection { deadline, idle, slots, .. } = *connection;
        drop((deadline, idle));
        let (Some(counted), Some(slots)) = (&self.counted, slots) else { return };
        for slot in slots {
            counted.memory.give_back(slot);
            // Ignore the result, whether this was the last user of a closed set: the set is open.
            let _ = counted.users.remove(cpu);
        }
    }

    fn expire(&self, base: CpuId) {
        self.bases.expire(base, |_| CallbackResult::Done);
    }

    fn bases(&self) -> u16 {
        self.bases.count() as u16
    }
}

/// A timer of the design `heaps`, with its lock word on a cache line of its own.
pub struct HeapTimer {
    lock: Line<SimWord>,
    heap: Cell<Option<usize>>,
    is_stopped: Cell<bool>,
}

/// The heap of one CPU's timers. It is not sorted, because no timer comes due in a run: only the
/// costs of the operations are simulated.
struct Heap {
    lock: SimLock<()>,
    timers: RefCell<Vec<Rc<HeapTimer>>>,
    words: Line<HeapWords>,
}

struct HeapWords {
    stopped: SimWord,
    earliest_change: SimWord,
}

pub struct Heaps(Vec<Heap>);

/// The time in which `clean_up` checks one timer.
const CHECK: Ps = Ps::from_ns(Ns(5));

impl Heaps {
    pub fn new(cpus: u16) -> Heaps {
        let words = || Line(HeapWords { stopped: word(0), earliest_change: word(u64::MAX) });
        let heap = |_| Heap { lock: SimLock::new(()), timers: RefCell::default(), words: words() };
        Heaps((0..cpus).map(heap).collect())
    }

    /// Locks a timer and calls `change`. Returns the result: whether the timer must enter a heap.
    fn modify(timer: &Rc<HeapTimer>, change: impl FnOnce() -> bool) -> bool {
        let (lock, order) = (&timer.lock.0, Ordering::Relaxed);
        while lock.compare_exchange(0, 1, order, order).is_err() {
            cpu::charge(Ps::from_ns(Ns(20)));
        }
        let must_add = change();
        lock.store(0, order);
        must_add
    }

    fn start(&self, timer: &Rc<HeapTimer>, cpu: usize) {
        let must_add = Heaps::modify(timer, || match timer.heap.get() {
            None => true,
            Some(heap) => {
                let words = &self.0[heap].words.0;
                if timer.is_stopped.take() {
                    words.stopped.fetch_add(u64::MAX);
                }
                // Every new time is later than those of earlier timers, so this word is only read.
                words.earliest_change.load(Ordering::Relaxed);
                false
            }
        });
        if must_add {
            let heap = &self.0[cpu];
            let _lock = heap.lock.lock();
            timer.heap.set(Some(cpu));
            heap.timers.borrow_mut().push(Rc::clone(timer));
        }
    }

    fn stop(&self, timer: &Rc<HeapTimer>) {
        Heaps::modify(timer, || {
            if let Some(heap) = timer.heap.get()
                && !timer.is_stopped.replace(true)
            {
                self.0[heap].words.0.stopped.fetch_add(1);
            }
            false
        });
        self.clean_up();
    }

    /// Removes the stopped timers of this CPU's heap if they are more than a quarter of the heap's
    /// timers. Go's scheduler does that at its next turn.
    fn clean_up(&self) {
        let heap = &self.0[cpu()];
        let stopped = heap.words.0.stopped.load(Ordering::Relaxed);
        if stopped <= heap.timers.borrow().len() as u64 / 4 {
            return;
        }
        let _lock = heap.lock.lock();
        let timers = heap.timers.take();
        let keeps = |timer: &Rc<HeapTimer>| {
            cpu::charge(CHECK);
            timer.lock.0.load(Ordering::Relaxed);
            let is_stopped = timer.is_stopped.get();
            if is_stopped {
                Heaps::modify(timer, || {
                    timer.heap.set(None);
                    timer.is_stopped.set(false);
                    false
                });
                heap.words.0.stopped.fetch_add(u64::MAX);
            }
            !is_stopped
        };
        let kept: Vec<_> = timers.into_iter().filter(keeps).collect();
        heap.timers.borrow_mut().extend(kept);
    }
}

impl Timers for Heaps {
    type Connection = [Rc<HeapTimer>; 2];

    fn open(&self, _: u64, cpu: CpuId) -> Self::Connection {
        let [deadline, idle] = [0, 1].map(|_| {
            let (heap, is_stopped) = (Cell::new(None), Cell::new(false));
            Rc::new(HeapTimer { lock: Line(word(0)), heap, is_stopped })
        });
        self.start(&idle, cpu.index());
        [deadline, idle]
    }

    fn arm(&self, [deadline, _]: &Self::Connection) {
        self.start(deadline, cpu());
    }

    fn push_out(&self, [_, idle]: &Self::Connection) {
        self.start(idle, cpu());
    }

    fn cancel(&self, [deadline, _]: &Self::Connection) {
        self.stop(deadline);
    }

    fn close(&self, connection: Self::Connection) {
        connection.iter().for_each(|timer| self.stop(timer));
    }

    fn expire(&self, _: CpuId) {}

    fn bases(&self) -> u16 {
        self.0.len() as u16
    }
}
