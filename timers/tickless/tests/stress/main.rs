//! Random operations on all kinds of timers, from several threads and from callbacks. At the end
//! each arming must have fired or been cancelled exactly once, and each expiry been one call.
//!
//! `TICKLESS_STRESS_OPERATIONS` sets the number of operations of the threads in each setup, without
//! those of callbacks. `ci/soak.sh` runs this for an hour, together with `soak`.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../support/in_child.rs"]
#[expect(unsafe_code, reason = "fork(2) has no safe function")]
mod in_child;
mod soak;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use support::histories::{OnPurpose, end_after, given, hush};
use support::{AnyTimer, Rng, seed, wait_until};
use tickless::callback::{Cancel, Started};
use tickless::driver::CpuId;
use tickless::policy::{Deferral, Policy, PushOut, Scan};
use tickless::stats::Stats;
use tickless::time::{Instant, Tick};
use tickless::{Builder, Fired, Timers};

const SLOTS: usize = 64;
const BASES: u16 = 3;

/// The state that all threads and callbacks share.
struct World {
    timers: Timers,
    /// Timers are created and dropped here. Its slot's lock is held only to clone or replace it.
    slots: Vec<RwLock<Option<Arc<AnyTimer>>>>,
    calls: AtomicU64,
    early: AtomicU64,
    panics: AtomicU64,
    chance: AtomicU64,
}

impl World {
    fn rng(&self) -> Rng {
        Rng::new(self.chance.fetch_add(0x5851_f42d_4c95_7f2d, Ordering::Relaxed))
    }

    fn timer(&self, slot: usize) -> Option<Arc<AnyTimer>> {
        self.slots[slot].read().unwrap().clone()
    }

    /// Puts another timer into a slot, or none. The old timer is dropped by its last user: this
    /// thread, another one, or its own callback.
    fn replace(&self, slot: usize, timer: Option<AnyTimer>) {
        let old = std::mem::replace(&mut *self.slots[slot].write().unwrap(), timer.map(Arc::new));
        drop(old);
    }
}

/// Performs one random operation, as threads and callbacks do.
fn act(world: &Arc<World>, rng: &mut Rng) {
    let slot = rng.below(SLOTS as u64) as usize;
    let after = Duration::from_nanos(rng.of_any_size(22));
    let at = world.timers.now() + after;
    let past = Instant::from_nanos(at.as_nanos() / 2);
    match (rng.below(20), world.timer(slot).as_deref()) {
        (0, _) => world.replace(slot, Some(new_timer(world, rng))),
        (1, _) => world.replace(slot, None),
        (2..8, Some(timer)) => drop(timer.start(after).unwrap()),
        (8, Some(AnyTimer::Coarse(timer))) => drop(timer.reduce(after).unwrap()),
        (9, Some(AnyTimer::Coarse(timer))) => drop(timer.start_at(past).unwrap()),
        (8..10, Some(AnyTimer::Precise(timer))) => drop(timer.start_range(at, at + after).unwrap()),
        (10..12, Some(timer)) => drop(timer.cancel()),
        (12, Some(timer)) => drop(timer.try_cancel()),
        // In a callback some of these waits would never end, so they return an error.
        (13 | 14, Some(timer)) => drop(timer.cancel_sync()),
        (15, Some(timer)) => drop(timer.cancel_single_shot()),
        (16, _) if rng.below(50) == 0 => drop(world.timers.stats()),
        (17 | 18, Some(timer)) => drop(timer.is_active()),
        (19, _) if rng.below(200) == 0 => {
            let base = CpuId(rng.below(u64::from(BASES)) as u16);
            match rng.below(2) {
                0 => drop(world.timers.offline(base)),
                _ => world.timers.online(base).unwrap(),
            }
        }
        _ => std::hint::spin_loop(),
    }
}

