//! X1, X4 (freeing): the end of an owned timer, and the waker of a timer inside a future. These
//! compile the library's files over the checkers' words.

#[path = "../../../tickless/src/timer/ends.rs"]
mod ends;
#[path = "../../../tickless/src/timer/turns.rs"]
mod turns;

use super::models;
use super::platform::Kind;
use super::stage::{CPU0, CPU1, END, LATER, LATEST, NOW, RESTART, Stage, WRITTEN};
use crate::checker::{CheckedWord, Thread, yield_now};
use ends::End;
use std::sync::Arc;
use tickless_core::bases::Started;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::platform::{Ordering, Word};
use tickless_core::time::{CpuId, Ns, Window};
use turns::{Byte, Lead, Turns};

models! {
    dropping_against_fire,
    dropping_in_a_callback_against_fire,
    dropping_in_its_own_callback,
    an_entry_reuses_the_memory_of_a_timer,
    polling_against_fire,
    dropping_an_entry_against_fire,
    arming_an_entry_against_fire,
    resetting_an_entry_against_fire,
    pushing_out_an_entry_against_fire,
    pushing_out_an_entry_twice_against_fire,
    resetting_a_pushed_out_entry_against_fire,
}

// With one preemption more, this takes ten times as long as the others.
models! {
    shallow
    bringing_forward_a_pushed_out_entry_against_fire,
}

const RELAXED: Ordering = Ordering::Relaxed;

const FREED: u64 = 1;

/// Uses the timer's memory at the beginning and at the end of a callback.
fn uses_its_memory<L: Kind>(stage: &Stage<L>) {
    assert_ne!(stage.left.load(RELAXED), FREED, "X4: freed before its callback begins");
    yield_now();
    assert_ne!(stage.left.load(RELAXED), FREED, "X4: freed while its callback runs");
}

fn memory_user<L: Kind>(stage: &Arc<Stage<L>>, cpu: CpuId, result: CallbackResult) -> Thread {
    stage.on(cpu, move |stage| {
        stage.expire_with(cpu, |_| {
            uses_its_memory(stage);
            result
        });
    })
}

fn free<L: Kind>(stage: &Stage<L>) {
    stage.left.store(FREED, RELAXED);
    stage.places[0].free_and_reuse(0);
}

/// Goal: dropping a timer waits for its callback, sees what that wrote, and may free it (X1).
fn dropping_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = memory_user(&stage, CPU0, CallbackResult::Done);
    assert_eq!(ends::end(&stage.bases, stage.places[0].timer()), End::Over);
    let seen = stage.seen(0);
    free(&stage);
    handler.join();
    assert_eq!(seen, if stage.fired() == 0 { 0 } else { WRITTEN }, "X1");
}

/// Goal: a caller that must not wait frees an idle timer, and a running one when it has ended.
fn dropping_in_a_callback_against_fire<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let handler = memory_user(&stage, CPU0, RESTART);
    let ended = ends::end_or_leave(&stage.bases, stage.places[0].timer());
    if ended == End::Runs {
        while stage.is_running(0) {
            yield_now();
        }
        assert_eq!(stage.seen(0), WRITTEN, "X1");
    }
    free(&stage);
    handler.join();
}

/// Goal: a callback drops its own timer, which another thread frees when the callback has ended.
/// The callback returns a restart, which finds the timer shut down and not freed.
fn dropping_in_its_own_callback<L: Kind>() {
    let stage = Stage::<L>::new(1).armed([NOW]);
    let dropped = Arc::new(CheckedWord::new(0));
    let by_callback = Arc::clone(&dropped);
    let handler = stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            let ended = ends::end_or_leave(&stage.bases, stage.places[0].timer());
            assert_eq!(ended, End::Runs);
            // Release: stands for the lock of the list of timers that are left to other threads.
            by_callback.store(1, Ordering::Release);
            uses_its_memory(stage);
            RESTART
        });
    });
    while dropped.load(Ordering::Acquire) == 0 || stage.is_running(0) {
        yield_now();
    }
    free(&stage);
    handler.join();
    assert_eq!((stage.fired(), stage.pending()), (1, 0));
}

/// Goal: a callback ends its own timer and makes an entry at that address, twice. The drop of the
/// first finds it pending on the same base; the drop of the second waits for the driver of another
/// base, which uses the entry's memory (X1, X4).
fn an_entry_reuses_the_memory_of_a_timer<L: Kind>() {
    let stage = Stage::<L>::new(2).armed([NOW]);
    let driver = memory_user(&stage, CPU1, CallbackResult::Done);
    stage.expire_with(CPU0, |_| {
        let place = &stage.places[0];
        assert_eq!(ends::end_own(&stage.bases, place.timer()), Cancel::Running);
        place.free_and_reuse(1);
        for (cpu, at) in [(CPU0, LATER), (CPU1, NOW)] {
            stage.arm_on(cpu, 0, at);
            // The frame of this callback refers to no timer any more.
            ends::disarm(&stage.bases, place.timer(), || false);
        }
        free(&stage);
        CallbackResult::Done
    });
    driver.join();
    assert!(stage.fired() <= 2 && stage.pending() == 0);
}

