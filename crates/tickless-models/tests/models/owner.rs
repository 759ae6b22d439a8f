//! X1, X4: the ends of a timer that somebody owns, and the waker of a timer inside a future. The
//! files are the library's own, over the checkers' words.

#[path = "../../../tickless/src/timer/ends.rs"]
mod ends;
#[path = "../../../tickless/src/timer/turns.rs"]
mod turns;

use super::checker::Checker;
use super::models;
use super::stage::{CPU0, CPU1, LATER, NOW, Stage, WRITTEN};
use super::world::World;
use ends::End;
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Family, Started};
use tickless_core::platform::{Ordering, Word};
use tickless_core::time::{Ns, Window};
use turns::{Byte, Turns};

models! {
    dropping_against_fire,
    dropping_in_a_callback_against_fire,
    dropping_in_the_own_callback,
    an_entry_is_born_where_a_timer_dies,
    polling_against_fire,
    dropping_an_entry_against_fire,
    arming_an_entry_against_fire,
    resetting_an_entry_against_fire,
}

const RELAXED: Ordering = Ordering::Relaxed;

/// When everything is due.
const END: Ns = Ns::from_secs(3);

/// Marks memory that has been freed, in [`Stage::left`], which orders nothing.
const FREED: u64 = 1;

/// A callback uses its timer's memory from beginning to end.
fn uses_its_memory<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    assert_ne!(stage.left.load(RELAXED), FREED, "X4: a callback begins whose timer is gone");
    C::yield_now();
    assert_ne!(stage.left.load(RELAXED), FREED, "X4: freed while its callback runs");
}

fn free<C: Checker, L: Family<World<C>> + 'static>(stage: &Stage<C, L>) {
    stage.left.store(FREED, RELAXED);
    stage.places[0].free_and_use_again(0);
}

/// Goal: whoever drops a timer waits for its callback, sees what that wrote, and may free it (X1).
fn dropping_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| {
            uses_its_memory(stage);
            CallbackResult::Done
        });
    });
    assert_eq!(ends::end(&stage.bases, stage.places[0].timer()), End::Over);
    let seen = stage.seen(0);
    free(&stage);
    C::join(handler);
    assert_eq!(seen, if stage.fired() == 0 { 0 } else { WRITTEN }, "X1");
}

/// Goal: the same for a caller that must not wait: it frees what does not run, and leaves the rest
/// until that runs no more.
fn dropping_in_a_callback_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let handler = stage.on(CPU0, |stage| {
        stage.expire_with(CPU0, |_| {
            uses_its_memory(stage);
            CallbackResult::Restart(Window::new(LATER, LATER))
        });
    });
    let ended = ends::end_or_leave(&stage.bases, stage.places[0].timer());
    if ended == End::Runs {
        while stage.is_running(0) {
            C::yield_now();
        }
        assert_eq!(stage.seen(0), WRITTEN, "X1");
    }
    free(&stage);
    C::join(handler);
}

/// Goal: a callback drops its own timer, which another thread frees as soon as it runs no more; the
/// callback asks to be armed again, which finds the timer shut down and not gone.
fn dropping_in_the_own_callback<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(1);
    stage.arm(0, NOW);
    let dropped = Arc::new(C::Word::new(0));
    let by_callback = Arc::clone(&dropped);
    let handler = stage.on(CPU0, move |stage| {
        stage.expire_with(CPU0, |_| {
            let ended = ends::end_or_leave(&stage.bases, stage.places[0].timer());
            assert_eq!(ended, End::Runs);
            // Release: as the lock around what was left to others.
            by_callback.store(1, Ordering::Release);
            uses_its_memory(stage);
            CallbackResult::Restart(Window::new(LATER, LATER))
        });
    });
    while dropped.load(Ordering::Acquire) == 0 || stage.is_running(0) {
        C::yield_now();
    }
    free(&stage);
    C::join(handler);
    assert_eq!((stage.fired(), stage.pending()), (1, 0));
}

/// Goal: X1, X4: a callback ends its own timer and makes an entry at that address, twice. The drop
/// of the first finds it pending on the same base; the drop of the second waits for the driver of
/// another base, which uses the entry's memory.
fn an_entry_is_born_where_a_timer_dies<C: Checker, L: Family<World<C>> + 'static>() {
    let stage = Stage::<C, L>::new(2);
    stage.arm(0, NOW);
    let driver = stage.on(CPU1, |stage| {
        stage.expire_with(CPU1, |_| {
            uses_its_memory(stage);
            CallbackResult::Done
        });
    });
    stage.expire_with(CPU0, |_| {
        let place = &stage.places[0];
        assert_eq!(ends::end_own(&stage.bases, place.timer()), Cancel::Running);
        place.free_and_use_again(1);
        for (cpu, at) in [(CPU0, LATER), (CPU1, NOW)] {
            stage.arm_on(cpu, 0, at);
            // The frame of this callback names no timer any more.
            ends::disarm(&stage.bases, place.timer(), || false);
        }
        free(&stage);
        CallbackResult::Done
    });
    C::join(driver);
    assert!(stage.fired() <= 2 && stage.pending() == 0);
}

/// A byte of a checker's.
struct ByteOf<C: Checker>(C::Word);

impl<C: Checker> Byte for ByteOf<C> {
    fn new(value: u8) -> Self {
        ByteOf(C::Word::new(u64::from(value)))
    }

    fn load(&self, order: Ordering) -> u8 {
        self.0.load(order) as u8
    }

    fn store(&self, value: u8, order: Ordering) {
        self.0.store(u64::from(value), order);
    }