fn new_timer(world: &Arc<World>, rng: &mut Rng) -> AnyTimer {
    let known = Arc::downgrade(world);
    let callback = move |fired: &mut Fired<'_>| {
        // Weak: the test owns the world until all threads have ended, so this keeps no timer alive.
        let Some(world) = known.upgrade() else { return };
        world.calls.fetch_add(1, Ordering::Relaxed);
        world.early.fetch_add(u64::from(fired.now() < fired.deadline()), Ordering::Relaxed);
        let mut rng = world.rng();
        for _ in 0..rng.below(4) {
            act(&world, &mut rng);
        }
        match rng.below(8) {
            0 => fired.restart(Duration::from_nanos(rng.of_any_size(22))),
            1 => drop(fired.forward(Duration::from_micros(100))),
            2 if rng.below(20) == 0 => {
                world.panics.fetch_add(1, Ordering::Relaxed);
                panic_any(OnPurpose);
            }
            _ => {}
        }
    };
    let base = CpuId(rng.below(u64::from(BASES)) as u16);
    match rng.below(5) {
        0 => AnyTimer::Coarse(world.timers.timeout(callback)),
        1 => AnyTimer::Coarse(world.timers.timeout(callback).pinned(base)),
        2 => AnyTimer::Coarse(world.timers.timeout(callback).deferrable()),
        3 => AnyTimer::Precise(world.timers.hrtimer(callback).deferred()),
        _ => AnyTimer::Precise(world.timers.hrtimer(callback).pinned(base)),
    }
}

/// A timer that only one thread uses, so that this thread can account for each arming.
struct Own {
    timer: AnyTimer,
    account: Arc<Account>,
    armed: bool,
}

/// Written by the callback and its thread in turn. Relaxed: only arming and cancelling order the
/// accesses (X1: writes are visible after a cancel).
#[derive(Default)]
struct Account {
    /// The armings by the thread and by the callback.
    armings: AtomicU64,
    /// The armings that were cancelled.
    cancelled: AtomicU64,
    calls: AtomicU64,
    /// The deadline of the last arming.
    due: AtomicU64,
    early: AtomicU64,
    inside: AtomicBool,
}

impl Account {
    fn arm(&self, deadline: Instant) {
        self.due.store(deadline.as_nanos(), Ordering::Relaxed);
        add(&self.armings, 1);
    }

    fn call(&self, fired: &mut Fired<'_>) {
        self.inside.store(true, Ordering::Relaxed);
        add(&self.early, u64::from(fired.now().as_nanos() < self.due.load(Ordering::Relaxed)));
        let count = self.calls.load(Ordering::Relaxed) + 1;
        if count % 3 == 0 {
            let deadline = fired.now() + Duration::from_micros(count % 50);
            self.arm(deadline);
            fired.restart_range(deadline, deadline);
        }
        self.calls.store(count, Ordering::Relaxed);
        self.inside.store(false, Ordering::Relaxed);
    }

    /// Returns the number of armings that have not ended.
    fn open(&self) -> u64 {
        let ended = self.calls.load(Ordering::Relaxed) + self.cancelled.load(Ordering::Relaxed);
        self.armings.load(Ordering::Relaxed).checked_sub(ended).expect("an arming has fired twice")
    }
}

/// Adds in two steps, which lose an addition of another thread.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

impl Own {
    fn new(world: &World, kind: u64) -> Own {
        let account = Arc::<Account>::default();
        let used = Arc::clone(&account);
        let callback = move |fired: &mut Fired<'_>| used.call(fired);
        let timer = match kind {
            0 => AnyTimer::Coarse(world.timers.timeout(callback)),
            1 => AnyTimer::Precise(world.timers.hrtimer(callback)),
            2 => AnyTimer::Coarse(world.timers.timeout(callback).pinned(CpuId(BASES - 1))),
            _ => AnyTimer::Precise(world.timers.hrtimer(callback).deferred()),
        };
        Own { timer, account, armed: false }
    }

    /// Arms it, or cancels it and waits, and accounts for its calls since then.
    fn act(&mut self, timers: &Timers, rng: &mut Rng) {
        let Own { timer, account, armed } = self;
        assert_eq!(account.early.load(Ordering::Relaxed), 0, "early (W1)");
        if !*armed {
            assert_eq!(account.open(), 0, "ran after a cancel (X1)");
            let after = Duration::from_nanos(rng.of_any_size(18));
            account.arm(timers.now() + after);
            assert_eq!(timer.start(after), Ok(Started::Idle));
        } else {
            let found = timer.cancel_sync();
            assert!(!account.inside.load(Ordering::Relaxed), "runs after a cancel (X1)");
            let open = account.open();
            match found.unwrap() {
                Cancel::Pending => assert_eq!(open, 1, "the cancelled arming (X10)"),
                Cancel::Idle => assert_eq!(open, 0, "an arming is lost (X10)"),
                // The callback may have restarted the timer.
                Cancel::Running => assert!(open <= 1, "an arming is lost (X10)"),
            }
            add(&account.cancelled, open);
        }
        *armed = !*armed;
    }
}