struct ByteOf(CheckedWord);

impl Byte for ByteOf {
    fn new(value: u8) -> Self {
        ByteOf(CheckedWord::new(u64::from(value)))
    }

    fn load(&self, order: Ordering) -> u8 {
        self.0.load(order) as u8
    }

    fn store(&self, value: u8, order: Ordering) {
        self.0.store(u64::from(value), order);
    }

    fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.0.swap(u64::from(value), order) as u8
    }

    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool {
        self.0.compare_exchange(u64::from(current), u64::from(new), success, failure).is_ok()
    }
}

/// The turns and the lead of a future's entry, with a number in place of its waker.
struct Waiting {
    turns: Turns<ByteOf>,
    lead: Lead<ByteOf>,
    deadline: CheckedWord,
    waker: CheckedWord,
    /// Which side accesses the waker: [`TASK`] or [`DRIVER`].
    busy: CheckedWord,
    woken: CheckedWord,
}

const TASK: u64 = 1;
const DRIVER: u64 = 2;

impl Waiting {
    fn new(waker: u64) -> Arc<Self> {
        let word = CheckedWord::new;
        Arc::new(Waiting {
            turns: Turns::new(),
            lead: Lead::new(),
            deadline: word(NOW.0),
            waker: word(waker),
            busy: word(0),
            woken: word(0),
        })
    }

    fn touch<R>(&self, side: u64, touch: impl FnOnce() -> R) -> R {
        self.busy.store(side, RELAXED);
        let touched = touch();
        yield_now();
        assert_eq!(self.busy.load(RELAXED), side, "two threads access the waker");
        touched
    }

    fn register(&self, waker: u64) -> bool {
        self.turns.register(|| self.touch(TASK, || self.waker.store(waker, RELAXED)))
    }

    fn fire(&self) {
        let taken = self.turns.fire(|| self.touch(DRIVER, || self.waker.load(RELAXED)));
        self.woken.store(taken.unwrap_or(0), RELAXED);
    }

    /// As in `Entry::call`.
    fn fire_or_rearm(&self) -> CallbackResult {
        if !self.lead.close() {
            return CallbackResult::Restart(Window::at(Ns(self.deadline.load(RELAXED))));
        }
        self.fire();
        CallbackResult::Done
    }

    /// As in `Entry::push_out`.
    fn push_out(&self, at: Ns) -> bool {
        let lead = self.lead.get();
        if lead == Lead::<ByteOf>::CLOSED {
            return false;
        }
        self.deadline.store(at.0, RELAXED);
        self.lead.replace(lead, lead + 1)
    }

    /// As in `Entry::reset_locked`, and the next poll. Returns the waker that is registered then.
    fn reset_locked<L: Kind>(&self, stage: &Stage<L>, at: Ns) -> u64 {
        let lead = self.lead.get();
        if (1..Lead::<ByteOf>::CLOSED).contains(&lead) {
            self.deadline.store(at.0, RELAXED);
        }
        let mut waker = 1;
        if self.turns.has_fired() || stage.push_out(0, at) != Started::Pending {
            ends::disarm(&stage.bases, stage.places[0].timer(), || false);
            if self.turns.has_fired() {
                self.turns.reset();
                self.lead.reset();
                waker = 2;
                self.touch(TASK, || self.waker.store(waker, RELAXED));
            }
            stage.arm(0, at);
        }
        self.deadline.store(at.0, RELAXED);
        self.lead.replace(lead, 0);
        waker
    }

    /// Checks that the timer fires at its deadline, not earlier, and wakes this waker.
    fn fires_at_the_end<L: Kind>(&self, stage: &Stage<L>, waker: u64) {
        stage.settle();
        for now in [LATER, END] {
            stage.bases.platform().set_time(now);
            for cpu in [CPU0, CPU1, CPU0, CPU1] {
                stage.expire_with(cpu, |_| self.fire_or_rearm());
            }
            let deadline = Ns(self.deadline.load(RELAXED));
            assert!(deadline <= now || !self.turns.has_fired(), "W1: early");
        }
        assert!(self.turns.has_fired() && stage.pending() == 0);
        assert_eq!(self.woken.load(RELAXED), waker, "the task is left asleep");
        stage.settle();
    }
}

fn rearming_handler<L: Kind>(stage: &Arc<Stage<L>>, waiting: &Arc<Waiting>) -> Thread {
    let waiting = Arc::clone(waiting);
    stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| waiting.fire_or_rearm());
    })
}

fn handler<L: Kind>(stage: &Arc<Stage<L>>, waiting: &Arc<Waiting>) -> Thread {
    let waiting = Arc::clone(waiting);
    stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            uses_its_memory(stage);
            waiting.fire();
            uses_its_memory(stage);
            CallbackResult::Done
        });
    })
}