    fn swap(&self, value: u8, order: Ordering) -> u8 {
        C::swap(&self.0, u64::from(value), order) as u8
    }

    fn replace(&self, current: u8, new: u8, success: Ordering, failure: Ordering) -> bool {
        self.0.compare_exchange(u64::from(current), u64::from(new), success, failure).is_ok()
    }
}

/// An entry's turns, with a number in place of its waker. All else orders nothing.
struct Waiting<C: Checker> {
    turns: Turns<ByteOf<C>>,
    waker: C::Word,
    /// Who touches the waker: a task, a driver.
    busy: C::Word,
    woken: C::Word,
}

const TASK: u64 = 1;
const DRIVER: u64 = 2;

impl<C: Checker> Waiting<C> {
    /// With a waker, and not armed.
    fn new(waker: u64) -> Arc<Self> {
        let word = C::Word::new;
        Arc::new(Waiting { turns: Turns::new(), waker: word(waker), busy: word(0), woken: word(0) })
    }

    fn touch<R>(&self, who: u64, touch: impl FnOnce() -> R) -> R {
        self.busy.store(who, RELAXED);
        let touched = touch();
        C::yield_now();
        assert_eq!(self.busy.load(RELAXED), who, "two touch the waker at once");
        touched
    }

    fn register(&self, waker: u64) -> bool {
        self.turns.register(|| self.touch(TASK, || self.waker.store(waker, RELAXED)))
    }

    /// What a driver does in the callback.
    fn fire(&self) {
        let taken = self.turns.fire(|| self.touch(DRIVER, || self.waker.load(RELAXED)));
        self.woken.store(taken.unwrap_or(0), RELAXED);
    }
}

/// Starts a handler for an entry whose timer is due.
fn handler<C: Checker, L: Family<World<C>> + 'static>(
    stage: &Arc<Stage<C, L>>,
    waiting: &Arc<Waiting<C>>,
) -> C::Thread {
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

/// Goal: a task that polls ever anew finds that its timer has fired, or the waker that it left last
/// is woken; and it sees what happened before that.
fn polling_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let (stage, waiting) = (Stage::<C, L>::new(1), Waiting::<C>::new(1));
    stage.arm(0, NOW);
    let handler = handler(&stage, &waiting);
    let last = (2..=3).try_fold(1, |_, waker| waiting.register(waker).then_some(waker));
    C::join(handler);
    assert!(waiting.turns.has_fired());
    let woken = waiting.woken.load(RELAXED);
    assert!(last.is_none_or(|last| last == woken), "{last:?} was left, {woken} was woken");
}

/// Goal: whoever drops an entry while a driver takes its waker waits for that, and for no more.
fn dropping_an_entry_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let (stage, waiting) = (Stage::<C, L>::new(1), Waiting::<C>::new(1));
    stage.arm(0, NOW);
    let handler = handler(&stage, &waiting);
    let is_left = waiting.register(2);
    ends::disarm(&stage.bases, stage.places[0].timer(), || false);
    waiting.touch(TASK, || ());
    let woken = waiting.woken.load(RELAXED);
    free(&stage);
    C::join(handler);
    let fired = stage.fired() == 1;
    let expected = if fired && is_left { 2 } else { woken };
    assert_eq!(woken, expected, "the callback is over, and what it did is seen");
    assert_eq!(waiting.turns.has_fired(), fired);
}

/// Goal: an entry's first arming is seen whole by a driver that is at work meanwhile, and its drop
/// waits for that driver.
fn arming_an_entry_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let (stage, waiting) = (Stage::<C, L>::new(1), Waiting::<C>::new(0));
    let handler = handler(&stage, &waiting);
    waiting.touch(TASK, || waiting.waker.store(1, RELAXED));
    stage.arm_new(0, NOW);
    ends::disarm(&stage.bases, stage.places[0].timer(), || false);
    waiting.touch(TASK, || ());
    let woken = waiting.woken.load(RELAXED);
    free(&stage);
    C::join(handler);
    let fired = stage.fired() == 1;
    assert_eq!(woken, u64::from(fired), "the callback is over, and what it did is seen");
    assert_eq!(waiting.turns.has_fired(), fired);
}

/// Goal: a deadline that is set anew while a driver takes the waker fires once, for the new one,
/// and wakes the waker that was left for it.
fn resetting_an_entry_against_fire<C: Checker, L: Family<World<C>> + 'static>() {
    let (stage, waiting) = (Stage::<C, L>::new(1), Waiting::<C>::new(1));
    stage.arm(0, NOW);
    let handler = handler(&stage, &waiting);
    let mut waker = 1;
    // As `Entry::reset` and the poll after it.
    if !stage.push_out_in_place(0, LATER)
        && (waiting.turns.has_fired() || stage.push_out(0, LATER) != Started::Pending)
    {
        ends::disarm(&stage.bases, stage.places[0].timer(), || false);
        waiting.turns.reset();
        waker = 2;
        waiting.touch(TASK, || waiting.waker.store(waker, RELAXED));
        stage.arm(0, LATER);
    }
    C::join(handler);
    assert!(!waiting.turns.has_fired(), "the old deadline's callback came after the reset");
    assert_eq!(stage.pending(), 1);
    stage.bases.platform().set_time(END);
    for cpu in [CPU0, CPU1] {
        stage.expire_with(cpu, |_| {
            waiting.fire();
            CallbackResult::Done
        });
    }
    assert!(waiting.turns.has_fired());
    assert_eq!(waiting.woken.load(RELAXED), waker);
    stage.settle();
}
