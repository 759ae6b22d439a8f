//! The protocol of the library's biased lock, compiled from its file over the checkers' words. Both
//! barriers are full fences here. In the library the owner's is a compiler fence, and the other
//! side makes every thread execute a full fence by a system call, which has the same effect.

#[path = "../../../tickless/src/platform/bias.rs"]
mod bias;

use super::exploring::{Depth, explore};
use super::stage::{CPU0, CPU1};
use crate::checker::{CheckedLock, CheckedWord, fence, go_to, share, yield_now};
use bias::{Barriers, Bias, ThreadSlot};
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};

const RELAXED: Ordering = Ordering::Relaxed;

struct Fences;

impl Barriers for Fences {
    type Word = CheckedWord;

    fn streak() -> u64 {
        1
    }

    fn now() -> u64 {
        0
    }

    fn light_barrier() {
        fence();
    }

    fn heavy_barrier() {
        fence();
    }

    fn relax(_: u32) {
        yield_now();
    }
}

/// Two locks with what they guard, and two threads' slots. Both are numbered from 1.
struct Scene {
    locks: [Guarded; 2],
    slots: [ThreadSlot<Fences>; 2],
    free: CheckedLock<Option<usize>>,
}

struct Guarded {
    bias: Bias<Fences>,
    /// The thread in the critical section, and how often one was; both with Relaxed ordering.
    busy: CheckedWord,
    count: CheckedWord,
}

impl Scene {
    fn new() -> Arc<Self> {
        let word = || CheckedWord::new(0);
        let lock = |_| Guarded { bias: Bias::new(), busy: word(), count: word() };
        let slots = [0, 1].map(|_| ThreadSlot::new());
        Arc::new(Scene { locks: [0, 1].map(lock), slots, free: CheckedLock::new(None) })
    }

    /// A thread with this slot takes a lock, becomes its owner if that is offered, and unlocks it.
    fn uses(&self, thread: usize, lock: usize) {
        let (name, slot) = (lock as u64 + 1, &self.slots[thread]);
        let (me, guarded) = (thread as u64 + 1, &self.locks[lock]);
        let by_bias = guarded.bias.enter(name, me, slot);
        if !by_bias {
            let slot_of = |owner: u64| &self.slots[owner as usize - 1];
            guarded.bias.take_mutex(name, me, slot_of, || Some(me));
        }
        guarded.busy.store(me, RELAXED);
        let count = guarded.count.load(RELAXED);
        yield_now();
        guarded.count.store(count + 1, RELAXED);
        assert_eq!(guarded.busy.load(RELAXED), me, "two threads are inside");
        if by_bias {
            slot.leave();
        } else {
            guarded.bias.unlock_mutex();
        }
    }

    fn make_owner(&self, thread: usize, lock: usize) {
        (0..2).for_each(|_| self.uses(thread, lock));
    }

    /// Checks how often each lock was used: a thread that sees an old count loses one.
    fn check(&self, counts: [u64; 2]) {
        assert_eq!([0, 1].map(|lock| self.locks[lock].count.load(RELAXED)), counts);
    }
}

fn race(owners: &[(usize, usize)], by_thread: [&'static [usize]; 2]) {
    let scene = Scene::new();
    owners.iter().for_each(|&(thread, lock)| scene.make_owner(thread, lock));
    let other = share(CPU1, &scene, move |scene| {
        by_thread[1].iter().for_each(|&lock| scene.uses(1, lock));
    });
    go_to(CPU0);
    by_thread[0].iter().for_each(|&lock| scene.uses(0, lock));
    other.join();
    scene.check([0, 1].map(|lock| {
        let owned = owners.iter().filter(|(_, of)| *of == lock).count();
        let used = by_thread.concat().into_iter().filter(|of| *of == lock).count();
        (2 * owned + used) as u64
    }));
}

/// An ended owner's slot is reused by a thread that enters by its bias, while another takes it.
fn handed_over() {
    let scene = Scene::new();
    scene.make_owner(0, 0);
    let first = share(CPU0, &scene, |scene| {
        scene.uses(0, 0);
        *scene.free.lock() = Some(0);
    });
    let heir = share(CPU0, &scene, |scene| {
        let free = scene.free.lock().take();
        if let Some(slot) = free {
            scene.uses(slot, 0);
        }
    });
    go_to(CPU1);
    scene.uses(1, 0);
    first.join();
    heir.join();
    let entered = u64::from(scene.free.lock().is_none());
    scene.check([4 + entered, 0]);
}

#[test]
fn excludes() {
    let run = |name: &str, owners: &'static [(usize, usize)], by_thread| {
        explore(&format!("biased lock, {name}"), Depth::full(), move || race(owners, by_thread));
    };
    run("one lock", &[(0, 0)], [&[0, 0], &[0, 0]]);
    run("two locks of one owner", &[(0, 0), (0, 1)], [&[0, 1], &[0]]);
    run("two locks of two owners", &[(0, 0), (1, 1)], [&[0, 1], &[1, 0]]);
    explore("biased lock, handed over", Depth { preemptions: 2, ..Depth::full() }, handed_over);
}
