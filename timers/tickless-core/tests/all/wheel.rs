//! The wheel in whole bases: W5, W9 and D7, far ahead and where its rounding is worst.
//! `rearm::histories_keep_the_devices_right` compares it with a naive twin, also at the boundaries
//! of its levels.

use crate::support::on;
use crate::support::scene::{HERE, Scene, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{REACHES, TestPlatform};
use std::sync::Arc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::queues::wheel::{LEVELS, REACH};
use tickless_core::time::{Ns, Tick};

const MS: u64 = 1_000_000;

struct Bed {
    scene: Scene,
    timer: AnyTimer,
}

impl Bed {
    fn new(tick: Ns, now: Ns) -> Bed {
        let tick = Tick::new(tick.to_duration()).expect("a valid tick");
        let settings = Settings { tick, ..Settings::default() };
        let bases = Bases::new(TestPlatform::new(1, now), 1, settings);
        let scene = Scene { bases: Arc::new(bases) };
        let timer = scene.timer(Family::Coarse, 0);
        Bed { scene, timer }
    }

    /// Arms the timer, which must be idle. Returns when it comes due.
    fn arm(&self, deadline: Ns) -> Ns {
        let now = self.scene.platform().time();
        let start = || self.timer.start(exactly(deadline), now, Options::default());
        on(HERE, start).expect("it is not shut down");
        self.next_event()
    }

    fn next_event(&self) -> Ns {
        self.scene.bases.next_event(HERE)
    }

    fn fires_at(&self, now: Ns) -> bool {
        self.scene.platform().set_time(now);
        !self.scene.fire(HERE).is_empty()
    }
}

/// Goal: a timer is late by at most 33/256 of its distance plus a tick, and that bound is tight
/// (W9), around the least distance of each level, where it is worst.
#[test]
fn lateness_is_bounded_and_the_bound_is_tight() {
    let mut worst = 0.0_f64;
    for level in 1..LEVELS as u32 {
        let granule = 8u64.pow(level);
        let (reach, steps) = (REACHES[level as usize - 1], if cfg!(miri) { 3 } else { 64 });
        for clk in (0..steps).map(|nth| 8 * granule + nth * granule.div_ceil(steps)) {
            let bed = Bed::new(Ns(MS), Ns(clk * MS));
            let ticks = (clk + reach.saturating_sub(2)..clk + reach + 3)
                .chain((clk + reach..clk + 8 * reach).step_by((reach as usize).div_ceil(5)))
                .flat_map(|tick| [tick, tick.next_multiple_of(granule) + 1]);
            for (tick, before) in ticks.flat_map(|tick| [(tick, 0), (tick, MS - 1)]) {
                let deadline = Ns(tick * MS - before);
                for deadline in [deadline, deadline.after(Ns(MS + granule * MS / 9))] {
                    let due = bed.arm(deadline);
                    assert_eq!(bed.timer.cancel(), Cancel::Pending);
                    worst = worst.max(check_lateness(Ns(clk * MS), deadline, due));
                }
            }
        }
    }
    assert!(cfg!(miri) || worst > 33.0 / 256.0 * 0.99, "the bound could be {worst}");
}

/// Returns a timer's lateness beyond a tick as a fraction of its distance.
fn check_lateness(now: Ns, deadline: Ns, due: Ns) -> f64 {
    let (late, distance) = (due.since(deadline).0, deadline.since(now).0);
    assert!(due >= deadline);
    let beyond = late.saturating_sub(MS);
    assert!(beyond * 256 <= distance * 33, "{deadline:?} from {now:?} is due at {due:?}");
    beyond as f64 / distance as f64
}

/// Goal: timers fire in time after 12 days, 2 years, 2^36 ms and powers of two, with few events.
#[test]
fn timers_fire_in_time_at_any_distance() {
    let ticks = [Ns::from_us(1), ms(1), ms(4), Ns::from_secs(1)];
    let (day, year) = (86_400_000 * MS, 365 * 86_400_000 * MS);
    let far = [12 * day, 13 * day, year, 2 * year, 10 * year, 1 << 31, 1 << 32, 1 << 53];
    let powers_of_ms = [31, 32, 36].map(|power| MS << power);
    let cases =
        ticks.iter().flat_map(|&tick| far.iter().chain(&powers_of_ms).map(move |&d| (tick, d)));
    for (tick, distance) in cases {
        let rearms = distance / (REACH * tick.0);
        if rearms > if cfg!(miri) { 30 } else { 100_000 } {
            continue;
        }
        for start in [0, distance] {
            let bed = Bed::new(tick, Ns(start));
            let deadline = Ns(start + distance);
            bed.arm(deadline);
            let mut wakes = 1;
            while !bed.fires_at(bed.next_event()) {
                wakes += 1;
            }
            let late = bed.scene.platform().time().0.checked_sub(deadline.0).expect("never early");
            let rest = distance.min(REACH * tick.0);
            assert!(late <= rest / 7 + tick.0, "{late} ns late for {deadline:?}");
            assert!(wakes <= rearms + 2, "{wakes} wakes for {deadline:?}");
        }
    }
}

/// Goal: timers can be cancelled while their bucket fires and is read ahead.
#[test]
fn walkers_do_not_follow_cancelled_timers() {
    const TIMERS: usize = 640;
    let scene = Scene::new(Settings::default(), 1);
    let timers: Vec<_> = (0..TIMERS).map(|task| scene.timer(Family::Coarse, task)).collect();
    // One bucket of half a second; the n-th of an eighth has the number 8 n + the eighth.
    let eighth = |timer: usize| (timer % 8) as u64;
    for (task, timer) in timers.iter().enumerate() {
        scene.start(timer, HERE, ms(9_240 + 64 * eighth(task) + 1));
    }
    scene.go(ms(9_752));
    let (mut fired, mut cancelled) = (Vec::new(), Vec::new());
    scene.handle(HERE, |firing| {
        let nth = fired.len();
        fired.push(firing.task);
        if nth % 3 == 2 && nth + 1 < TIMERS / 8 {
            for victim in (1..8).map(|ahead| 8 * (nth + 1) + ahead) {
                assert_eq!(timers[victim].cancel(), Cancel::Pending);
                cancelled.push(victim);
            }
            assert_eq!(scene.bases.check(HERE), Ok(()));
        }
        CallbackResult::Done
    });
    let mut expected: Vec<_> = (0..TIMERS).filter(|timer| !cancelled.contains(timer)).collect();
    expected.sort_by_key(|&timer| eighth(timer));
    assert_eq!(fired, expected);
}
