//! The library's protocols over the words of the simulated machine.
//!
//! The lock's bias, the wake-ups of drivers, the counts of users, the turns of futures and the
//! caches of free memory run the library's own code. The machine has no system calls and no
//! thread-locals, so [`Process`] stands in for the slots of threads, for futex(2) and for
//! membarrier(2), and [`Memory`] for the chunks of the arena, with the same interface. A CPU runs
//! two threads: a worker of the server, and the driver of the CPU's base.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Mutex;
use tickless::policy::protocols::{
    BarrierCost, Barriers, Bias, Byte, DriverBell, ThreadSlot, TryLock,
};
use tickless_core::platform::{Lock, Ordering, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns};
use tickless_machine::cpu;
use tickless_machine::device;
use tickless_machine::engine::{self, FiberId};
use tickless_machine::irq::{self, Masked, Vector};
use tickless_machine::platform::{self, GuardedLines, Held, Sim, SimLock, SimWord};
use tickless_machine::ps::Ps;
use tickless_machine::spec::Spec;

/// A value on cache lines of its own: a simulated line has 128 bytes of real addresses.
#[repr(align(128))]
pub struct Line<T>(pub T);

pub fn word(value: u64) -> SimWord {
    SimWord::new(value)
}

/// When a thread gets the bias of a lock: the right to take it without an atomic exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BiasRule {
    /// As on a system without membarrier(2).
    Never,
    /// A thread gets the bias after this many takes in a row, whatever losing the bias costs.
    Fixed(u64),
    /// The library's rule.
    ByCost,
}

/// What the threads of the simulated server share: a stand-in for thread-locals and system calls.
pub struct Process {
    cpus: Vec<Line<PerCpu>>,
    bells: Vec<Line<DriverBell<SimWord, SimWord>>>,
    barriers: BarrierCost<SimWord>,
    pub rule: Cell<BiasRule>,
    prices: Prices,
    pub membarriers: Cell<u64>,
    pub futexes: Cell<u64>,
}

struct PerCpu {
    slots: [Line<ThreadSlot<SimBarriers>>; 2],
    /// Which of the CPU's two threads have ever earned a bias. A thread without one needs no slot.
    has_slot: [Cell<bool>; 2],
    /// The fibers of the worker and of the driver.
    fibers: [Cell<Option<FiberId>>; 2],
    is_driving: Cell<bool>,
    /// The driver must run: its deadline has come, or another thread has woken it.
    is_called: Cell<bool>,
}

impl PerCpu {
    fn switch_to(&self, thread: usize) {
        if let Some(fiber) = self.fibers[thread].get() {
            engine::switch_to(fiber);
        }
    }
}

#[derive(Default)]
struct Prices {
    futex: Ps,
    membarrier: Ps,
    membarrier_cpu: Ps,
    switch: Ps,
    wake: Ps,
}

thread_local! {
    static PROCESS: RefCell<Option<Rc<Process>>> = const { RefCell::new(None) };
}

fn process() -> Rc<Process> {
    PROCESS.with_borrow(|process| {
        process.clone().unwrap_or_else(|| {
            // Outside of a simulation nothing costs time.
            Rc::new(Process::new(1, Prices::default()))
        })
    })
}

impl Process {
    fn new(cpus: u16, prices: Prices) -> Process {
        let cpu = |_| {
            Line(PerCpu {
                slots: [0, 1].map(|_| Line(ThreadSlot::new())),
                has_slot: Default::default(),
                fibers: Default::default(),
                is_driving: Cell::new(false),
                is_called: Cell::new(false),
            })
        };
        Process {
            cpus: (0..cpus).map(cpu).collect(),
            bells: (0..cpus).map(|_| Line(DriverBell::without_driver())).collect(),
            barriers: BarrierCost::of(word(0)),
            rule: Cell::new(BiasRule::Never),
            prices,
            membarriers: Cell::new(0),
            futexes: Cell::new(0),
        }
    }

    /// Makes the process of a server on the machine `spec`, for the calling simulator thread.
    pub fn start(spec: &Spec) -> Rc<Process> {
        let call = spec.time("os.syscall_ns");
        let prices = Prices {
            futex: call + spec.time("os.futex_ns"),
            membarrier: call + spec.time("os.membarrier_ns"),
            membarrier_cpu: spec.time("os.membarrier_cpu_ns"),
            switch: spec.time("os.switch_ns"),
            wake: spec.time("os.wake_ns"),
        };
        let process = Rc::new(Process::new(spec.costs().topology.cpus(), prices));
        PROCESS.set(Some(Rc::clone(&process)));
        process
    }

    pub fn end() {
        PROCESS.set(None);
    }

    fn here(&self) -> &PerCpu {
        &self.cpus[cpu::here().index() % self.cpus.len()].0
    }

    /// Returns the number of the running thread's slot, which records a lock held by its bias.
    fn thread(&self) -> u64 {
        let cpu = cpu::here().index() % self.cpus.len();
        2 * cpu as u64 + 1 + u64::from(self.here().is_driving.get())
    }

