//! Scenes of the timer core's own code: bases over the world's words, and the combined counter.

use super::primitives::{TicketLock, wait_for};
use super::{Gate, Line, Played, Scene, World};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tickless_clock::combined::{Combined, ReadPolicy};
use tickless_clock::counter::{Counter, Hertz, Rating, Width};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::{Lock, Ordering, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns, Window};

/// The timer core on a world's words, with a ticket lock for each base and without devices.
#[derive(Debug)]
pub(super) struct Stage<W: World>(W);

// SAFETY: the worlds' words are atomic words and their locks exclude, simulated or not; nothing
// in here unwinds or uses the bases.
unsafe impl<W: World> Platform for Stage<W> {
    type Word = W::Word;
    type Lock<T: Send> = Guarded<W, T>;
    type Task = u64;

    fn now(&self) -> Ns {
        self.0.now()
    }

    fn here(&self) -> CpuId {
        CpuId(self.0.side() as u16)
    }

    fn program(&self, _: CpuId, _: Ns) -> Rearm {
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, round: u32) {
        self.0.relax(round);
    }

    fn park(&self, _: &W::Word, _: u64) {
        self.0.relax(0);
    }

    fn unpark(&self, _: &W::Word) {}
}

/// What a ticket lock guards, on a line of its own.
#[derive(Debug)]
pub(super) struct Guarded<W: World, T> {
    world: W,
    lock: Line<TicketLock<W>>,
    guarded: Line<W::Word>,
    /// Never waited for: the tickets see to that.
    data: Mutex<T>,
}

impl<W: World, T: Send> Lock<T> for Guarded<W, T> {
    type Guard<'a>
        = Guard<'a, W, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        let (lock, guarded) = (Line(TicketLock::new()), Line(W::Word::new(0)));
        Guarded { world: W::default(), lock, guarded, data: Mutex::new(value) }
    }

    fn lock(&self) -> Guard<'_, W, T> {
        let ticket = self.lock.0.lock(&self.world);
        let count = self.guarded.0.load(Ordering::Relaxed);
        self.guarded.0.store(count + 1, Ordering::Relaxed);
        self.world.section();
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { data: Some(data), lock: &self.lock.0, ticket }
    }
}

/// The right to use it.
#[derive(Debug)]
pub(super) struct Guard<'a, W: World, T> {
    /// `None` only while it is dropped.
    data: Option<MutexGuard<'a, T>>,
    lock: &'a TicketLock<W>,
    ticket: u64,
}

impl<W: World, T> Drop for Guard<'_, W, T> {
    fn drop(&mut self) {
        self.data = None;
        self.lock.unlock(self.ticket);
    }
}

impl<W: World, T> Deref for Guard<'_, W, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Some(data) = &self.data else { unreachable!("only while it is dropped") };
        data
    }
}

impl<W: World, T> DerefMut for Guard<'_, W, T> {
    fn deref_mut(&mut self) -> &mut T {
        let Some(data) = &mut self.data else { unreachable!("only while it is dropped") };
        data
    }
}

type Timer<W> = OwnedTimer<Stage<W>, QueueLink>;

/// So far ahead that nothing fires.
const FAR: Ns = Ns::from_secs(3_600);

fn two_bases<W: World>(world: &W) -> Arc<Bases<Stage<W>>> {
    Arc::new(Bases::new(Stage(world.clone()), 2, Settings::default()))
}

fn arm<W: World>(timer: &Timer<W>, now: Ns) {
    let due = now.after(FAR);
    // Nobody shuts it down.
    let _ = timer.start(Window::new(due, due), now, Options::default());
}

/// One side alone arms and cancels a timer on its own base.
pub(super) struct OwnTimer<W: World> {
    gate: Gate<W>,
    timer: Timer<W>,
    rounds: u64,
}

