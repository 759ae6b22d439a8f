//! Futures of one thread.

use crate::support::random::Rng;
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;
use tickless_core::local::Clock;
use tickless_core::local::future::{Elapsed, Handle, Sleep, Sleeps};
use tickless_core::time::Instant;

const MS: Duration = Duration::from_millis(1);

/// A waker of one thread, which calls `wake`, and `clone` and `drop` with the name of what happens.
struct Hooks {
    wakes: Cell<u32>,
    on: RefCell<Box<dyn FnMut(&'static str)>>,
}

impl Hooks {
    fn new(on: impl FnMut(&'static str) + 'static) -> Rc<Hooks> {
        Rc::new(Hooks { wakes: Cell::new(0), on: RefCell::new(Box::new(on)) })
    }

    fn count() -> Rc<Hooks> {
        Hooks::new(|_| {})
    }

    fn call(&self, event: &'static str) {
        // A hook that is called inside itself does nothing.
        if let Ok(mut on) = self.on.try_borrow_mut() {
            on(event);
        }
    }

    fn waker(self: &Rc<Hooks>) -> Waker {
        let data = Rc::into_raw(Rc::clone(self)).cast();
        // SAFETY: the functions below keep the counted reference, and the test has one thread.
        unsafe { Waker::from_raw(RawWaker::new(data, &HOOKS)) }
    }
}

static HOOKS: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: `data` is from `Rc::into_raw` and not dropped here.
        let hooks = ManuallyDrop::new(unsafe { Rc::from_raw(data.cast::<Hooks>()) });
        hooks.call("clone");
        RawWaker::new(Rc::into_raw(Rc::clone(&hooks)).cast(), &HOOKS)
    },
    |data| {
        // SAFETY: `data` is from `Rc::into_raw`, and this call owns its reference.
        let hooks = unsafe { Rc::from_raw(data.cast::<Hooks>()) };
        hooks.wakes.set(hooks.wakes.get() + 1);
        hooks.call("wake");
    },
    |data| {
        // SAFETY: `data` is from `Rc::into_raw` and not dropped here.
        let hooks = ManuallyDrop::new(unsafe { Rc::from_raw(data.cast::<Hooks>()) });
        hooks.wakes.set(hooks.wakes.get() + 1);
    },
    |data| {
        // SAFETY: `data` is from `Rc::into_raw`, and this call owns its reference.
        let hooks = unsafe { Rc::from_raw(data.cast::<Hooks>()) };
        hooks.call("drop");
    },
);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

fn poll_sleep(sleep: &mut Sleep, hooks: &Rc<Hooks>) -> Poll<()> {
    poll(Pin::new(sleep), &hooks.waker())
}

fn start() -> (Sleeps, Handle, Rc<Hooks>) {
    let sleeps = Sleeps::new(Clock::manual(at(0)));
    let timers = sleeps.handle();
    (sleeps, timers, Hooks::count())
}

#[test]
fn a_timeout_yields_its_future_or_elapses() {
    let (sleeps, timers, task) = start();
    let mut ready = pin!(timers.timeout(Duration::ZERO, async { 42 }));
    assert_eq!(poll(ready.as_mut(), &task.waker()), Poll::Ready(Ok(42)));

    let mut late = pin!(timers.timeout(10 * MS, pending::<()>()));
    assert!(poll(late.as_mut(), &task.waker()).is_pending());
    sleeps.advance(at(12));
    let Poll::Ready(Err(elapsed @ Elapsed { deadline, .. })) = poll(late, &task.waker()) else {
        panic!("it has not elapsed");
    };
    assert_eq!(deadline, at(10));
    assert_eq!(elapsed.to_string(), "the deadline passed before the work was done");
}

#[test]
fn an_interval_skips_missed_ticks_and_keeps_its_phase() {
    let (sleeps, timers, task) = start();
    let mut ticks = timers.interval(10 * MS);
    let tick = |ticks: &mut tickless_core::local::future::Interval| {
        poll(pin!(ticks.tick()), &task.waker())
    };
    for (now, expected) in [(0, None), (10, Some(0)), (15, None), (21, Some(0)), (57, Some(2))] {
        sleeps.advance(at(now));
        let missed = tick(&mut ticks);
        assert_eq!(missed, expected.map_or(Poll::Pending, Poll::Ready), "at {now} ms");
    }
    assert!(tick(&mut ticks).is_pending());
    assert_eq!(sleeps.next_event(), Some(at(60)));
    ticks.reset_at(at(100));
    assert_eq!(sleeps.next_event(), Some(at(100)));
}

#[test]
fn sleeps_without_their_executor_stay_pending() {
    let (sleeps, timers, task) = start();
    let [mut passed, mut pending, mut new] = [MS, 5 * MS, 5 * MS].map(|after| timers.sleep(after));
    let leaked = ManuallyDrop::new(timers.sleep(5 * MS));
    assert!(poll_sleep(&mut passed, &task).is_pending());
    assert!(poll_sleep(&mut pending, &task).is_pending());
    assert!(poll_sleep(&mut ManuallyDrop::into_inner(leaked), &task).is_pending());
    sleeps.advance(at(2));
    drop(sleeps);
    assert_eq!(Rc::strong_count(&task), 1, "no waker is left");
    assert!(poll_sleep(&mut passed, &task).is_ready());
    for sleep in [&mut pending, &mut new] {
        assert!(poll_sleep(sleep, &task).is_pending());
        sleep.reset(2 * MS);
        assert!(poll_sleep(sleep, &task).is_pending());
    }
    assert_eq!((Rc::strong_count(&task), timers.now()), (1, at(2)));
}