    /// Returns the slot with this name.
    fn slot(&self, name: u64) -> &ThreadSlot<SimBarriers> {
        let at = name as usize - 1;
        &self.cpus[at / 2].0.slots[at % 2].0
    }

    /// Marks a thread's slot as used, and returns the number of the slot.
    fn take_slot(&self, name: u64) -> u64 {
        self.has_slot(name).set(true);
        name
    }

    fn has_slot(&self, name: u64) -> &Cell<bool> {
        let at = name as usize - 1;
        &self.cpus[at / 2].0.has_slot[at % 2]
    }

    pub fn set_fibers(&self, cpu: CpuId, fibers: [FiberId; 2]) {
        for (place, fiber) in self.cpus[cpu.index()].0.fibers.iter().zip(fibers) {
            place.set(Some(fiber));
        }
    }

    /// Notes that the driver must run, because its timer expired or another CPU woke it.
    pub fn interrupted(&self, vector: Vector) {
        if matches!(vector, Vector::Timer | Vector::Look) {
            self.here().is_called.set(true);
        }
    }

    /// Switches from the worker to the driver, if an interrupt has called it.
    pub fn switch_to_driver(&self) {
        let here = self.here();
        if here.is_called.get() && !here.is_driving.get() {
            here.is_called.set(false);
            here.is_driving.set(true);
            cpu::charge(self.prices.wake + self.prices.switch);
            here.switch_to(1);
        }
    }

    /// The main loop of a driver thread, as in the library: `expire` fires the timers that are due.
    pub fn drive(&self, base: CpuId, expire: impl Fn()) {
        let bell = &self.bells[base.index()].0;
        bell.begin();
        while !engine::is_ending() {
            bell.quiet();
            expire();
            bell.sleep(|deadline| deadline, engine::is_ending, |_, _, until| self.sleep(until));
        }
        // The simulation is ending. The driver has nothing more to do, and lets the worker end.
        loop {
            self.switch_to_worker();
        }
    }

    /// Waits until a time: gives the CPU to the worker, unless the driver was woken before.
    fn sleep(&self, until: Ns) {
        self.futexes.set(self.futexes.get() + 1);
        cpu::charge(self.prices.futex);
        device::program(until);
        if !self.here().is_called.take() {
            self.switch_to_worker();
        }
    }

    /// Gives the CPU from the driver back to the worker.
    fn switch_to_worker(&self) {
        let here = self.here();
        here.is_driving.set(false);
        cpu::charge(self.prices.switch);
        here.switch_to(0);
    }
}

/// The library's barriers, as in `platform/lock.rs`.
pub struct SimBarriers;

impl Barriers for SimBarriers {
    type Word = SimWord;

    fn streak() -> u64 {
        let process = process();
        match process.rule.get() {
            BiasRule::Never => u64::MAX,
            BiasRule::Fixed(streak) => streak,
            BiasRule::ByCost => process.barriers.streak(),
        }
    }

    fn now() -> u64 {
        match process().rule.get() {
            // Every bias counts as paid.
            BiasRule::Fixed(_) => 0,
            _ => platform::now().0,
        }
    }

    fn light_barrier() {}

    fn heavy_barrier() {
        let process = process();
        let begun = cpu::clock();
        irq::barrier(process.prices.membarrier, process.prices.membarrier_cpu);
        process.membarriers.set(process.membarriers.get() + 1);
        process.barriers.record((cpu::clock() - begun).to_ns().0);
    }

    fn relax(round: u32) {
        Sim.relax(round);
    }
}

/// The library's lock of a base, with its bias. Locking also accesses the cache lines of the data.
/// A thread does not lose its CPU while it holds the lock.
pub struct BiasedLock<T> {
    bias: Line<Bias<SimBarriers>>,
    guarded: GuardedLines,
    /// This mutex is never contended, because only the holder of the biased lock locks it.
    data: Mutex<T>,
}

impl<T: Send> Lock<T> for BiasedLock<T> {
    type Guard<'a>
        = Held<'a, T, (Unlock<'a>, Masked)>
    where
        T: 'a;

    fn new(value: T) -> Self {
        let guarded = GuardedLines::default();
        BiasedLock { bias: Line(Bias::new()), guarded, data: Mutex::new(value) }
    }

    fn lock(&self) -> Self::Guard<'_> {
        let masked = irq::mask();
        let process = process();
        let (lock, me) = (std::ptr::from_ref(self).addr() as u64, process.thread());
        let bias = &self.bias.0;
        let has_slot = process.has_slot(me).get();
        let by_bias = has_slot && bias.enter(lock, me, process.slot(me));
        if !by_bias {
            let settle = || match process.rule.get() {
                BiasRule::Never => None,
                BiasRule::Fixed(_) => Some(process.take_slot(me)),
                BiasRule::ByCost if process.barriers.is_known() => Some(process.take_slot(me)),
                BiasRule::ByCost => {
                    SimBarriers::heavy_barrier();
                    None
                }
            };
            bias.take_mutex(lock, me, |owner| process.slot(owner), settle);
        }
        self.guarded.access::<T>();
        let unlock = Unlock { bias, by_bias: by_bias.then_some(me), process: Rc::clone(&process) };
        Held::new(&self.data, (unlock, masked))
    }

    fn is_wanted(&self) -> bool {
        self.bias.0.is_wanted()
    }

    fn yield_to_waiters(&self) {
        self.bias.0.yield_to_waiters();
    }
}

