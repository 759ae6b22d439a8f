//! R13: event devices that lose events or deliver them early or late: no timer is early or lost,
//! and late ones are counted.

use crate::support::on;
use crate::support::random::{Random, is_replay, with_seeds};
use crate::support::scene::{HERE, Scene, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use std::cell::Cell;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Options, Settings};
use tickless_core::rearm::{DeviceCounts, Limits, Policy};
use tickless_core::time::Ns;

/// How often the base is checked, independent of the device.
const RECHECK: Ns = ms(10);

#[derive(Clone, Copy, Debug)]
struct Faults {
    /// It loses one event of this many; 0 for none.
    loses: u64,
    late_max: Ns,
    /// It delivers a spurious event at one of this many times; 0 for none.
    spurious: u64,
}

impl Faults {
    fn random(random: &mut Random) -> Faults {
        Faults {
            loses: random.pick(&[0, 1, 3, 10]),
            late_max: random.pick(&[Ns::ZERO, Ns(1), Ns::from_us(100), ms(30)]),
            spurious: random.pick(&[0, 2, 10]),
        }
    }
}

struct Stage {
    scene: Scene,
    timers: Vec<(AnyTimer, Family)>,
    faults: Faults,
    recheck_at: Ns,
    /// When the device delivers its event, and for which write that was decided.
    event: (u64, Ns),
    fired: u64,
    fired_late: u64,
}

impl Stage {
    fn new(random: &mut Random) -> Stage {
        let settings = Settings { policy: random.pick(&Policy::ALL), ..Settings::default() };
        let scene = Scene::new(settings, 1);
        let family = |id: usize| Family::BOTH[id % 2];
        let timers = (0..10).map(|id| (scene.timer(family(id), id), family(id))).collect();
        let faults = Faults::random(random);
        let recheck_at = scene.platform().time().after(RECHECK);
        Stage { scene, timers, faults, recheck_at, event: (0, Ns::NEVER), fired: 0, fired_late: 0 }
    }

    fn device(&self) -> DeviceCounts {
        self.scene.bases.view(HERE).expect("there is one base").device
    }

    /// Returns when the device delivers the event of its last write, if ever.
    fn event(&mut self, random: &mut Random) -> Ns {
        let (writes, armed) =
            (self.scene.platform().writes(HERE), self.scene.platform().armed(HERE));
        if self.event.0 != writes {
            let is_lost = self.faults.loses > 0 && random.one_in(self.faults.loses);
            let late = Ns(random.below(self.faults.late_max.0 + 1));
            self.event = (writes, if is_lost { Ns::NEVER } else { armed.after(late) });
        }
        if armed == Ns::NEVER { Ns::NEVER } else { self.event.1 }
    }

    /// Advances to the next event of the device or the next check of the base.
    fn advance(&mut self, random: &mut Random) {
        let event = self.event(random);
        let is_spurious = self.faults.spurious > 0 && random.one_in(self.faults.spurious);
        let now = self.scene.platform().time();
        let at = match is_spurious {
            true => now.after(Ns(random.below(ms(2).0))).min(event).min(self.recheck_at),
            false => event.min(self.recheck_at),
        };
        self.scene.platform().set_time(at);
        let now = self.scene.platform().time();
        if now >= self.recheck_at {
            self.recheck_at = now.after(RECHECK);
        }
        self.check(now);
    }

    fn check(&mut self, now: Ns) {
        let before = self.device();
        let (mut fired, mut late) = (0, 0);
        let families: Vec<Family> = self.timers.iter().map(|(_, family)| *family).collect();
        self.scene.handle(HERE, |firing| {
            assert!(firing.now >= firing.window.soft, "early");
            // A coarse timer comes due up to a tick after its deadline.
            let granule = match families[firing.task] {
                Family::Coarse => ms(1),
                Family::Precise => Ns::ZERO,
            };
            let late_by = firing.now.since(firing.window.hard).since(granule);
            assert!(late_by <= RECHECK, "{late_by:?} late, though the base was checked");
            fired += 1;
            late += u64::from(late_by > Ns::ZERO);
            CallbackResult::Done
        });
        assert_eq!(self.scene.platform().time(), now);
        self.scene.bases.check(HERE).expect("a consistent base");
        let device = self.device().since(before);
        if late > 0 {
            assert_eq!(device.late, 1, "{late} timers were late and not counted");
        }
        self.fired += fired;
        self.fired_late += late;
    }

