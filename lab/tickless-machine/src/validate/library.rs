//! Scenes that run the timer library's own code on simulated or real CPUs: arming and cancelling
//! timers, and reading a clock that several CPUs share.

use super::primitives::{Ticket, TicketLock};
use super::{Backend, Gate, Play, SideResult, word};
use crate::platform::Held;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::clock::combined::{Combined, ReadPolicy};
use tickless_core::clock::counter::Counter;
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::platform::{Lock, Ordering, OwnLine, Platform, Word};
use tickless_core::rearm::Rearm;
use tickless_core::time::{CpuId, Ns, Window};

/// The timer library's platform in a scene, on simulated or real CPUs. Each base has a ticket lock.
/// There is no timer device, so no timer fires.
#[derive(Debug)]
struct ScenePlatform<W>(PhantomData<W>);

// SAFETY: the words of both backends are atomic and their locks are exclusive, simulated or not. No
// function of this platform unwinds or calls the timer library.
unsafe impl<W: Backend> Platform for ScenePlatform<W> {
    type Word = W::Word;
    type ParkingWord = W::Word;
    type Lock<T: Send> = Guarded<W, T>;
    type Task = u64;

    fn now(&self) -> Ns {
        W::now()
    }

    fn here(&self) -> CpuId {
        CpuId(W::side() as u16)
    }

    fn program(&self, _: CpuId, _: Ns) -> Rearm {
        Rearm::Keep
    }

    fn kick(&self, _: CpuId) {}

    fn relax(&self, round: u32) {
        W::relax(round);
    }

    fn park(&self, _: &W::Word, _: u32) {
        W::relax(0);
    }

    fn unpark(&self, _: &W::Word) {}
}

/// A ticket lock on one cache line, and the data that it guards on others.
#[derive(Debug)]
struct Guarded<W: Backend, T> {
    lock: OwnLine<TicketLock<W>>,
    guarded: W::Guarded,
    /// This mutex is never contended, because only the holder of the ticket lock locks it.
    data: Mutex<T>,
}

impl<W: Backend, T: Send> Lock<T> for Guarded<W, T> {
    type Guard<'a>
        = Held<'a, T, Ticket<'a, W>>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Guarded {
            lock: OwnLine(TicketLock::new()),
            guarded: W::Guarded::default(),
            data: Mutex::new(value),
        }
    }

    fn lock(&self) -> Self::Guard<'_> {
        let ticket = self.lock.lock();
        W::section::<T>(&self.guarded);
        Held::new(&self.data, ticket)
    }
}

type Timer<W> = OwnedTimer<ScenePlatform<W>, QueueLink>;

fn timer<W: Backend>() -> Timer<W> {
    let platform = ScenePlatform(PhantomData);
    OwnedTimer::new(&Arc::new(Bases::new(platform, 2, Settings::default())), 0)
}

fn arm<W: Backend>(timer: &Timer<W>, now: Ns) {
    let due = now.after(Ns::from_secs(3_600));
    // Arming fails only after the timer was shut down, which no scene does.
    let _ = timer.start(Window::at(due), now, Options::default());
}

pub(super) fn own_timer<W: Backend>(rounds: u64) -> Play {
    let (gate, timer) = (Gate::<W>::new(2), timer::<W>());
    Arc::new(move || {
        if W::side() == 1 {
            gate.enter();
            return SideResult::default();
        }
        let now = W::now();
        gate.repeat(rounds, || {
            arm(&timer, now);
            timer.cancel_sync();
        })
    })
}

/// One side arms a timer, the other one cancels it.
pub(super) fn cancel_across<W: Backend>(rounds: u64) -> Play {
    let (gate, turn, timer) = (Gate::<W>::new(2), word::<W>(), timer::<W>());
    Arc::new(move || {
        let cancel = || _ = timer.cancel_sync();
        gate.take_turns(&turn, rounds, 1, |now| arm(&timer, now), cancel)
    })
}

/// Emulates a slow time counter, which serves one read at a time and takes a microsecond for each:
/// a reader reserves the next free microsecond of the device, and waits until it has passed.
struct EmulatedDevice<W: Backend> {
    free_at: OwnLine<W::Word>,
}

const READ: Ns = Ns(1_000);

impl<W: Backend> Counter for EmulatedDevice<W> {
    fn read(&self) -> u64 {
        let asked = W::now();
        let mut free_at = self.free_at.load(Ordering::Relaxed);
        let done = loop {
            let done = Ns(free_at).max(asked).after(READ);
            let order = Ordering::Relaxed;
            match self.free_at.compare_exchange(free_at, done.0, order, order) {
                Ok(_) => break done,
                Err(other) => free_at = other,
            }
        };
        W::work(done.since(W::now()));
        done.0
    }

    fn bits(&self) -> u32 {
        64
    }
}

/// Both sides read one slow counter, directly or combined.
pub(super) fn clock<W: Backend>(policy: ReadPolicy, rounds: u64) -> Play {
    let device = EmulatedDevice::<W> { free_at: word::<W>() };
    let clock: Combined<W::Word, _, fn(u32)> =
        Combined::new(device, W::relax as fn(u32)).with_policy(policy);
    let gate = Gate::<W>::new(2);
    Arc::new(move || gate.repeat(rounds, || _ = black_box(clock.read())))
}