pub struct Unlock<'a> {
    bias: &'a Bias<SimBarriers>,
    by_bias: Option<u64>,
    process: Rc<Process>,
}

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        match self.by_bias {
            Some(me) => self.process.slot(me).leave(),
            None => self.bias.unlock_mutex(),
        }
    }
}

/// The library's host, on the simulated machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerHost;

// SAFETY: the words and parking are those of `Sim`. The lock excludes other threads: the library's
// protocol runs on a machine that is sequentially consistent, and the data is behind a mutex
// besides. `program` writes words, and neither unwinds nor uses the bases.
unsafe impl Platform for ServerHost {
    type Word = SimWord;
    type ParkingWord = SimWord;
    type Lock<T: Send> = BiasedLock<T>;
    type Task = u64;

    fn now(&self) -> Ns {
        platform::now()
    }

    fn here(&self) -> CpuId {
        cpu::here()
    }

    fn program(&self, cpu: CpuId, at: Ns) -> Rearm {
        process().bells[cpu.index()].0.set(at);
        Rearm::Kick(cpu)
    }

    fn kick(&self, cpu: CpuId) {
        let process = process();
        process.bells[cpu.index()].0.ring(|_| {
            process.futexes.set(process.futexes.get() + 1);
            cpu::charge(process.prices.futex);
            irq::send(cpu, Vector::Look);
        });
    }

    fn relax(&self, round: u32) {
        Sim.relax(round);
    }

    fn park(&self, word: &SimWord, value: u32) {
        Sim.park(word, value);
    }

    fn unpark(&self, _: &SimWord) {}
}

/// The turn of a future.
pub struct TurnByte(SimWord);

impl Byte for TurnByte {
    fn new(value: u8) -> Self {
        TurnByte(word(value.into()))
    }

    fn load(&self, order: Ordering) -> u8 {
        self.0.load(order) as u8
    }

    fn store(&self, value: u8, order: Ordering) {
        self.0.store(value.into(), order);
    }

    fn swap(&self, value: u8, order: Ordering) -> u8 {
        let mut current = self.load(order);
        while !self.replace(current, value, order, order) {
            current = self.load(order);
        }
        current
    }

    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool {
        self.0.compare_exchange(current.into(), new.into(), success, failure).is_ok()
    }
}

/// A stand-in for the library's arena. Each CPU has a cache of free slots, behind the library's
/// lock for which no thread waits. The caches exchange batches with a depot. A slot stands for a
/// cache line of memory: freeing the slot writes its word.
pub struct Memory {
    caches: Vec<Line<TryLock<Vec<Slot>, SimWord>>>,
    depot: SimLock<Vec<Vec<Slot>>>,
}

pub type Slot = Box<Line<SimWord>>;

const BATCH: usize = 64;

impl Memory {
    pub fn new(cpus: u16) -> Memory {
        let caches = (0..cpus).map(|_| Line(TryLock::new(Vec::new()))).collect();
        Memory { caches, depot: SimLock::new(Vec::new()) }
    }

    /// Takes a slot from this CPU's cache. Fills an empty cache from the depot or with new slots.
    pub fn take(&self) -> Slot {
        self.with_cache(|free| {
            let slot = free.pop().unwrap_or_else(|| {
                *free = self.depot.lock().pop().unwrap_or_default();
                if free.is_empty() {
                    free.extend((0..BATCH).map(|_| Box::new(Line(word(0)))));
                }
                free.pop().unwrap_or_else(|| Box::new(Line(word(0))))
            });
            slot.0.load(Ordering::Relaxed);
            slot
        })
    }

    /// Puts a slot into this CPU's cache. A cache of two batches first gives one to the depot.
    pub fn give_back(&self, slot: Slot) {
        self.with_cache(|free| {
            if free.len() >= 2 * BATCH {
                let batch = free.split_off(BATCH);
                self.depot.lock().push(batch);
            }
            slot.0.store(0, Ordering::Relaxed);
            free.push(slot);
        });
    }

    /// Locks this CPU's cache of free slots, or that of the next CPU whose cache is not locked.
    fn with_cache<R>(&self, body: impl FnOnce(&mut Vec<Slot>) -> R) -> R {
        // A thread does not lose its CPU here, so it always gets its own CPU's cache.
        let _masked = irq::mask();
        let mut round = cpu::here().index();
        loop {
            if let Some(mut free) = self.caches[round % self.caches.len()].0.try_lock() {
                return body(&mut free);
            }
            round += 1;
        }
    }
}