    fn play(&mut self, random: &mut Random) {
        for _ in 0..300 {
            let now = self.scene.platform().time();
            let timer = &self.timers[random.below(self.timers.len() as u64) as usize].0;
            match random.below(4) {
                0 => drop(on(HERE, || timer.cancel())),
                1 | 2 => {
                    let at = now.after(Ns(1 + random.below(ms(20).0)));
                    let started = on(HERE, || timer.start(exactly(at), now, Options::default()));
                    started.expect("a timer that is not shut down");
                }
                _ => self.advance(random),
            }
        }
        // The remaining timers fire, whatever the faults.
        for _ in 0..8 {
            self.faults.spurious = 0;
            self.advance(random);
        }
        let limit = self.scene.platform().time().after(ms(40));
        while self.scene.platform().time() < limit {
            self.advance(random);
        }
        let view = self.scene.bases.view(HERE).expect("there is one base");
        assert_eq!(view.coarse + view.precise, 0, "lost: {:?}", self.faults);
        assert_eq!(view.counts.armed, view.counts.fired + view.counts.cancelled);
        assert_eq!(view.counts.fired, self.fired);
    }
}

/// Goal: on a faulty device no timer is early, lost, or later than the next check of its base,
/// every 10 ms, and each late check is counted (R13, W1).
#[test]
fn histories_on_faulty_devices_lose_nothing() {
    let seen = [const { Cell::new(0) }; 3];
    let see = |place: usize, count: u64| seen[place].set(seen[place].get() + count);
    with_seeds(if cfg!(miri) { 3 } else { 600 }, |seed| {
        let mut random = Random::new(seed);
        let mut stage = Stage::new(&mut random);
        stage.play(&mut random);
        let device = stage.device();
        see(0, device.late);
        see(1, device.spurious);
        see(2, stage.fired_late);
    });
    // Each fault must have occurred.
    if !is_replay() && !cfg!(miri) {
        assert!(seen.iter().all(|count| count.get() > 1_000), "{seen:?}");
    }
}

/// Goal: after a lost event the next check fires everything and counts one late event (R13).
#[test]
fn a_lost_event_makes_timers_late_until_the_next_check() {
    let scene = Scene::new(Settings::default(), 1);
    let (first, second, third) = (
        scene.timer(Family::Precise, 1),
        scene.timer(Family::Precise, 2),
        scene.timer(Family::Coarse, 3),
    );
    scene.start(&first, HERE, ms(1));
    scene.go(ms(2)); // and nothing came
    assert_eq!(scene.writes(HERE, || scene.start(&second, HERE, ms(3))), 0);
    assert_eq!(scene.writes(HERE, || scene.start(&third, HERE, ms(4))), 0);
    scene.go(ms(10));
    assert_eq!(scene.fire(HERE), [1, 2, 3]);
    let device = scene.bases.view(HERE).unwrap().device;
    assert_eq!((device.late, device.events, device.writes), (1, 1, 1));
    // Within the tolerance it does not count as late.
    let limits = Limits { tolerance: ms(9), ..Limits::NONE };
    let scene = Scene::new(Settings { limits, ..Settings::default() }, 1);
    let timer = scene.timer(Family::Precise, 1);
    for (at, late) in [(10, 0), (30, 1)] {
        scene.start(&timer, HERE, ms(if late == 0 { 1 } else { 20 }));
        scene.go(ms(at));
        assert_eq!(scene.fire(HERE), [1]);
        assert_eq!(scene.bases.view(HERE).unwrap().device.late, late);
    }
}
