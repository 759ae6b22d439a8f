//! The protocol of the host's biased lock (`crates/tickless/src/host/lock.rs`), which cannot run
//! under a checker itself: its owner's side has no barrier, the other side makes all threads pass
//! one by a system call. Here both sides have a fence of their own, which is what that comes to.
//!
//! Each of the mutations in the table of `docs/dev/mutations.md` is a variant, which has to be seen to
//! fail. Keep this in step with the original.

use super::Checked;
use super::checker::{Checker, Depth};
use super::diagram::{Findings, Log};
use super::stage::{CPU0, CPU1};
use std::sync::Arc;
use tickless_core::platform::{Ordering, Word};

const RELAXED: Ordering = Ordering::Relaxed;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    AsItIs,
    /// The owner goes in without looking whether it is still the owner.
    OwnerNotAskedAgain,
    /// Nobody passes a barrier when the bias is taken away.
    NoBarrier,
    /// Who takes the bias away does not wait until the owner is outside.
    OwnerNotWaitedFor,
    /// The owner's way out, or the load that waits for it, orders nothing.
    RelaxedRelease,
    RelaxedAcquire,
    /// The same for the mutex.
    RelaxedMutexRelease,
    RelaxedMutexAcquire,
}

/// The lock; threads are known by their seats, 1 and 2.
struct Biased<C: Checker> {
    variant: Variant,
    owner: C::Word,
    taken: C::Word,
    inside: [C::Word; 2],
    /// Who is in the critical section, and how often somebody was: no orderings of their own.
    busy: C::Word,
    count: C::Word,
    log: Log,
}

impl<C: Checker> Biased<C> {
    fn is(&self, variant: Variant) -> bool {
        self.variant == variant
    }

    fn order(&self, usual: Ordering, weakened: Variant) -> Ordering {
        if self.is(weakened) { RELAXED } else { usual }
    }

    fn fence(&self) {
        if !self.is(Variant::NoBarrier) {
            C::fence();
        }
    }

    /// Takes the lock, does something, and gives it back. Returns whether somebody else was inside.
    fn use_once(&self, me: u64, settles: bool) -> bool {
        let by_bias = self.enter_by_bias(me);
        if !by_bias {
            self.take_mutex(me);
            if settles {
                self.owner.store(me, RELAXED);
            }
        }
        let disturbed = self.critical_section(me);
        if by_bias {
            let order = self.order(Ordering::Release, Variant::RelaxedRelease);
            self.seat(me).store(0, order);
        } else {
            let order = self.order(Ordering::Release, Variant::RelaxedMutexRelease);
            self.taken.store(0, order);
        }
        disturbed
    }

    fn enter_by_bias(&self, me: u64) -> bool {
        if self.owner.load(RELAXED) != me {
            return false;
        }
        self.seat(me).store(1, RELAXED);
        self.fence();
        if self.is(Variant::OwnerNotAskedAgain) || self.owner.load(RELAXED) == me {
            self.log.says(me as usize - 1, "goes in by its bias");
            return true;
        }
        self.seat(me).store(0, Ordering::Release);
        false
    }

    fn take_mutex(&self, me: u64) {
        let order = self.order(Ordering::Acquire, Variant::RelaxedMutexAcquire);
        while self.taken.compare_exchange(0, 1, order, RELAXED).is_err() {
            C::yield_now();
        }
        let owner = self.owner.load(RELAXED);
        if owner != 0 {
            self.owner.store(0, RELAXED);
            self.log.says(me as usize - 1, "takes the bias away");
            self.fence();
            let order = self.order(Ordering::Acquire, Variant::RelaxedAcquire);
            while !self.is(Variant::OwnerNotWaitedFor) && self.seat(owner).load(order) == 1 {
                C::yield_now();
            }
        }
        self.log.says(me as usize - 1, "goes in by the mutex");
    }

    fn critical_section(&self, me: u64) -> bool {
        self.busy.store(me, RELAXED);
        let count = self.count.load(RELAXED);
        C::yield_now();
        self.count.store(count + 1, RELAXED);
        let disturbed = self.busy.load(RELAXED) != me;
        self.log.says(me as usize - 1, "is through");
        disturbed
    }

    fn seat(&self, of: u64) -> &C::Word {
        &self.inside[of as usize - 1]
    }
}

/// One run: the owner goes in twice, another thread comes in between; whoever has the mutex may
/// become the owner.
fn story<C: Checker>(variant: Variant, findings: &Findings) {
    let log = Log::default();
    let lock = Arc::new(Biased::<C> {
        variant,
        owner: C::Word::new(1),
        taken: C::Word::new(0),
        inside: [C::Word::new(0), C::Word::new(0)],
        busy: C::Word::new(0),
        count: C::Word::new(0),
        log: log.clone(),
    });
    let disturbed = Arc::new(C::Word::new(0));
    let (other, others) = (Arc::clone(&lock), Arc::clone(&disturbed));
    let visitor = C::spawn(CPU1, move || {
        let first = other.use_once(2, true);
        others.store(u64::from(first), RELAXED);
    });
    C::go_to(CPU0);
    let first = lock.use_once(1, false);
    let second = lock.use_once(1, true);
    C::join(visitor);
    let broken = first | second | (disturbed.load(RELAXED) == 1) | (lock.count.load(RELAXED) != 3);
    findings.add(&log, broken);
}

fn explore(variant: Variant, depth: Depth) -> Findings {
    let findings = Findings::default();
    let found = findings.clone();
    Checked::explore(depth, move || story::<Checked>(variant, &found));
    println!("biased lock, {variant:?}: {findings} under {}", Checked::NAME);
    findings
}

/// Goal: one thread is inside at a time and sees what the last one did, in every schedule.
#[test]
fn excludes() {
    assert_eq!(explore(Variant::AsItIs, Depth { preemptions: 3, ..Depth::usual() }).broken(), 0);
}

/// Goal: each part of the protocol is needed. Shuttle only sees those that are no ordering.
#[test]
fn every_part_is_needed() {
    use Variant::*;
    let enough = Depth { preemptions: 2, schedules: 2_000 };
    for variant in [OwnerNotAskedAgain, OwnerNotWaitedFor] {
        assert!(explore(variant, enough).broken() > 0, "{variant:?}");
    }
    let orderings =
        [NoBarrier, RelaxedRelease, RelaxedAcquire, RelaxedMutexRelease, RelaxedMutexAcquire];
    for variant in orderings.into_iter().filter(|_| !Checked::IS_RANDOM) {
        assert!(explore(variant, enough).broken() > 0, "{variant:?}");
    }
}