impl<W: World> OwnTimer<W> {
    pub(super) fn new(world: &W, rounds: u64) -> OwnTimer<W> {
        let timer = OwnedTimer::new(&two_bases(world), 0);
        OwnTimer { gate: Gate::new(), timer, rounds }
    }
}

impl<W: World> Scene<W> for OwnTimer<W> {
    fn play(&self, world: &W) -> Played {
        if world.side() == 1 {
            self.gate.enter(world);
            return Played::default();
        }
        let now = world.now();
        self.gate.repeat(world, self.rounds, || {
            arm(&self.timer, now);
            self.timer.cancel_sync();
        })
    }
}

/// One side arms a timer on its base, the other cancels it; they take turns.
pub(super) struct CancelAcross<W: World> {
    gate: Gate<W>,
    turn: Line<W::Word>,
    timer: Timer<W>,
    rounds: u64,
}

impl<W: World> CancelAcross<W> {
    pub(super) fn new(world: &W, rounds: u64) -> CancelAcross<W> {
        let timer = OwnedTimer::new(&two_bases(world), 0);
        CancelAcross { gate: Gate::new(), turn: Line(W::Word::new(0)), timer, rounds }
    }
}

impl<W: World> Scene<W> for CancelAcross<W> {
    fn play(&self, world: &W) -> Played {
        let now = self.gate.enter(world);
        let mut ns = 0;
        for round in 0..self.rounds {
            let turn = 2 * round + world.side() as u64;
            wait_for(world, || (self.turn.0.load(Ordering::Acquire) == turn).then_some(()));
            if world.side() == 0 {
                arm(&self.timer, now);
            } else {
                let begun = world.now();
                self.timer.cancel_sync();
                ns += world.now().since(begun).0;
            }
            self.turn.0.store(turn + 1, Ordering::Release);
        }
        Played { ops: self.rounds * world.side() as u64, ns: ns as f64 }
    }
}

/// A device that serves one reading at a time and takes a microsecond over each: a reading books
/// the first one that is free, and waits until that is over.
struct Emulated<W: World> {
    world: W,
    free_at: Line<W::Word>,
}

/// How long one reading takes.
const READING: Ns = Ns(1_000);

impl<W: World> Counter for Emulated<W> {
    fn read(&self) -> u64 {
        let asked = self.world.now();
        let mut free_at = self.free_at.0.load(Ordering::Relaxed);
        let done = loop {
            let done = Ns(free_at).max(asked).after(READING);
            let order = Ordering::Relaxed;
            match self.free_at.0.compare_exchange(free_at, done.0, order, order) {
                Ok(_) => break done,
                Err(other) => free_at = other,
            }
        };
        self.world.work(done.since(self.world.now()));
        done.0
    }

    fn width(&self) -> Width {
        Width::FULL
    }

    fn frequency(&self) -> Hertz {
        Hertz::NANOSECONDS
    }

    fn rating(&self) -> Rating {
        Rating::SLOW
    }

    fn name(&self) -> &str {
        "emulated, 1 us a reading, one at a time"
    }
}

fn relax<W: World>(round: u32) {
    W::default().relax(round);
}

/// Both sides read a slow device.
pub(super) struct Clock<W: World> {
    gate: Gate<W>,
    clock: Combined<W::Word, Emulated<W>, fn(u32)>,
    rounds: u64,
}

impl<W: World> Clock<W> {
    pub(super) fn new(world: &W, policy: ReadPolicy, rounds: u64) -> Clock<W> {
        let device = Emulated { world: world.clone(), free_at: Line(W::Word::new(0)) };
        let clock = Combined::new(device, relax::<W> as fn(u32)).with_policy(policy);
        Clock { gate: Gate::new(), clock, rounds }
    }
}

impl<W: World> Scene<W> for Clock<W> {
    fn play(&self, world: &W) -> Played {
        self.gate.repeat(world, self.rounds, || {
            std::hint::black_box(self.clock.read());
        })
    }
}