fn stress(builder: Builder, seed: u64, operations: u64) -> Stats {
    let world = Arc::new(World {
        timers: builder.bases(BASES).start().unwrap(),
        slots: (0..SLOTS).map(|_| RwLock::new(None)).collect(),
        calls: AtomicU64::new(0),
        early: AtomicU64::new(0),
        panics: AtomicU64::new(0),
        chance: AtomicU64::new(seed),
    });
    let threads = 4 * std::thread::available_parallelism().map_or(2, |cpus| cpus.get() as u64);
    let own_calls = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let mut rng = world.rng();
                let mut own = [0, 1, 2, 3].map(|kind| Own::new(&world, kind));
                for _ in 0..operations / threads / 22 {
                    (0..18).for_each(|_| act(&world, &mut rng));
                    own.iter_mut().for_each(|own| own.act(&world.timers, &mut rng));
                }
                for Own { timer, account, .. } in own {
                    drop(timer);
                    own_calls.fetch_add(account.calls.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            });
        }
    });
    (0..BASES).for_each(|base| world.timers.online(CpuId(base)).unwrap());
    // Callbacks may still put new timers into slots. A running callback owns its closure, so once
    // all closures have been dropped, no callback is left to create another.
    wait_until("each closure has been dropped", || {
        (0..SLOTS).for_each(|slot| world.replace(slot, None));
        Arc::weak_count(&world) == 0
    });
    let stats = world.timers.stats();
    let total = stats.total();
    assert_eq!(total.armed, total.fired + total.cancelled, "each arming has one end: {total:?}");
    let calls = world.calls.load(Ordering::Relaxed) + own_calls.load(Ordering::Relaxed);
    assert_eq!(total.fired, calls, "each firing is one call");
    assert_eq!(stats.panics, world.panics.load(Ordering::Relaxed), "only those on purpose");
    assert_eq!((stats.pending(), world.early.load(Ordering::Relaxed)), (0, 0));
    stats
}

/// Goal: X10 (fires or is cancelled), R1 (armed in time), H3 (panics), X4 (drops in callbacks)
/// under stress.
#[test]
fn random_operations_lose_no_timer() {
    let seed = seed("stress", "random_operations_lose_no_timer");
    hush();
    let operations = given("TICKLESS_STRESS_OPERATIONS").unwrap_or(400_000);
    for builder in setups() {
        let stats = stress_printing_failures(builder, seed, operations);
        println!("{:?}, {} panics", stats.total(), stats.panics);
        assert!(stats.total().fired > 0 && stats.total().cancelled > 100);
    }
}

/// Goal: D3, D6, D8, D9 (deferred expiry), W1 (never early), X10 (fires or is cancelled).
#[test]
fn deferred_expiry_ends_each_arming_once() {
    let mut rng = Rng::new(seed("stress", "deferred_expiry_ends_each_arming_once"));
    hush();
    let end = end_after(Duration::from_secs(5));
    let (mut reliefs, mut merged) = (0, 0);
    while std::time::Instant::now() < end {
        let deferral = [Deferral::OnExpiry, Deferral::EveryTick][rng.below(2) as usize];
        let tick = Duration::from_nanos(10_000 + rng.of_any_size(20));
        let builder = Timers::builder()
            .deferral(deferral)
            .patience(Duration::from_nanos(rng.of_any_size(22)))
            .tick(Tick::new(tick).unwrap())
            .push_out([PushOut::Lazy, PushOut::Eager][rng.below(2) as usize]);
        let builder = if rng.below(3) == 0 { builder.ticking() } else { builder };
        for base in &stress_printing_failures(builder, rng.next(), 40_000).bases {
            reliefs += base.deferred.reliefs;
            merged += base.deferred.merged;
        }
    }
    println!("{reliefs} reliefs, {merged} merged collections");
    assert!(reliefs > 0 && merged > 0);
}

fn setups() -> [Builder; 5] {
    [
        Timers::builder(),
        Timers::builder().policy(Policy::Eager).push_out(PushOut::Eager),
        Timers::builder().policy(Policy::RestartAware).system_clock().scan(Scan::AllBases),
        Timers::builder().deferral(Deferral::OnExpiry).patience(Duration::from_millis(1)),
        Timers::builder().deferral(Deferral::EveryTick),
    ]
}

/// Runs `stress`; prints its setup and seed if it panics.
fn stress_printing_failures(builder: Builder, seed: u64, operations: u64) -> Stats {
    let setup = format!("{builder:?}");
    let ended = catch_unwind(AssertUnwindSafe(|| stress(builder, seed, operations)));
    ended.unwrap_or_else(|cause| {
        println!("seed {seed}, {setup}");
        std::panic::resume_unwind(cause)
    })
}
