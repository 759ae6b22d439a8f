//! Random histories of sleeps of both kinds.
//!
//! Threads create sleeps, poll and reset them, give them to each other, and drop them: outside, in
//! a waker on a driver thread, in a runtime that is dropped, and after the last handle of their
//! timers. Wakers panic. No sleep is ready before its deadline, each one that a thread waits for
//! wakes it, no registered waker is woken twice, and no waker is leaked.

use crate::support::histories::{OnPurpose, end_after, hush};
use crate::support::{Rng, seed, wait_until};
use std::future::poll_fn;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tickless::Timers;
use tickless::future::{CoarseSleep, Sleep};

enum Either {
    Precise(Pin<Box<Sleep>>),
    Coarse(Pin<Box<CoarseSleep>>),
}

impl Either {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Either::Precise(sleep) => sleep.as_mut().poll(cx),
            Either::Coarse(sleep) => sleep.as_mut().poll(cx),
        }
    }

    fn reset_at(&mut self, deadline: tickless::time::Instant) {
        match self {
            Either::Precise(sleep) => sleep.as_mut().reset_at(deadline),
            Either::Coarse(sleep) => sleep.as_mut().reset_at(deadline),
        }
    }
}

const THREADS: u64 = 3;
const SLOTS: u64 = 12;

/// What the threads and the wakers share.
#[derive(Default)]
struct World {
    /// Sleeps that any thread takes, and that wakers drop.
    exchange: Mutex<Vec<Item>>,
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
struct Reckless(Arc<World>);

impl Wake for Reckless {
    fn wake(self: Arc<Self>) {
        drop(self.0.take());
        self.0.panics.fetch_add(1, Ordering::SeqCst);
        panic_any(OnPurpose);
    }
}

impl World {
    fn take(&self) -> Option<Item> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give(&self, item: Item) {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }
}

/// A sleep and its account.
struct Item {
    sleep: Either,
    timers: Timers,
    world: Arc<World>,
    /// By another clock than the sleep's own.
    deadline: Instant,
    alarm: Arc<Alarm>,
    /// How often a poll has registered the alarm.
    registered: u64,
    /// How many deadlines it has had.
    deadlines: u64,
    is_ready: bool,
}

impl Item {
    fn new(world: &Arc<World>, timers: &Timers, after: Duration) -> Item {
        world.alarms.fetch_add(1, Ordering::SeqCst);
        let deadline = Instant::now() + after;
        Item {
            sleep: match after.as_nanos() % 2 {
                0 => Either::Precise(Box::pin(timers.sleep_until(timers.now() + after))),
                _ => Either::Coarse(Box::pin(timers.coarse_sleep(after))),
            },
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
        if !self.is_ready && self.sleep.poll(&mut Context::from_waker(waker)).is_ready() {
            self.is_ready = true;
            let is_early = Instant::now() < self.deadline;
            self.world.early.fetch_add(u64::from(is_early), Ordering::SeqCst);
            self.world.completed.fetch_add(1, Ordering::SeqCst);
        }
        self.is_ready
    }

    fn poll(&mut self) -> bool {
        let is_ready = self.poll_with(&Waker::from(Arc::clone(&self.alarm)));
        self.registered += u64::from(!is_ready);
        assert!(self.wakeups() <= self.registered.min(self.deadlines), "woken twice");
        is_ready
    }

    fn wakeups(&self) -> u64 {
        self.alarm.count.load(Ordering::SeqCst)
    }

    fn reset(&mut self, after: Duration) {
        (self.deadline, self.is_ready) = (Instant::now() + after, false);
        self.sleep.reset_at(self.timers.now() + after);
        self.deadlines += 1;
    }

    /// Waits for the sleep, and polls it only when it has woken its task.
    fn wait(&mut self, meanwhile: impl FnOnce(&mut Item)) {
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
fn run_in_a_runtime(world: &Arc<World>, timers: &Timers, rng: &mut Rng) {
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

fn act(world: &Arc<World>, mut rng: Rng, end: Instant) {
    let mut slots: Vec<Option<Item>> = (0..SLOTS).map(|_| None).collect();
    let mut timers = new_timers(&mut rng);
    let mut kept = Vec::new();
    while Instant::now() < end {
        let after = Duration::from_nanos(rng.of_any_size(22));
        let slot = &mut slots[rng.below(SLOTS) as usize];
        match (rng.below(16), slot.as_mut()) {
            (0..4, _) => *slot = Some(Item::new(world, &timers, after)),
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
                run_in_a_runtime(world, &timers, &mut rng);
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

/// Goal: W1 (never early), X10 (fires or is cancelled), H3 (panics), H4 (drops). It takes
/// `TICKLESS_SECONDS`, or one and a half.
#[test]
#[cfg_attr(miri, ignore = "a history of a second is too short there to have 100 sleeps")]
fn sleeps_survive_an_attack() {
    hush();
    let mut rng = Rng::new(seed("attack", "sleeps_survive_an_attack"));
    let world = Arc::<World>::default();
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
