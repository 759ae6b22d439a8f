//! The protocol of the library's biased lock, compiled from its file over the checkers' words. Both
//! barriers are full fences here. In the library the owner's is a compiler fence, and the other
//! side makes every thread execute a full fence by a system call, which has the same effect.
//!
//! [`Weakened`] leaves out one part of the protocol, to check that each part is needed.

#[path = "../../../tickless/src/platform/bias.rs"]
mod bias;

use super::diagram::{Findings, Log};
use super::exploring::Depth;
use super::stage::{CPU0, CPU1};
use crate::checker::{self, CheckedLock, CheckedWord, fence, go_to, spawn, yield_now};
use bias::{Barriers, Bias, ThreadSlot};
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};

const RELAXED: Ordering = Ordering::Relaxed;

/// No part is left out.
const NOTHING: u8 = 0;
/// Without the barrier of a thread that takes the bias away.
const HEAVY_BARRIER: u8 = 1;
/// Without the barrier between the owner's store and its load.
const LIGHT_BARRIER: u8 = 2;
/// Without the release when the owner leaves or the mutex is given back.
const LEAVING: u8 = 3;
/// Without the release when the owner enters.
const ENTERING: u8 = 4;
/// Without the acquire when a thread waits for the owner or takes the mutex.
const TAKING: u8 = 5;

/// The protocol's environment, with one part left out.
struct Weakened<const PART: u8>;

/// A word of it.
struct WeakWord<const PART: u8>(CheckedWord);

impl<const PART: u8> Word for WeakWord<PART> {
    fn new(value: u64) -> Self {
        WeakWord(CheckedWord::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(if PART == TAKING { RELAXED } else { order })
    }

    fn store(&self, value: u64, order: Ordering) {
        let is_weak = PART == if value == 0 { LEAVING } else { ENTERING };
        self.0.store(value, if is_weak { RELAXED } else { order });
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let success = if PART == TAKING { RELAXED } else { success };
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl<const PART: u8> Barriers for Weakened<PART> {
    type Word = WeakWord<PART>;
    const STREAK: u64 = 1;

    fn light_barrier() {
        if PART != LIGHT_BARRIER {
            fence();
        }
    }

    fn heavy_barrier() {
        if PART != HEAVY_BARRIER {
            fence();
        }
    }

    fn relax(_: u32) {
        yield_now();
    }
}

/// Two locks with what they guard, and two threads' slots. Both are numbered from 1.
struct Scene<const PART: u8> {
    locks: [Guarded<PART>; 2],
    slots: [ThreadSlot<Weakened<PART>>; 2],
    /// The slot that an ended thread has left.
    free: CheckedLock<Option<usize>>,
    broken: CheckedWord,
    log: Log,
}

struct Guarded<const PART: u8> {
    bias: Bias<Weakened<PART>>,
    /// The thread in the critical section, and how often one was; both with Relaxed ordering.
    busy: CheckedWord,
    count: CheckedWord,
}

impl<const PART: u8> Scene<PART> {
    fn new(log: &Log) -> Arc<Self> {
        let lock = |_| {
            let word = || CheckedWord::new(0);
            Guarded { bias: Bias::new(), busy: word(), count: word() }
        };
        Arc::new(Scene {
            locks: [0, 1].map(lock),
            slots: [0, 1].map(|_| ThreadSlot::new()),
            free: CheckedLock::new(None),
            broken: CheckedWord::new(0),
            log: log.clone(),
        })
    }

    /// A thread with this slot takes and gives back a lock; it becomes the owner if the lock offers
    /// that.
    fn uses(&self, thread: usize, lock: usize) {
        let (name, slot) = (lock as u64 + 1, &self.slots[thread]);
        let (me, guarded) = (thread as u64 + 1, &self.locks[lock]);
        let by_bias = guarded.bias.enter(name, me, slot);
        if !by_bias {
            let slot_of = |owner: u64| &self.slots[owner as usize - 1];
            guarded.bias.take_mutex(name, me, slot_of, || Some(me));
        }
        let way = if by_bias { "its bias" } else { "the mutex" };
        self.log.add(thread, format!("goes into {name} by {way}"));
        guarded.busy.store(me, RELAXED);
        let count = guarded.count.load(RELAXED);
        yield_now();
        guarded.count.store(count + 1, RELAXED);
        if guarded.busy.load(RELAXED) != me {
            self.broken.store(1, RELAXED);
        }
        self.log.add(thread, format!("leaves {name}"));
        if by_bias {
            slot.leave();
        } else {
            guarded.bias.unlock_mutex();
        }
    }

    /// Makes a thread the owner of a lock.
    fn make_owner(&self, thread: usize, lock: usize) {
        (0..2).for_each(|_| self.uses(thread, lock));
    }

    fn is_broken(&self, counts: [u64; 2]) -> bool {
        let seen = [0, 1].map(|lock| self.locks[lock].count.load(RELAXED));
        self.broken.load(RELAXED) != 0 || seen != counts
    }
}

/// The owner of two locks uses one after the other while its bias to the first is taken away.
fn two_locks<const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<PART>::new(log);
    scene.make_owner(0, 0);
    scene.make_owner(0, 1);
    let other = Arc::clone(&scene);
    let visitor = spawn(CPU1, move || other.uses(1, 0));
    go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 1);
    visitor.join();
    scene.is_broken([4, 3])
}

/// The owner and another thread take a lock twice each; the other one may become the owner.
fn one_lock<const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<PART>::new(log);
    scene.make_owner(0, 0);
    let other = Arc::clone(&scene);
    let visitor = spawn(CPU1, move || {
        other.uses(1, 0);
        other.uses(1, 0);
    });
    go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 0);
    visitor.join();
    scene.is_broken([6, 0])
}

