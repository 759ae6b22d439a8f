//! Random histories of sleeps, for every type that sleeps on the library's timers.
//!
//! Threads create sleeps, poll and reset them, give them to each other, and drop them: outside, in
//! a waker on a driver thread, in a runtime that is dropped, and after the last handle of their
//! timers. Wakers panic. No sleep is ready before its deadline, each one that a thread waits for
//! wakes it, no registered waker is woken twice, and no waker is leaked.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use super::histories::{OnPurpose, Rng, end_after, hush, seed, wait_until};
use std::future::poll_fn;
use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless::future::TimerSource;

/// A future that sleeps.
pub trait Sleeper: Send + 'static {
    /// Each deadline wakes the task at most once. Otherwise each poll does.
    const WAKES_ONCE: bool = true;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Sets another deadline. Returns `false` if this type cannot do so.
    fn reset(&mut self, _: Instant) -> bool {
        false
    }
}

/// How a type reads its clock and makes its sleeps.
#[derive(Clone, Copy)]
pub struct Kind<S> {
    pub now: fn(&TimerSource) -> Instant,
    pub sleep_until: fn(&TimerSource, Instant) -> S,
}

const THREADS: u64 = 3;
const SLOTS: u64 = 12;

/// What the threads and the wakers share.
struct World<S> {
    kind: Kind<S>,
    /// Sleeps that any thread takes, and that wakers drop.
    exchange: Mutex<Vec<Item<S>>>,
    alarms: Arc<AtomicU64>,
    early: AtomicU64,
    completed: AtomicU64,
    panics: AtomicU64,
}

/// The waker of one sleep. Counts its wakeups.
struct Alarm {
    /// The number of alarms that exist.
    alive: Arc<AtomicU64>,
    count: AtomicU64,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A waker that drops another sleep on the driver's thread, and panics.
struct Reckless<S>(Arc<World<S>>);

impl<S: Sleeper> Wake for Reckless<S> {
    fn wake(self: Arc<Self>) {
        drop(self.0.take());
        self.0.panics.fetch_add(1, Ordering::SeqCst);
        panic_any(OnPurpose);
    }
}

impl<S> World<S> {
    fn take(&self) -> Option<Item<S>> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give(&self, item: Item<S>) {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }
}

/// A sleep and its account.
struct Item<S> {
    sleeper: S,
    timers: TimerSource,
    world: Arc<World<S>>,
    deadline: Instant,
    alarm: Arc<Alarm>,
    /// How often a poll has registered the alarm.
    registered: u64,
    /// How many deadlines it has had.
    deadlines: u64,
    is_ready: bool,
}

impl<S: Sleeper> Item<S> {
    fn new(world: &Arc<World<S>>, timers: &TimerSource, after: Duration) -> Item<S> {
        world.alarms.fetch_add(1, Ordering::SeqCst);
        let deadline = (world.kind.now)(timers) + after;
        Item {
            sleeper: (world.kind.sleep_until)(timers, deadline),
            timers: timers.clone(),
            world: Arc::clone(world),
            deadline,
            alarm: Arc::new(Alarm { alive: Arc::clone(&world.alarms), count: AtomicU64::new(0) }),
            registered: 0,
            deadlines: 1,
            is_ready: false,
        }
    }

    /// Polls with some waker. Returns whether the sleep is ready.
    fn poll_with(&mut self, waker: &Waker) -> bool {
        if !self.is_ready && self.sleeper.poll(&mut Context::from_waker(waker)).is_ready() {
            self.is_ready = true;
            let is_early = (self.world.kind.now)(&self.timers) < self.deadline;
            self.world.early.fetch_add(u64::from(is_early), Ordering::SeqCst);
            self.world.completed.fetch_add(1, Ordering::SeqCst);
        }
        self.is_ready
    }

    fn poll(&mut self) -> bool {
        let is_ready = self.poll_with(&Waker::from(Arc::clone(&self.alarm)));
        self.registered += u64::from(!is_ready);
        let most = if S::WAKES_ONCE { self.deadlines } else { u64::MAX };
        assert!(self.wakeups() <= self.registered.min(most), "woken twice");
        is_ready
    }

    fn wakeups(&self) -> u64 {
        self.alarm.count.load(Ordering::SeqCst)
    }

    fn reset(&mut self, after: Duration) {
        let deadline = (self.world.kind.now)(&self.timers) + after;
        if self.sleeper.reset(deadline) {
            (self.deadline, self.is_ready) = (deadline, false);
            self.deadlines += 1;
        }
    }

