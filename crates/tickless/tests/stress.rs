//! Everything at once, by chance, from several threads and from callbacks; in the end each
//! arming must have fired or been cancelled, exactly once, and each firing been one call.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use support::{Rng, seed, wait_until};
use tickless::{Builder, CpuId, Fired, HrTimer, Policy, PushOut, Stats, Timeout, Timers};

const SLOTS: usize = 64;
const BASES: u16 = 3;

/// What all threads and callbacks share.
struct World {
    timers: Timers,
    /// Timers come and go here. A slot's lock is only held to clone or to replace.
    slots: Vec<RwLock<Option<Arc<Timer>>>>,
    calls: AtomicU64,
    early: AtomicU64,
    panics: AtomicU64,
    chance: AtomicU64,
}

enum Timer {
    Coarse(Timeout),
    Ranged(HrTimer),
}

/// What a callback panics with on purpose.
struct OnPurpose;

impl World {
    fn rng(&self) -> Rng {
        Rng::new(self.chance.fetch_add(0x5851_f42d_4c95_7f2d, Ordering::Relaxed))
    }

    fn timer(&self, slot: usize) -> Option<Arc<Timer>> {
        self.slots[slot].read().unwrap().clone()
    }

    /// Puts another timer into a slot, or none. The old one is dropped by whoever is the last
    /// to use it: this thread, another, or its own callback.
    fn replace(&self, slot: usize, timer: Option<Timer>) {
        let old = std::mem::replace(&mut *self.slots[slot].write().unwrap(), timer.map(Arc::new));
        drop(old);
    }
}

/// One thing by chance, as threads and callbacks do it.
fn act(world: &Arc<World>, rng: &mut Rng) {
    let slot = rng.below(SLOTS as u64) as usize;
    let after = Duration::from_nanos(rng.of_any_size(22));
    let at = world.timers.now() + after;
    match (rng.below(20), world.timer(slot).as_deref()) {
        (0, _) => world.replace(slot, Some(new_timer(world, rng))),
        (1, _) => world.replace(slot, None),
        (2..8, Some(Timer::Coarse(timer))) => drop(timer.start(after).unwrap()),
        (8, Some(Timer::Coarse(timer))) => drop(timer.reduce(after).unwrap()),
        (9, Some(Timer::Coarse(timer))) => drop(timer.start_at(tickless::Ns(at.0 / 2)).unwrap()),
        (2..8, Some(Timer::Ranged(timer))) => drop(timer.start(after).unwrap()),
        (8..10, Some(Timer::Ranged(timer))) => drop(timer.start_range(at, at + after).unwrap()),
        (10..16, Some(Timer::Coarse(timer))) => drop(timer.cancel()),
        (10..16, Some(Timer::Ranged(timer))) => drop(timer.cancel()),
        (16, _) => drop(world.timers.stats()),
        (17, Some(Timer::Coarse(timer))) => drop(timer.is_active()),
        (18, Some(Timer::Ranged(timer))) => drop(timer.is_active()),
        _ => std::hint::spin_loop(),
    }
}

fn new_timer(world: &Arc<World>, rng: &mut Rng) -> Timer {
    let known = Arc::downgrade(world);
    let callback = move |fired: &mut Fired<'_>| {
        // The world is kept by the test until all is quiet, so this holds no timer alive.
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
        3 => Timer::Ranged(world.timers.hrtimer(callback)),
        _ => Timer::Ranged(world.timers.hrtimer(callback).pinned(base)),
    }
}

fn stress(builder: Builder, seed: u64, time: Duration) -> Stats {
    let world = Arc::new(World {
        timers: builder.bases(BASES).start().unwrap(),
        slots: (0..SLOTS).map(|_| RwLock::new(None)).collect(),
        calls: AtomicU64::new(0),
        early: AtomicU64::new(0),
        panics: AtomicU64::new(0),
        chance: AtomicU64::new(seed),
    });
    let until = Instant::now() + time;
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut rng = world.rng();
                while Instant::now() < until {
                    (0..100).for_each(|_| act(&world, &mut rng));
                }
            });
        }
    });
    // Callbacks may still put new timers in, until there is none that fires.
    wait_until("all is quiet", || {
        (0..SLOTS).for_each(|slot| world.replace(slot, None));
        let before = world.timers.stats();
        before.pending() == 0 && {
            std::thread::sleep(Duration::from_millis(2));
            world.timers.stats().bases == before.bases
                && world.slots.iter().all(|slot| slot.read().unwrap().is_none())
        }
    });
    let stats = world.timers.stats();
    let total = stats.total();
    assert_eq!(total.armed, total.fired + total.cancelled, "each arming has one end: {total:?}");
    assert_eq!(total.fired, world.calls.load(Ordering::Relaxed), "each firing is one call");
    assert_eq!(stats.panics, world.panics.load(Ordering::Relaxed), "only those on purpose");
    assert_eq!(world.early.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::weak_count(&world), 0, "each closure has been dropped");
    stats
}

/// Keeps panics that are on purpose off the screen.
fn hush() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<OnPurpose>() {
            loud(info);
        }
    }));
}

/// Goal: X10, R1, H3, X4 under stress: nothing is lost, fired twice, early, or leaked.
#[test]
fn everything_at_once() {
    let seed = seed("stress", "everything_at_once");
    hush();
    // Any time is good; `TICKLESS_STRESS_MS` for more.
    let given = std::env::var("TICKLESS_STRESS_MS").ok().and_then(|ms| ms.parse().ok());
    let time = Duration::from_millis(given.unwrap_or(300) / 3);
    let setups = [
        Timers::builder(),
        Timers::builder().policy(Policy::Eager).push_out(PushOut::Eager),
        Timers::builder().policy(Policy::RestartAware).system_clock(),
    ];
    for builder in setups {
        let setup = format!("{builder:?}");
        let ended = catch_unwind(AssertUnwindSafe(|| stress(builder, seed, time)));
        let stats = ended.unwrap_or_else(|cause| {
            println!("seed {seed}, {setup}");
            std::panic::resume_unwind(cause)
        });
        println!("{:?}, {} panics", stats.total(), stats.panics);
        assert!(stats.total().fired > 0 && stats.total().cancelled > 100);
    }
}
