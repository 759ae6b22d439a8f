//! The protocol of the host's biased lock, as it ships: the file itself, over the checkers' words.
//! Both sides have a full fence here; on the host the owner's has none, and the other side makes
//! every thread pass one by a system call, which comes to the same.
//!
//! To see each part fail, a world may weaken it: its words, or one of its barriers.

#[path = "../../../tickless/src/platform/bias.rs"]
mod bias;

use super::Checked;
use super::checker::{Checker, Depth};
use super::diagram::{Findings, Log};
use super::stage::{CPU0, CPU1};
use bias::{Barriers, Bias, ThreadSlot};
use std::marker::PhantomData;
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};

const RELAXED: Ordering = Ordering::Relaxed;

/// What a world weakens.
const NOTHING: u8 = 0;
/// Nobody passes a barrier when the bias is taken away.
const HEAVY_BARRIER: u8 = 1;
/// The owner's store may stay behind its load.
const LIGHT_BARRIER: u8 = 2;
/// Leaving orders nothing: neither the owner's way out nor the mutex's.
const LEAVING: u8 = 3;
/// Going in by the bias does not order what was done under another lock before.
const ENTERING: u8 = 4;
/// Waiting for the owner, and taking the mutex, order nothing.
const TAKING: u8 = 5;

/// A checker's world, with one part weakened.
struct Weakened<C, const PART: u8>(PhantomData<C>);

/// A word of it.
struct WeakWord<C: Checker, const PART: u8>(C::Word);

impl<C: Checker, const PART: u8> Word for WeakWord<C, PART> {
    fn new(value: u64) -> Self {
        WeakWord(C::Word::new(value))
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

impl<C: Checker, const PART: u8> Barriers for Weakened<C, PART> {
    type Word = WeakWord<C, PART>;
    const STREAK: u64 = 1;

    fn light_barrier() {
        if PART != LIGHT_BARRIER {
            C::fence();
        }
    }

    fn heavy_barrier() {
        if PART != HEAVY_BARRIER {
            C::fence();
        }
    }

    fn relax(_: u32) {
        C::yield_now();
    }
}

/// Two locks with what they guard, and two threads' slots. All go by their place, from 1.
struct Scene<C: Checker, const PART: u8> {
    locks: [Guarded<C, PART>; 2],
    slots: [ThreadSlot<Weakened<C, PART>>; 2],
    /// The slot that is nobody's, if one is.
    free: C::Lock<Option<usize>>,
    broken: C::Word,
    log: Log,
}

struct Guarded<C: Checker, const PART: u8> {
    bias: Bias<Weakened<C, PART>>,
    /// Who is in the critical section, and how often somebody was: no orderings of their own.
    busy: C::Word,
    count: C::Word,
}

impl<C: Checker, const PART: u8> Scene<C, PART> {
    fn new(log: &Log) -> Arc<Self> {
        let lock = |_| {
            let word = || C::Word::new(0);
            Guarded { bias: Bias::new(), busy: word(), count: word() }
        };
        Arc::new(Scene {
            locks: [0, 1].map(lock),
            slots: [0, 1].map(|_| ThreadSlot::new()),
            free: C::Lock::new(None),
            broken: C::Word::new(0),
            log: log.clone(),
        })
    }

    /// A thread with this slot takes a lock, does something, and gives it back; it becomes the
    /// owner if the lock offers that.
    fn uses(&self, thread: usize, lock: usize) {
        let (name, slot) = (lock as u64 + 1, &self.slots[thread]);
        let (me, guarded) = (thread as u64 + 1, &self.locks[lock]);
        let by_bias = guarded.bias.enter(name, me, slot);
        if !by_bias {
            let slot_of = |owner: u64| &self.slots[owner as usize - 1];
            guarded.bias.take_mutex(name, me, slot_of, || Some(me));
        }
        let way = if by_bias { "its bias" } else { "the mutex" };
        self.log.says(thread, format!("goes into {name} by {way}"));
        guarded.busy.store(me, RELAXED);
        let count = guarded.count.load(RELAXED);
        C::yield_now();
        guarded.count.store(count + 1, RELAXED);
        if guarded.busy.load(RELAXED) != me {
            self.broken.store(1, RELAXED);
        }
        self.log.says(thread, format!("leaves {name}"));
        if by_bias {
            slot.leave();
        } else {
            guarded.bias.unlock_mutex();
        }
    }

    /// Has a thread own a lock.
    fn has_own(&self, thread: usize, lock: usize) {
        (0..2).for_each(|_| self.uses(thread, lock));
    }

    fn is_broken(&self, counts: [u64; 2]) -> bool {
        let seen = [0, 1].map(|lock| self.locks[lock].count.load(RELAXED));
        self.broken.load(RELAXED) != 0 || seen != counts
    }
}

/// One owner of two locks goes from the one to the other while its bias to the first is taken away.
fn two_locks<C: Checker, const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<C, PART>::new(log);
    scene.has_own(0, 0);
    scene.has_own(0, 1);
    let other = Arc::clone(&scene);
    let visitor = C::spawn(CPU1, move || other.uses(1, 0));
    C::go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 1);
    C::join(visitor);
    scene.is_broken([4, 3])
}