    /// Waits for the sleep, and polls it only when it has woken its task.
    fn wait(&mut self, meanwhile: impl FnOnce(&mut Item<S>)) {
        let mut meanwhile = Some(meanwhile);
        loop {
            let seen = self.wakeups();
            if self.poll() {
                return;
            }
            // A pending sleep that is reset needs no poll to wake its task.
            if let Some(act) = meanwhile.take() {
                act(self);
            }
            wait_until("the sleep wakes its task", || self.wakeups() > seen);
        }
    }
}

/// Some sleeps in tasks of a runtime that is dropped when the first has completed.
fn run_in_a_runtime<S: Sleeper>(world: &Arc<World<S>>, timers: &TimerSource, rng: &mut Rng) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for _ in 0..rng.below(6) {
        let mut item = Item::new(world, timers, Duration::from_nanos(rng.of_any_size(24)));
        let panics = rng.below(3) == 0;
        runtime.spawn(poll_fn(move |cx| match item.poll_with(cx.waker()) {
            true if panics => panic_any(OnPurpose),
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
    }
    let mut first = Item::new(world, timers, Duration::from_nanos(rng.of_any_size(20)));
    runtime.block_on(poll_fn(|cx| match first.poll_with(cx.waker()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }));
}

fn new_timers(rng: &mut Rng) -> Timers {
    let builder = Timers::builder().bases(1 + rng.below(2) as u16);
    let builder = if rng.below(2) == 0 { builder.expiry_threads() } else { builder };
    builder.start().expect("the system starts threads")
}

fn act<S: Sleeper>(world: &Arc<World<S>>, mut rng: Rng, end: Instant) {
    let mut slots: Vec<Option<Item<S>>> = (0..SLOTS).map(|_| None).collect();
    let mut timers = new_timers(&mut rng);
    let mut kept = Vec::new();
    while Instant::now() < end {
        let after = Duration::from_nanos(rng.of_any_size(22));
        let slot = &mut slots[rng.below(SLOTS) as usize];
        match (rng.below(16), slot.as_mut()) {
            (0..4, _) => *slot = Some(Item::new(world, &TimerSource::from(&timers), after)),
            (4..7, Some(item)) => _ = item.poll(),
            (7..9, Some(item)) => item.reset(after),
            (9, _) => *slot = None,
            (10, _) => {
                let other = world.take();
                let own = std::mem::replace(slot, other);
                own.into_iter().for_each(|item| world.give(item));
            }
            (11, Some(item)) => item.wait(|_| {}),
            (12, Some(item)) => item.wait(|item| item.reset(after)),
            (13, Some(item)) => {
                _ = item.poll_with(&Waker::from(Arc::new(Reckless(Arc::clone(world)))));
            }
            (14, _) if rng.below(8) == 0 => {
                run_in_a_runtime(world, &TimerSource::from(&timers), &mut rng);
            }
            // The sleeps outlive the handle, unless its counts are checked at the end.
            (15, _) if rng.below(20) == 0 => {
                let old = std::mem::replace(&mut timers, new_timers(&mut rng));
                kept.extend((kept.len() < 4 && rng.below(2) == 0).then_some(old));
            }
            _ => {}
        }
    }
    slots.iter_mut().flatten().filter(|_| rng.below(2) == 0).for_each(|item| item.wait(|_| {}));
    drop(slots);
    kept.push(timers);
    for timers in kept {
        // Other threads may still have sleeps of these timers.
        wait_until("no sleep is left", || {
            drop(world.take());
            timers.stats().pending() == 0
        });
        let total = timers.stats().total();
        assert_eq!(total.armed, total.fired + total.cancelled, "each arming has one end");
    }
}

/// Runs the histories of one type, for `TICKLESS_SECONDS` or one and a half.
pub fn attack<S: Sleeper>(file: &str, test: &str, kind: Kind<S>) {
    hush();
    let mut rng = Rng::new(seed(file, test));
    let world = Arc::new(World {
        kind,
        exchange: Mutex::default(),
        alarms: Arc::default(),
        early: AtomicU64::new(0),
        completed: AtomicU64::new(0),
        panics: AtomicU64::new(0),
    });
    let end = end_after(Duration::from_millis(1_500));
    std::thread::scope(|s| {
        for _ in 0..THREADS {
            let (world, rng) = (&world, Rng::new(rng.next()));
            s.spawn(move || act(world, rng, end));
        }
    });
    while let Some(item) = world.take() {
        drop(item);
    }
    let completed = world.completed.load(Ordering::SeqCst);
    println!("{completed} sleeps completed, {} panics", world.panics.load(Ordering::SeqCst));
    assert!(completed > 100);
    assert_eq!(world.early.load(Ordering::SeqCst), 0, "early");
    wait_until("no waker is left", || world.alarms.load(Ordering::SeqCst) == 0);
}