/// Two threads own a lock each, and each takes the other's bias away.
fn from_both_sides<const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<PART>::new(log);
    scene.make_owner(0, 0);
    scene.make_owner(1, 1);
    let other = Arc::clone(&scene);
    let second = spawn(CPU1, move || {
        other.uses(1, 1);
        other.uses(1, 0);
    });
    go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 1);
    second.join();
    scene.is_broken([4, 4])
}

/// A thread that owns a lock ends, and its slot is reused by another thread, which enters by that
/// bias while a third thread takes it away.
fn handed_over<const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<PART>::new(log);
    scene.make_owner(0, 0);
    let [ending, next] = [0, 1].map(|_| Arc::clone(&scene));
    let first = spawn(CPU0, move || {
        ending.uses(0, 0);
        *ending.free.lock() = Some(0);
    });
    let heir = spawn(CPU0, move || {
        let free = next.free.lock().take();
        if let Some(slot) = free {
            next.uses(slot, 0);
        }
    });
    go_to(CPU1);
    scene.uses(1, 0);
    first.join();
    heir.join();
    let entered = u64::from(scene.free.lock().is_none());
    scene.is_broken([4 + entered, 0])
}

type Story = fn(&Log) -> bool;

/// Returns all stories, with this part left out.
fn stories<const PART: u8>() -> [(&'static str, Story); 4] {
    [
        ("two locks", two_locks::<PART>),
        ("one lock", one_lock::<PART>),
        ("from both sides", from_both_sides::<PART>),
        ("handed over", handed_over::<PART>),
    ]
}

fn explore<const PART: u8>(story: (&str, Story), depth: Depth) -> u64 {
    let findings = Findings::default();
    let (found, (name, story)) = (findings.clone(), story);
    checker::explore(depth, move || {
        let log = Log::default();
        let broken = story(&log);
        found.add(&log, broken);
    });
    println!("biased lock, {name}, part {PART} left out: {findings} under {}", checker::NAME);
    findings.broken()
}

/// Goal: in every schedule one thread at a time is inside, and sees what the previous one did.
#[test]
fn excludes() {
    for story in stories::<NOTHING>() {
        assert_eq!(explore::<NOTHING>(story, Depth::usual()), 0, "{}", story.0);
    }
}

/// Goal: each part of the protocol is needed. Not under shuttle, which does not check orderings.
#[test]
fn every_part_is_needed() {
    if checker::IS_RANDOM {
        return;
    }
    fn fails<const PART: u8>() {
        let enough = Depth { preemptions: 2, schedules: 2_000 };
        let breaks = |story| explore::<PART>(story, enough) > 0;
        assert!(stories::<PART>().into_iter().any(breaks), "part {PART} can be left out");
    }
    fails::<HEAVY_BARRIER>();
    fails::<LIGHT_BARRIER>();
    fails::<LEAVING>();
    fails::<ENTERING>();
    fails::<TAKING>();
}