#[test]
fn a_task_that_owns_its_waker_is_freed_with_the_sleeps() {
    let (sleeps, timers, _) = start();
    let sleep = Rc::new(RefCell::new(timers.sleep(5 * MS)));
    let owned = Rc::clone(&sleep);
    // The waker keeps the sleep, and the sleep keeps the waker.
    let task = Hooks::new(move |_| drop(owned.try_borrow()));
    assert!(poll_sleep(&mut sleep.borrow_mut(), &task).is_pending());
    let weak = Rc::downgrade(&sleep);
    drop((sleep, task));
    assert_eq!(weak.strong_count(), 1);
    drop(sleeps);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
fn a_waker_that_panics_costs_no_other_task_its_wakeup() {
    let (sleeps, timers, task) = start();
    let panics = Hooks::new(|event| assert_ne!(event, "wake", "on purpose"));
    let mut all: Vec<_> = (0..4).map(|_| timers.sleep(5 * MS)).collect();
    for (index, sleep) in all.iter_mut().enumerate() {
        let hooks = if index == 1 { &panics } else { &task };
        assert!(poll_sleep(sleep, hooks).is_pending());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| sleeps.advance(at(5)))).is_err());
    assert_eq!((task.wakes.get(), sleeps.next_event()), (1, Some(at(5))));
    assert_eq!(sleeps.advance(at(5)), 2);
    assert_eq!((task.wakes.get(), sleeps.next_event()), (3, None));

    // In `clone` and `drop` of the first and of a second waker: nothing is early, nothing is lost.
    for panicking in ["clone", "drop"] {
        let panics = Hooks::new(move |event| assert_ne!(event, panicking, "on purpose"));
        let mut sleep = timers.sleep(5 * MS);
        let waker = ManuallyDrop::new(panics.waker());
        let polled = catch_unwind(AssertUnwindSafe(|| poll(Pin::new(&mut sleep), &waker)));
        assert_eq!(polled.is_err(), panicking == "clone");
        let replaced = catch_unwind(AssertUnwindSafe(|| poll_sleep(&mut sleep, &task)));
        assert_eq!(replaced.is_err(), panicking == "drop");
        let before = task.wakes.get();
        sleeps.advance(sleep.deadline());
        assert_eq!(task.wakes.get(), before + 1, "{panicking}");
        assert!(poll_sleep(&mut sleep, &task).is_ready());
        *panics.on.borrow_mut() = Box::new(|_| {});
        drop(ManuallyDrop::into_inner(waker));
    }
}

#[test]
fn wakers_may_use_the_timers() {
    let (sleeps, timers, task) = start();
    let sleeps = Rc::new(sleeps);
    let victim = Rc::new(RefCell::new(Some(timers.sleep(5 * MS))));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let hooks = {
        let (sleeps, timers, task) = (Rc::clone(&sleeps), timers.clone(), Rc::clone(&task));
        let (victim, seen) = (Rc::clone(&victim), Rc::clone(&seen));
        let mut made = Vec::new();
        Hooks::new(move |event| {
            seen.borrow_mut().push(event);
            let mut sleep = timers.sleep(MS);
            assert!(poll_sleep(&mut sleep, &task).is_pending());
            sleep.reset(2 * MS);
            made.push(sleep);
            if event == "wake" {
                drop(victim.borrow_mut().take());
                sleeps.advance(at(5));
            }
        })
    };
    let mut sleep = timers.sleep(5 * MS);
    assert!(poll_sleep(&mut sleep, &hooks).is_pending());
    assert!(poll_sleep(victim.borrow_mut().as_mut().unwrap(), &task).is_pending());
    sleeps.advance(at(5));
    assert!(victim.borrow().is_none());
    assert!(poll_sleep(&mut sleep, &hooks).is_ready());
    // Once more, to drop a sleep that is pending.
    sleep.reset(5 * MS);
    assert!(poll_sleep(&mut sleep, &hooks).is_pending());
    drop(sleep);
    assert_eq!(seen.borrow_mut().pop(), Some("drop"));
    for event in ["clone", "wake"] {
        assert!(seen.borrow().contains(&event), "{event}");
    }
    // The hooks own sleeps that own the hooks' clock: the circle ends with this.
    *hooks.on.borrow_mut() = Box::new(|_| {});
}

