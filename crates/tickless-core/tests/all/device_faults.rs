//! R13: event devices that lose events, come early or late, or refuse what they are told: nothing
//! is early, nothing is lost, and nothing is late without being counted.

use crate::world::on;
use crate::world::random::{Random, is_replay, with_seeds};
use crate::world::scene::Scene;
use crate::world::timers::{AnyTimer, Family, exactly};
use std::cell::Cell;
use tickless_core::bases::expiry::CallbackResult;
use tickless_core::bases::{Options, Settings};
use tickless_core::rearm::{DeviceCounts, Limits, Policy};
use tickless_core::time::{CpuId, Ns};

const HERE: CpuId = CpuId(0);

const fn ms(ms: u64) -> Ns {
    Ns::from_ms(ms)
}

/// How often somebody looks at the base, whatever the device says.
const RECHECK: Ns = ms(10);

/// How good a device is.
#[derive(Clone, Copy, Debug)]
struct Faults {
    /// Of so many events it loses one; 0 for none.
    loses: u64,
    /// Events are late by up to this.
    late_max: Ns,
    /// Of so many moments it comes at one for nothing; 0 for none.
    comes: u64,
    /// What is due sooner is refused.
    refuses_within: Ns,
}

impl Faults {
    fn random(random: &mut Random) -> Faults {
        Faults {
            loses: random.pick(&[0, 1, 3, 10]),
            late_max: random.pick(&[Ns::ZERO, Ns(1), Ns::from_us(100), ms(30)]),
            comes: random.pick(&[0, 2, 10]),
            refuses_within: random.pick(&[Ns::ZERO, Ns(1), Ns::from_us(100), ms(1)]),
        }
    }
}

/// A base, its timers, its bad device, and when somebody looks next.
struct Stage {
    scene: Scene,
    timers: Vec<(AnyTimer, Family)>,
    faults: Faults,
    recheck_at: Ns,
    /// When the device comes, and for which of its writes that was decided.
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
        scene.world().refuse_within(HERE, faults.refuses_within);
        let recheck_at = scene.world().time().after(RECHECK);
        Stage { scene, timers, faults, recheck_at, event: (0, Ns::NEVER), fired: 0, fired_late: 0 }
    }

    fn device(&self) -> DeviceCounts {
        self.scene.bases.view(HERE).expect("there is one base").device
    }

    /// When the device comes for what it was told last, if ever.
    fn event(&mut self, random: &mut Random) -> Ns {
        let (writes, armed) = (self.scene.world().writes(HERE), self.scene.world().armed(HERE));
        if self.event.0 != writes {
            let is_lost = self.faults.loses > 0 && random.one_in(self.faults.loses);
            let late = Ns(random.below(self.faults.late_max.0 + 1));
            self.event = (writes, if is_lost { Ns::NEVER } else { armed.after(late) });
        }
        if armed == Ns::NEVER { Ns::NEVER } else { self.event.1 }
    }

    /// Moves on to when somebody looks at the base: because the device says so, or by itself.
    fn advance(&mut self, random: &mut Random) {
        let event = self.event(random);
        let for_nothing = self.faults.comes > 0 && random.one_in(self.faults.comes);
        let now = self.scene.world().time();
        let at = match for_nothing {
            true => now.after(Ns(random.below(ms(2).0))).min(event).min(self.recheck_at),
            false => event.min(self.recheck_at),
        };
        self.scene.world().set_time(at);
        let now = self.scene.world().time();
        if now >= self.recheck_at {
            self.recheck_at = now.after(RECHECK);
        }
        self.look(now);
    }

    fn look(&mut self, now: Ns) {
        let before = self.device();
        let (mut fired, mut late) = (0, 0);
        let families: Vec<Family> = self.timers.iter().map(|(_, family)| *family).collect();
        self.scene.handle(HERE, |firing| {
            assert!(firing.now >= firing.window.soft, "early");
            // A coarse timer is due up to a tick after its deadline.
            let granule = match families[firing.task] {
                Family::Coarse => ms(1),
                Family::Precise => Ns::ZERO,
            };
            let late_by = firing.now.since(firing.window.hard).since(granule);
            assert!(late_by <= RECHECK, "{late_by:?} late: somebody had looked meanwhile");
            fired += 1;
            late += u64::from(late_by > Ns::ZERO);
            CallbackResult::Done
        });
        assert_eq!(self.scene.world().time(), now);
        self.scene.bases.check(HERE).expect("a base that holds together");
        let device = self.device().since(before);
        if late > 0 && self.faults.refuses_within == Ns::ZERO {
            assert_eq!(device.late, 1, "{late} timers were late and nobody counted that");
        }
        self.fired += fired;
        self.fired_late += late;
    }

    fn play(&mut self, random: &mut Random) {
        for _ in 0..300 {
            let now = self.scene.world().time();
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
        // What is still pending fires, however bad the device is.
        for _ in 0..8 {
            self.faults.comes = 0;
            self.advance(random);
        }
        let limit = self.scene.world().time().after(ms(40));
        while self.scene.world().time() < limit {
            self.advance(random);
        }
        let view = self.scene.bases.view(HERE).expect("there is one base");
        assert_eq!(view.coarse + view.precise, 0, "lost: {:?}", self.faults);
        assert_eq!(view.counts.armed, view.counts.fired + view.counts.cancelled);
        assert_eq!(view.counts.fired, self.fired);
        assert_eq!(view.device.refused, self.scene.world().refused(HERE));
    }
}