/// Goal: a task that polls finds that its timer has fired, or its last waker is woken.
fn polling_against_fire<L: Kind>() {
    let (stage, waiting) = (Stage::<L>::new(1).armed([NOW]), Waiting::new(1));
    let handler = handler(&stage, &waiting);
    let last = (2..=3).try_fold(1, |_, waker| waiting.register(waker).then_some(waker));
    handler.join();
    assert!(waiting.turns.has_fired());
    let woken = waiting.woken.load(RELAXED);
    assert!(last.is_none_or(|last| last == woken), "{last:?} was left, {woken} was woken");
}

/// Goal: dropping an entry while a driver takes its waker waits for that, and for nothing else.
fn dropping_an_entry_against_fire<L: Kind>() {
    let (stage, waiting) = (Stage::<L>::new(1).armed([NOW]), Waiting::new(1));
    let handler = handler(&stage, &waiting);
    let is_left = waiting.register(2);
    ends::disarm(&stage.bases, stage.places[0].timer(), || false);
    waiting.touch(TASK, || ());
    let woken = waiting.woken.load(RELAXED);
    free(&stage);
    handler.join();
    let fired = stage.fired() == 1;
    let expected = if fired && is_left { 2 } else { woken };
    assert_eq!(woken, expected, "the callback has ended, and its writes are visible");
    assert_eq!(waiting.turns.has_fired(), fired);
}

/// Goal: a driver sees all of an entry's first arming, and the drop waits for that driver.
fn arming_an_entry_against_fire<L: Kind>() {
    let (stage, waiting) = (Stage::<L>::new(1), Waiting::new(0));
    let handler = handler(&stage, &waiting);
    waiting.touch(TASK, || waiting.waker.store(1, RELAXED));
    stage.arm_new(0, NOW);
    ends::disarm(&stage.bases, stage.places[0].timer(), || false);
    waiting.touch(TASK, || ());
    let woken = waiting.woken.load(RELAXED);
    free(&stage);
    handler.join();
    let fired = stage.fired() == 1;
    assert_eq!(woken, u64::from(fired), "the callback has ended, and its writes are visible");
    assert_eq!(waiting.turns.has_fired(), fired);
}

/// Goal: a deadline that is reset as the driver takes the waker fires once, for the new one.
fn resetting_an_entry_against_fire<L: Kind>() {
    let (stage, waiting) = (Stage::<L>::new(1).armed([NOW]), Waiting::new(1));
    let handler = rearming_handler(&stage, &waiting);
    let mut waker = 1;
    if stage.push_out_in_place(0, LATER) {
        waiting.deadline.store(LATER.0, RELAXED);
    } else {
        waker = waiting.reset_locked(&stage, LATER);
    }
    handler.join();
    assert!(!waiting.turns.has_fired(), "the old deadline fired after the reset");
    assert_eq!(stage.pending(), 1);
    waiting.fires_at_the_end(&stage, waker);
}

/// Goal: a timer that stays armed when it is pushed out fires once, for its last deadline (W1).
fn pushing_out_an_entry_against_fire<L: Kind>() {
    push_out_an_entry::<L>(&[LATER]);
}

/// Goal: as above, if the driver may rearm the timer between two push-outs.
fn pushing_out_an_entry_twice_against_fire<L: Kind>() {
    push_out_an_entry::<L>(&[LATER, LATEST]);
}

fn push_out_an_entry<L: Kind>(deadlines: &[Ns]) {
    let (stage, waiting) = (Stage::<L>::new(1).armed([NOW]), Waiting::new(1));
    let handler = rearming_handler(&stage, &waiting);
    let mut waker = 1;
    for &at in deadlines {
        if !waiting.push_out(at) {
            waker = waker.max(waiting.reset_locked(&stage, at));
        }
    }
    handler.join();
    assert!(!waiting.turns.has_fired(), "the old deadline fired after the reset");
    waiting.fires_at_the_end(&stage, waker);
}

fn reset_a_pushed_out_entry<L: Kind>(to: Ns) {
    let (stage, waiting) = (Stage::<L>::new(1).armed([NOW]), Waiting::new(1));
    assert!(waiting.push_out(LATER));
    let handler = rearming_handler(&stage, &waiting);
    let waker = waiting.reset_locked(&stage, to);
    handler.join();
    assert!(to == NOW || !waiting.turns.has_fired(), "the old deadline fired after the reset");
    waiting.fires_at_the_end(&stage, waker);
}

/// Goal: a driver that rearms the timer beside a reset under the lock leaves it armed, and its task
/// is woken (X10).
fn resetting_a_pushed_out_entry_against_fire<L: Kind>() {
    reset_a_pushed_out_entry::<L>(LATEST);
}

/// Goal: as above, for a deadline that is due at once.
fn bringing_forward_a_pushed_out_entry_against_fire<L: Kind>() {
    reset_a_pushed_out_entry::<L>(NOW);
}