#[test]
fn drive_uses_one_sleep_of_the_surrounding_executor() {
    let (outer, inner) = (Sleeps::new(Clock::manual(at(0))), Sleeps::new(Clock::manual(at(0))));
    let (outer_timers, timers) = (outer.handle(), inner.handle());
    let clock = outer.handle();
    let made = Cell::new(0);
    let mut driven = pin!(inner.drive(
        async {
            let mut idle = timers.sleep(100 * MS);
            let mut polls = 0;
            // Pending twice, so that the surrounding sleep is armed before an earlier one is due.
            poll_fn(|cx| {
                assert!(Pin::new(&mut idle).poll(cx).is_pending());
                cx.waker().wake_by_ref();
                polls += 1;
                if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            timers.sleep(10 * MS).await;
            let middle = timers.now();
            timers.sleep(20 * MS).await;
            idle.await;
            (middle, timers.now())
        },
        || clock.now(),
        |deadline| {
            made.set(made.get() + 1);
            outer_timers.sleep_until(deadline)
        },
    ));
    let task = Hooks::count();
    let times = loop {
        if let Poll::Ready(times) = poll(driven.as_mut(), &task.waker()) {
            break times;
        }
        assert!(outer.pending() <= 1);
        if task.wakes.take() == 0 {
            outer.advance(outer.next_event().unwrap());
        }
    };
    assert_eq!((times, made.get()), ((at(10), at(100)), 4));
}

/// Goal: random sleeps wake the tasks that polled them last, once, at their deadlines (W1, X10).
/// They are armed by their first poll, and the next event of precise ones is exact (W3).
#[test]
fn histories_wake_each_task_once() {
    for all_precise in [true, false] {
        history(all_precise);
    }
}

struct Sleeper {
    sleep: Sleep,
    hooks: Rc<Hooks>,
    is_coarse: bool,
    was_armed: bool,
    /// Whether it is pending, if it is precise.
    is_pending: bool,
}

fn history(all_precise: bool) {
    let mut rng = Rng::new(7);
    let (sleeps, timers, _) = start();
    let mut tasks: Vec<Sleeper> = Vec::new();
    let steps = if cfg!(miri) { 300 } else { 30_000 };
    for _ in 0..steps {
        let size = rng.below(34);
        let after = Duration::from_nanos(rng.below(1 << size));
        let has_room = tasks.len() < 50;
        let index = rng.below(tasks.len().max(1) as u64) as usize;
        match (rng.below(8), tasks.get_mut(index)) {
            (0 | 1, _) if has_room => {
                let is_coarse = !all_precise && rng.below(2) == 0;
                let sleep =
                    if is_coarse { timers.coarse_sleep(after) } else { timers.sleep(after) };
                tasks.push(Sleeper {
                    sleep,
                    hooks: Hooks::count(),
                    is_coarse,
                    was_armed: false,
                    is_pending: false,
                });
            }
            (2, Some(_)) => drop(tasks.swap_remove(index)),
            (3, Some(Sleeper { sleep, hooks, was_armed, is_pending, .. })) => {
                let past = Instant::from_nanos(rng.below(sleeps.now().as_nanos() + 1));
                let deadline = if rng.one_in(4) { past } else { sleeps.now() + after };
                sleep.reset_at(deadline);
                hooks.wakes.set(0);
                *is_pending = *was_armed;
            }
            (4 | 5, Some(Sleeper { sleep, hooks, was_armed, is_pending, .. })) => {
                let other = if rng.one_in(3) { Hooks::count() } else { Rc::clone(hooks) };
                let before = std::mem::replace(hooks, other);
                let ready = poll_sleep(sleep, hooks).is_ready();
                assert!(Rc::ptr_eq(&before, hooks) || Rc::strong_count(&before) == 1);
                assert_eq!(ready, sleep.deadline() <= sleeps.now());
                if ready {
                    assert!(poll_sleep(sleep, hooks).is_ready(), "ready again");
                    drop(tasks.swap_remove(index));
                } else if !*was_armed {
                    (*was_armed, *is_pending) = (true, true);
                }
            }
            _ => {
                let now = sleeps.now() + after / 8;
                let armed = |task: &Sleeper| Rc::strong_count(&task.hooks) > 1;
                let armed: Vec<_> = tasks.iter().map(armed).collect();
                sleeps.advance(now);
                for (task, armed) in tasks.iter_mut().zip(armed) {
                    let wakes = task.hooks.wakes.get();
                    let is_due = task.sleep.deadline() <= now;
                    task.is_pending &= !is_due;
                    assert!(wakes <= 1 && (wakes == 0 || is_due), "woken early or twice");
                    assert!(task.is_coarse || !armed || !is_due || wakes == 1, "a wakeup is lost");
                }
            }
        }
        if all_precise {
            let pending = tasks.iter().filter(|task| task.is_pending);
            let deadlines: Vec<_> = pending.map(|task| task.sleep.deadline()).collect();
            assert_eq!(sleeps.pending(), deadlines.len());
            assert_eq!(sleeps.next_event(), deadlines.into_iter().min(), "W3");
        }
    }
    while let Some(next) = sleeps.next_event() {
        sleeps.advance(next.max(sleeps.now()));
    }
    assert_eq!(sleeps.pending(), 0);
    assert!(tasks.iter().all(|task| Rc::strong_count(&task.hooks) == 1), "a wakeup is lost");
}
