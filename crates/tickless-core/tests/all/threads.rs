//! X1, X5, X10 and the accounting of armings with real threads on real atomics, also under Miri.

use crate::support::random::{Random, with_seeds};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{TestPlatform, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::{BaseCounts, Bases, IfPending, Options, Settings};
use tickless_core::time::{CpuId, Ns, Window};

const BASES: u16 = 3;

/// Relaxed: all ordering has to come from the code under test.
const RELAXED: Ordering = Ordering::Relaxed;

fn bases() -> Arc<Bases<TestPlatform>> {
    Arc::new(Bases::new(TestPlatform::new(BASES, Ns(1)), BASES, Settings::default()))
}

fn counts(bases: &Bases<TestPlatform>) -> BaseCounts {
    let views = (0..BASES).filter_map(|cpu| bases.view(CpuId(cpu)));
    views.fold(BaseCounts::default(), |sum, view| sum.plus(view.counts))
}

/// The state that the threads of a test share.
struct Shared {
    bases: Arc<Bases<TestPlatform>>,
    timers: Vec<AnyTimer>,
    fired: Vec<AtomicU64>,
    /// By timer: whether its callback runs.
    busy: Vec<AtomicBool>,
    stop: AtomicBool,
}

impl Shared {
    fn callback(&self, firing: &Firing<TestPlatform>, random: &mut Random) -> CallbackResult {
        let (id, now) = (firing.task, firing.now);
        assert!(!self.busy[id].swap(true, RELAXED), "X2: a timer overlaps itself");
        assert!(now >= firing.window.soft, "W1: early");
        self.fired[id].fetch_add(1, RELAXED);
        if random.one_in(4) {
            self.operate(random);
        }
        self.busy[id].store(false, RELAXED);
        match random.below(4) {
            0 => CallbackResult::Restart(exactly(now.after(Ns(random.below(5_000_000))))),
            _ => CallbackResult::Done,
        }
    }

    fn operate(&self, random: &mut Random) {
        let cpu = CpuId(random.below(BASES.into()) as u16);
        let timer = &self.timers[random.below(self.timers.len() as u64) as usize];
        let now = self.bases.platform().time();
        match random.below(8) {
            0..3 => _ = timer.cancel(),
            3 => _ = timer.is_active(),
            draw => {
                let soft = now.after(Ns(random.below(3_000_000)));
                let window = Window::new(soft, soft.after(Ns(random.below(1_000))));
                let pending = if draw == 4 { IfPending::Reduce } else { IfPending::Rearm };
                let pinned = random.one_in(4).then_some(cpu);
                let options = Options { pending, pinned, ..Options::default() };
                on(cpu, || timer.start(window, now, options)).expect("not shut down");
            }
        }
    }

    /// A driver: time passes, and what is due on some base fires.
    fn drive(&self, random: &mut Random) {
        let world = self.bases.platform();
        world.set_time(world.time().after(Ns(random.below(400_000))));
        let cpu = CpuId(random.below(BASES.into()) as u16);
        on(cpu, || self.bases.expire(cpu, |firing| self.callback(firing, random)));
    }
}

/// Returns whether each kind of event has occurred often enough.
fn is_worthwhile(sum: &BaseCounts) -> bool {
    sum.fired > 100 && sum.cancelled > 100 && sum.migrated > 100
}

/// Goal: each arming ends once, no timer overlaps itself, and none is stuck at the end (X2, X10).
#[test]
fn every_arming_ends_once() {
    with_seeds(1, |seed| {
        println!("TICKLESS_SEED={seed:#x}");
        let timers: usize = if cfg!(miri) { 4 } else { 24 };
        let bases = bases();
        let shared = Shared {
            timers: (0..timers).map(|id| AnyTimer::new(&bases, Family::BOTH[id % 2], id)).collect(),
            fired: (0..timers).map(|_| AtomicU64::new(0)).collect(),
            busy: (0..timers).map(|_| AtomicBool::new(false)).collect(),
            stop: AtomicBool::new(false),
            bases,
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (mut random, shared) = (Random::new(seed ^ thread), &shared);
                scope.spawn(move || {
                    for _ in 0..if cfg!(miri) { 60 } else { u64::MAX } {
                        if shared.stop.load(RELAXED) {
                            break;
                        }
                        match thread % 2 {
                            0 => shared.operate(&mut random),
                            _ => shared.drive(&mut random),
                        }
                    }
                });
            }
            // Longer on a busy machine.
            let begun = Instant::now();
            let (least, most) = (Duration::from_millis(300), Duration::from_secs(60));
            while !cfg!(miri)
                && (begun.elapsed() < least
                    || !is_worthwhile(&counts(&shared.bases)) && begun.elapsed() < most)
            {
                std::thread::park_timeout(Duration::from_millis(20));
            }
            shared.stop.store(!cfg!(miri), RELAXED);
        });
        let pending = shared.timers.iter().filter(|timer| timer.is_pending()).count() as u64;
        let sum = counts(&shared.bases);
        let fired: u64 = shared.fired.iter().map(|fired| fired.load(RELAXED)).sum();
        assert_eq!(sum.fired, fired);
        assert_eq!(sum.armed, sum.fired + sum.cancelled + pending, "{sum:?}");
        assert!(shared.timers.iter().all(|timer| !timer.is_running()));
        assert!(cfg!(miri) || is_worthwhile(&sum), "{sum:?}");
        for cpu in 0..BASES {
            assert_eq!(shared.bases.check(CpuId(cpu)), Ok(()));
        }
    });
}

/// Goal: a thread that has waited for a timer sees what its callback wrote (X1), and cannot arm it
/// after a shut-down (X5).
#[test]
fn a_waiter_sees_what_the_callback_wrote() {
    let bases = bases();
    for round in 0..if cfg!(miri) { 16 } else { 3_000 } {
        let timers: Vec<_> =
            (0..3).map(|id| AnyTimer::new(&bases, Family::BOTH[id % 2], id)).collect();
        let wrote: Vec<_> = timers.iter().map(|_| AtomicU64::new(0)).collect();
        let now = bases.platform().time();
        for timer in &timers {
            timer.start(exactly(now), now, Options::default()).expect("just made");
        }
        bases.platform().set_time(now.after(Ns::from_ms(1)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                bases.expire(CpuId(0), |firing| {
                    for value in 1..=3 {
                        wrote[firing.task].store(value, RELAXED);
                    }
                    CallbackResult::Done
                })
            });
            for (timer, wrote) in timers.iter().zip(&wrote) {
                while round % 2 == 0 && timer.is_active() {
                    std::thread::yield_now();
                }
                let fired = round % 2 == 0 || timer.shutdown_sync() != Cancel::Pending;
                let expected = if fired { 3 } else { 0 };
                assert_eq!(wrote.load(RELAXED), expected, "X1: what the callback wrote");
                timer.shutdown();
                let again = timer.start(exactly(now), now, Options::default());
                assert!(again.is_err() && !timer.is_active(), "X5: armed after its shut-down");
            }
        });
    }
    let sum = counts(&bases);
    assert_eq!(sum.armed, sum.fired + sum.cancelled);
}
