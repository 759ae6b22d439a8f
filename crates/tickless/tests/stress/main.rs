//! Random operations on all kinds of timers, from several threads and from callbacks. At the end
//! each arming must have fired or been cancelled exactly once, and each expiry been one call.
//!
//! `TICKLESS_STRESS_OPERATIONS` sets the number of operations of the threads in each setup, without
//! those of callbacks. `ci/soak.sh` runs this for an hour, together with `soak`.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[expect(unsafe_code, reason = "fork(2) has no safe function")]
mod soak;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use support::{Rng, seed, wait_until};
use tickless::driver::CpuId;
use tickless::policy::{Deferral, Policy, PushOut, Scan};
use tickless::stats::Stats;
use tickless::time::Instant;
use tickless::{Builder, Fired, HrTimer, Timeout, Timers};

const SLOTS: usize = 64;
const BASES: u16 = 3;

/// The state that all threads and callbacks share.
struct World {
    timers: Timers,
    /// Timers are created and dropped here. A slot's lock is held only to clone or replace its
    /// timer.
    slots: Vec<RwLock<Option<Arc<Timer>>>>,
    calls: AtomicU64,
    early: AtomicU64,
    panics: AtomicU64,
    chance: AtomicU64,
}

enum Timer {
    Coarse(Timeout),
    Precise(HrTimer),
}

/// The payload of intended panics.
struct OnPurpose;

impl World {
    fn rng(&self) -> Rng {
        Rng::new(self.chance.fetch_add(0x5851_f42d_4c95_7f2d, Ordering::Relaxed))
    }

    fn timer(&self, slot: usize) -> Option<Arc<Timer>> {
        self.slots[slot].read().unwrap().clone()
    }

    /// Puts another timer into a slot, or none. The old timer is dropped by its last user: this
    /// thread, another one, or its own callback.
    fn replace(&self, slot: usize, timer: Option<Timer>) {
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
        (2..8, Some(Timer::Coarse(timer))) => drop(timer.start(after).unwrap()),
        (8, Some(Timer::Coarse(timer))) => drop(timer.reduce(after).unwrap()),
        (9, Some(Timer::Coarse(timer))) => drop(timer.start_at(past).unwrap()),
        (2..8, Some(Timer::Precise(timer))) => drop(timer.start(after).unwrap()),
        (8..10, Some(Timer::Precise(timer))) => drop(timer.start_range(at, at + after).unwrap()),
        (10..12, Some(Timer::Coarse(timer))) => drop(timer.cancel()),
        (10..12, Some(Timer::Precise(timer))) => drop(timer.cancel()),
        (12, Some(Timer::Coarse(timer))) => drop(timer.try_cancel()),
        (12, Some(Timer::Precise(timer))) => drop(timer.try_cancel()),
        // In a callback some of these waits would never end, so they return an error.
        (13 | 14, Some(Timer::Coarse(timer))) => drop(timer.cancel_sync()),
        (13 | 14, Some(Timer::Precise(timer))) => drop(timer.cancel_sync()),
        (15, Some(Timer::Coarse(timer))) => drop(timer.cancel_single_shot()),
        (15, Some(Timer::Precise(timer))) => drop(timer.cancel_single_shot()),
        (16, _) if rng.below(50) == 0 => drop(world.timers.stats()),
        (17, Some(Timer::Coarse(timer))) => drop(timer.is_active()),
        (18, Some(Timer::Precise(timer))) => drop(timer.is_active()),
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

fn new_timer(world: &Arc<World>, rng: &mut Rng) -> Timer {
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
        0 => Timer::Coarse(world.timers.timeout(callback)),
        1 => Timer::Coarse(world.timers.timeout(callback).pinned(base)),
        2 => Timer::Coarse(world.timers.timeout(callback).deferrable()),
        3 => Timer::Precise(world.timers.hrtimer(callback).deferred()),
        _ => Timer::Precise(world.timers.hrtimer(callback).pinned(base)),
    }
}

/// A timer that only one thread uses, so that this thread knows when the callback must not run.
struct Own {
    timer: Timer,
    calls: Arc<AtomicU64>,
    inside: Arc<AtomicBool>,
    armed: bool,
    seen: u64,
}

impl Own {
    fn new(world: &World, coarse: bool) -> Own {
        let (calls, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (in_callback, counted) = (Arc::clone(&inside), Arc::clone(&calls));
        let callback = move |fired: &mut Fired<'_>| {
            in_callback.store(true, Ordering::Relaxed);
            // Relaxed, in two steps: only the cancel orders it (X1: writes are visible after a
            // cancel).
            let count = counted.load(Ordering::Relaxed) + 1;
            if count % 3 == 0 {
                fired.restart(Duration::from_micros(count % 50));
            }
            counted.store(count, Ordering::Relaxed);
            in_callback.store(false, Ordering::Relaxed);
        };
        let timer = match coarse {
            true => Timer::Coarse(world.timers.timeout(callback)),
            false => Timer::Precise(world.timers.hrtimer(callback)),
        };
        Own { timer, calls, inside, armed: false, seen: 0 }
    }

    /// Arms it, or cancels it and waits, and checks that the callback did not run since.
    fn act(&mut self, rng: &mut Rng) {
        if !self.armed {
            assert_eq!(self.calls.load(Ordering::Relaxed), self.seen, "ran after a cancel (X1)");
            let after = Duration::from_nanos(rng.of_any_size(18));
            match &self.timer {
                Timer::Coarse(timer) => drop(timer.start(after).unwrap()),
                Timer::Precise(timer) => drop(timer.start(after).unwrap()),
            }
        } else {
            let found = match &self.timer {
                Timer::Coarse(timer) => timer.cancel_sync(),
                Timer::Precise(timer) => timer.cancel_sync(),
            };
            found.unwrap();
            assert!(!self.inside.load(Ordering::Relaxed), "runs after a cancel (X1)");
            self.seen = self.calls.load(Ordering::Relaxed);
        }
        self.armed = !self.armed;
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
                let mut own = [Own::new(&world, true), Own::new(&world, false)];
                for _ in 0..operations / threads / 20 {
                    (0..18).for_each(|_| act(&world, &mut rng));
                    own.iter_mut().for_each(|own| own.act(&mut rng));
                }
                for Own { timer, calls, .. } in own {
                    drop(timer);
                    own_calls.fetch_add(calls.load(Ordering::Relaxed), Ordering::Relaxed);
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

/// Suppresses the messages of intended panics.
fn hush() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<OnPurpose>() {
            loud(info);
        }
    }));
}

/// Goal: X10 (fires or is cancelled), R1 (armed in time), H3 (panics), X4 (drops in callbacks)
/// under stress: no timer is lost, fires twice, is early, or leaks.
#[test]
fn random_operations_lose_no_timer() {
    let seed = seed("stress", "random_operations_lose_no_timer");
    hush();
    let given = std::env::var("TICKLESS_STRESS_OPERATIONS").ok();
    let operations = given.and_then(|count| count.parse().ok()).unwrap_or(400_000);
    for builder in setups() {
        let stats = stress_printing_failures(builder, seed, operations);
        println!("{:?}, {} panics", stats.total(), stats.panics);
        assert!(stats.total().fired > 0 && stats.total().cancelled > 100);
    }
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