/// Goal: R13, W1: whatever a device does, no timer is early, none is lost, none is later than the
/// next look at its base, and each late look is counted.
/// Method: random histories on a device with random faults; somebody looks every 10 ms.
#[test]
fn histories_on_bad_devices_lose_nothing() {
    let seen = [const { Cell::new(0) }; 4];
    let see = |place: usize, count: u64| seen[place].set(seen[place].get() + count);
    with_seeds(if cfg!(miri) { 3 } else { 600 }, |seed| {
        let mut random = Random::new(seed);
        let mut stage = Stage::new(&mut random);
        stage.play(&mut random);
        let device = stage.device();
        see(0, device.late);
        see(1, device.refused);
        see(2, device.spurious);
        see(3, stage.fired_late);
    });
    // A canary: faults that never happen prove nothing.
    if !is_replay() && !cfg!(miri) {
        assert!(seen.iter().all(|count| count.get() > 1_000), "{seen:?}");
    }
}

/// Goal: R13: a device that refuses what has passed is told its minimum delta, then twice that,
/// until it takes it; every write and refusal is counted.
#[test]
fn a_refused_deadline_is_told_again_farther_ahead() {
    let limits = Limits { min_delta: Ns::from_us(10), ..Limits::NONE };
    let scene = Scene::new(Settings { limits, ..Settings::default() }, 1);
    scene.world().refuse_within(HERE, Ns::from_us(35));
    let timer = scene.timer(Family::Precise, 1);
    scene.start(&timer, HERE, Ns::ZERO);
    // 10 us ahead at first, as a minimum; then 10 us more, then 20 more.
    assert_eq!(scene.armed(HERE), Some(Ns::from_us(40)));
    let device = scene.bases.view(HERE).unwrap().device;
    assert_eq!((device.writes, device.refused, device.forced), (3, 2, 1));
    scene.go(Ns::from_us(40));
    assert_eq!(scene.fire(HERE), [1]);
}

/// Goal: R13: a device that refuses everything is not asked for ever; once it is better, the next
/// look at the base has everything.
#[test]
fn a_device_that_refuses_everything_is_left_alone_for_a_while() {
    let scene = Scene::new(Settings::default(), 1);
    scene.world().refuse_within(HERE, Ns(u64::MAX / 2));
    let timer = scene.timer(Family::Precise, 1);
    scene.start(&timer, HERE, ms(1));
    let refused = scene.world().refused(HERE);
    assert!((2..50).contains(&refused), "refused {refused} times");
    scene.start(&timer, HERE, Ns::from_us(5));
    scene.world().refuse_within(HERE, Ns::ZERO);
    scene.go(ms(3));
    assert_eq!(scene.fire(HERE), [1], "somebody looks");
    scene.start(&timer, HERE, ms(5));
    assert_eq!(scene.armed(HERE), Some(ms(5)));
}

/// Goal: R13: what a lost event costs: timers that are armed for later do not tell the device,
/// which is thought to come; the next look fires everything, and counts one late event.
#[test]
fn a_lost_event_costs_until_the_next_look() {
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
    // Within what is tolerated it is not late.
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