/// The owner comes twice while another thread comes in between, and may become the owner.
fn one_lock<C: Checker, const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<C, PART>::new(log);
    scene.has_own(0, 0);
    let other = Arc::clone(&scene);
    let visitor = C::spawn(CPU1, move || {
        other.uses(1, 0);
        other.uses(1, 0);
    });
    C::go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 0);
    C::join(visitor);
    scene.is_broken([6, 0])
}

/// Each of two threads owns a lock and takes the other's away.
fn from_both_sides<C: Checker, const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<C, PART>::new(log);
    scene.has_own(0, 0);
    scene.has_own(1, 1);
    let other = Arc::clone(&scene);
    let second = C::spawn(CPU1, move || {
        other.uses(1, 1);
        other.uses(1, 0);
    });
    C::go_to(CPU0);
    scene.uses(0, 0);
    scene.uses(0, 1);
    C::join(second);
    scene.is_broken([4, 4])
}

/// A thread that owns a lock ends and leaves its slot to another, which goes in by that bias while
/// a third takes it away.
fn handed_over<C: Checker, const PART: u8>(log: &Log) -> bool {
    let scene = Scene::<C, PART>::new(log);
    scene.has_own(0, 0);
    let [ending, next] = [0, 1].map(|_| Arc::clone(&scene));
    let first = C::spawn(CPU0, move || {
        ending.uses(0, 0);
        *ending.free.lock() = Some(0);
    });
    let heir = C::spawn(CPU0, move || {
        let free = next.free.lock().take();
        if let Some(slot) = free {
            next.uses(slot, 0);
        }
    });
    C::go_to(CPU1);
    scene.uses(1, 0);
    C::join(first);
    C::join(heir);
    let came = u64::from(scene.free.lock().is_none());
    scene.is_broken([4 + came, 0])
}

type Story = fn(&Log) -> bool;

/// All stories in a world where this part is weakened.
fn stories<const PART: u8>() -> [(&'static str, Story); 4] {
    [
        ("two locks", two_locks::<Checked, PART>),
        ("one lock", one_lock::<Checked, PART>),
        ("from both sides", from_both_sides::<Checked, PART>),
        ("handed over", handed_over::<Checked, PART>),
    ]
}

fn explore<const PART: u8>(story: (&str, Story), depth: Depth) -> u64 {
    let findings = Findings::default();
    let (found, (name, story)) = (findings.clone(), story);
    Checked::explore(depth, move || {
        let log = Log::default();
        let broken = story(&log);
        found.add(&log, broken);
    });
    println!("biased lock, {name}, {PART} weakened: {findings} under {}", Checked::NAME);
    findings.broken()
}

/// Goal: one thread is inside at a time and sees what the last one did, in every schedule.
#[test]
fn excludes() {
    for story in stories::<NOTHING>() {
        assert_eq!(explore::<NOTHING>(story, Depth::usual()), 0, "{}", story.0);
    }
}

/// Goal: each part of the protocol is needed. Shuttle sees no orderings.
#[test]
fn every_part_is_needed() {
    if Checked::IS_RANDOM {
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
