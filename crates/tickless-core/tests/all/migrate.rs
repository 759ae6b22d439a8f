//! D8: bases that go offline and online, and random histories of all operations.

use crate::support::random::{Random, with_seeds};
use crate::support::scene::{HERE, START, Scene, THERE, ms};
use crate::support::timers::{AnyTimer, Family, exactly};
use crate::support::{Moment, TestPlatform, Watch, on};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::migrate::OnlineError;
use tickless_core::bases::running::Runner;
use tickless_core::bases::{
    BaseCounts, Deferral, FiresIn, Options, Scan, Settings, StartError, Started, WheelEvents,
};
use tickless_core::queues::wheel::Wakes;
use tickless_core::rearm::Policy;
use tickless_core::time::{CpuId, Ns};

fn lazy() -> Scene {
    Scene::with_policy(Policy::Lazy)
}

/// Goal: pending timers of both families move to another base, where they fire in time and in
/// order.
#[test]
fn pending_timers_move() {
    for family in Family::BOTH {
        let scene = lazy();
        let timers: Vec<_> = (0..40).map(|task| scene.timer(family, task)).collect();
        for (place, timer) in timers.iter().enumerate() {
            scene.start(timer, HERE, ms(10 + place as u64 / 2));
        }
        assert_eq!(scene.bases.offline(HERE), Ok(40));
        assert_eq!(scene.bases.offline(HERE), Ok(0), "already");
        assert_eq!(scene.armed(THERE), Some(ms(10)));
        assert_eq!(scene.bases.view(THERE).unwrap().counts.migrated, 40);
        for cpu in [HERE, THERE] {
            scene.bases.check(cpu).unwrap();
        }
        scene.go(ms(50));
        assert_eq!(scene.fire(HERE), []);
        assert_eq!(scene.fire(THERE), (0..40).collect::<Vec<_>>(), "{family:?}");
    }
}

/// Goal: a timer that is armed for a base that is offline goes to another base, wherever it was and
/// whether or not it is pinned; when the base is online again, it is used.
#[test]
fn armings_for_an_offline_base_go_to_another() {
    for family in Family::BOTH {
        let scene = lazy();
        let timers = [0, 1, 2].map(|task| scene.timer(family, task));
        scene.start(&timers[0], HERE, ms(10));
        timers[0].cancel();
        scene.bases.offline(HERE).unwrap();
        let pinned = Options { pinned: Some(HERE), ..Options::default() };
        scene.start(&timers[0], HERE, ms(10));
        scene.start(&timers[1], HERE, ms(10));
        scene.start_with(&timers[2], THERE, ms(10), pinned);
        assert_eq!(pending(&scene, HERE), 0);
        assert_eq!(pending(&scene, THERE), 3, "{family:?}");
        scene.bases.online(HERE).unwrap();
        assert_eq!(pending(&scene, THERE), 3, "they do not move back");
        scene.start_with(&timers[2], THERE, ms(20), pinned);
        assert_eq!(pending(&scene, HERE), 1);
        scene.go(ms(30));
        assert_eq!((scene.fire(HERE), scene.fire(THERE)), (vec![2], vec![0, 1]));
    }
}

fn pending(scene: &Scene, cpu: CpuId) -> usize {
    let view = scene.bases.view(cpu).unwrap();
    view.coarse + view.precise
}

/// Goal: a timer whose callback runs on a base that goes offline moves when the callback has ended
/// (X2), also if it is armed before that.
#[test]
fn running_timers_move_when_their_callback_has_ended() {
    for (family, by_start) in Family::both_with_bool() {
        let scene = lazy();
        let timers = [0, 1].map(|task| scene.timer(family, task));
        scene.start(&timers[0], HERE, ms(10));
        scene.start(&timers[1], HERE, ms(30));
        scene.go(ms(10));
        scene.handle(HERE, |_| {
            assert_eq!(on(THERE, || scene.bases.offline(HERE)), Ok(1), "the other one");
            if by_start {
                scene.start(&timers[0], THERE, ms(20));
                assert_eq!(pending(&scene, HERE), 1, "{family:?}: it moved while it ran");
                return CallbackResult::Done;
            }
            CallbackResult::Restart(exactly(START.after(ms(20))))
        });
        assert_eq!((pending(&scene, HERE), pending(&scene, THERE)), (0, 2));
        assert_eq!(scene.armed(THERE), Some(ms(20)));
        scene.go(ms(31));
        assert_eq!(scene.fire(THERE), [0, 1]);
    }
}

/// Goal: collected timers that have not fired move as well, and fire once.
#[test]
fn collected_timers_move() {
    let settings = Settings { deferral: Deferral::OnExpiry, ..Settings::default() };
    let scene = Scene::new(settings, 2);
    let timers = [0, 1, 2].map(|task| scene.timer(Family::Coarse, task));
    for timer in &timers {
        scene.start(timer, HERE, ms(10));
    }
    scene.go(ms(10));
    assert_eq!(scene.bases.collect(HERE, |_| CallbackResult::Done).call, Call::Thread);
    let mut fired = Vec::new();
    scene.bases.fire(HERE, Runner::Thread, |firing| {
        fired.push(firing.task);
        assert_eq!(scene.bases.offline(HERE), Ok(2));
        CallbackResult::Done
    });
    assert_eq!(fired, [0]);
    assert_eq!(scene.bases.collect(THERE, |_| CallbackResult::Done).call, Call::Thread);
    scene.bases.fire(THERE, Runner::Thread, |firing| {
        fired.push(firing.task);
        CallbackResult::Done
    });
    assert_eq!(fired, [0, 1, 2]);
}

/// Goal: the event device of a base that was offline is programmed by the first start after it is
/// online, also for a later time than before (R1).
#[test]
fn a_device_that_was_off_is_programmed_again() {
    for family in Family::BOTH {
        let scene = lazy();
        let timer = scene.timer(family, 0);
        scene.start(&timer, HERE, ms(10));
        scene.bases.offline(HERE).unwrap();
        scene.platform().deliver(HERE);
        scene.bases.online(HERE).unwrap();
        let pinned = Options { pinned: Some(HERE), ..Options::default() };
        assert_eq!(scene.writes(HERE, || scene.start_with(&timer, HERE, ms(20), pinned)), 1);
        scene.bases.check(HERE).unwrap();
        scene.go(scene.armed(HERE).expect("programmed"));
        assert_eq!(scene.fire(HERE), [0], "{family:?}");
    }
}

/// Goal: going online while another CPU still moves timers away programs the device for the
/// remaining ones (R1).
#[test]
fn going_online_programs_the_device_for_remaining_timers() {
    for family in Family::BOTH {
        let scene = Rc::new(lazy());
        let timers = [0, 1].map(|task| scene.timer(family, task));
        timers.iter().for_each(|timer| _ = scene.start(timer, HERE, ms(10)));
        let locked = Rc::new(Cell::new(0));
        let (stage, locks) = (Rc::clone(&scene), Rc::clone(&locked));
        let watch = Watch::with(Rc::new(move |moment| {
            if moment == Moment::Locking && locks.replace(locks.get() + 1) == 2 {
                // The base goes online when one of the two timers has moved.
                stage.platform().deliver(HERE);
                on(THERE, || stage.bases.online(HERE)).unwrap();
            }
        }));
        assert_eq!(on(THERE, || scene.bases.offline(HERE)), Ok(1), "{family:?}");
        drop(watch);
        assert_eq!((pending(&scene, HERE), pending(&scene, THERE)), (1, 1));
        assert_eq!(scene.armed(HERE), Some(ms(10)));
    }
}

/// Goal: a check finds a lost event when it has been due for longer than the grace period, and
/// counts it (R13).
#[test]
fn a_lost_event_is_found() {
    for policy in Policy::ALL {
        let scene = Scene::with_policy(policy);
        let timer = scene.timer(Family::Precise, 0);
        let finds_lost_event = |at| {
            scene.go(at);
            on(THERE, || scene.bases.recover_lost_event(HERE, ms(2)))
        };
        let lost = || scene.bases.view(HERE).unwrap().device.lost;
        assert!(!finds_lost_event(ms(1)), "nothing is armed");
        scene.start(&timer, HERE, ms(10));
        scene.platform().deliver(HERE);
        assert!(!finds_lost_event(ms(12)), "it may still come");
        assert_eq!(lost(), 0);
        assert!(finds_lost_event(ms(13)));
        assert_eq!(lost(), 1);
        assert_eq!(scene.fire(HERE), [0]);
        assert!(!finds_lost_event(ms(30)), "it has come");
        scene.bases.offline(HERE).unwrap();
        assert!(!finds_lost_event(ms(60)) && !scene.bases.recover_lost_event(CpuId(2), ms(1)));
        assert_eq!(lost(), 1, "{policy:?}");
    }
}

/// Goal: the last base cannot go offline.
#[test]
fn the_last_base_stays() {
    let scene = lazy();
    scene.bases.offline(THERE).unwrap();
    assert_eq!(scene.bases.offline(HERE), Err(OnlineError::Last(HERE)));
    assert_eq!(scene.bases.offline(CpuId(2)), Err(OnlineError::NoSuchBase(CpuId(2))));
    assert_eq!(scene.bases.online(CpuId(2)), Err(OnlineError::NoSuchBase(CpuId(2))));
    scene.bases.online(THERE).unwrap();
    scene.bases.online(THERE).unwrap();
    assert_eq!(scene.bases.offline(HERE), Ok(0));
    assert_eq!(scene.bases.offline(THERE), Err(OnlineError::Last(THERE)), "counted once");
}

/// The record of one timer in a history.
#[derive(Default)]
struct Account {
    armed: Cell<u64>,
    fired: Cell<u64>,
    cancelled: Cell<u64>,
    shut: Cell<bool>,
    busy: Cell<bool>,
}

struct History {
    scene: Scene,
    cpus: u16,
    timers: Vec<AnyTimer>,
    accounts: Vec<Account>,
    random: RefCell<Random>,
    depth: Cell<u32>,
}

impl History {
    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    fn cpu(&self) -> CpuId {
        CpuId(self.below(u64::from(self.cpus)) as u16)
    }

    fn step(&self) {
        let id = self.below(self.timers.len() as u64) as usize;
        let (timer, account) = (&self.timers[id], &self.accounts[id]);
        let cpu = self.cpu();
        let count = |cell: &Cell<u64>| cell.set(cell.get() + 1);
        match self.below(20) {
            0..6 => self.start(id, cpu),
            6 => self.cancelled(id, on(cpu, || timer.cancel())),
            7 => self.cancelled(id, on(cpu, || timer.try_cancel())),
            8 if !account.busy.get() => self.cancelled(id, on(cpu, || timer.cancel_sync())),
            9 if !account.busy.get() => {
                let found = on(cpu, || timer.cancel_single_shot());
                self.cancelled(id, found.expect("it is not armed concurrently"));
            }
            10 if self.below(4) == 0 => {
                account.shut.set(true);
                let pending = timer.is_pending();
                on(cpu, || timer.shutdown());
                if pending {
                    count(&account.cancelled);
                }
            }
            11 => drop(self.scene.bases.offline(cpu)),
            12 => self.scene.bases.online(cpu).unwrap(),
            13 | 14 => self.collect(cpu),
            15 => self.fire(cpu, Runner::Rescuer),
            16 => _ = self.scene.bases.tick(cpu),
            _ => {
                let by = Ns(1 << self.below(24));
                let now = self.scene.platform().time().after(by);
                self.scene.platform().set_time(now);
            }
        }
    }

    fn start(&self, id: usize, cpu: CpuId) {
        let now = self.scene.platform().time();
        let window = exactly(now.after(Ns(self.below(30_000_000))));
        let options = Options {
            wakes: if self.below(5) == 0 { Wakes::No } else { Wakes::Yes },
            pinned: (self.below(4) == 0).then(|| self.cpu()),
            fires_in: if self.below(2) == 0 { FiresIn::Handler } else { FiresIn::Thread },
            ..Options::default()
        };
        let account = &self.accounts[id];
        match on(cpu, || self.timers[id].start(window, now, options)) {
            Ok(Started::Idle) => account.armed.set(account.armed.get() + 1),
            Ok(Started::Pending) => {}
            Err(StartError::Shut) => assert!(account.shut.get()),
            other => panic!("{other:?}"),
        }
    }

    fn cancelled(&self, id: usize, found: Cancel) {
        let account = &self.accounts[id];
        // A running timer may have been armed again, which the totals account for.
        if found == Cancel::Pending {
            account.cancelled.set(account.cancelled.get() + 1);
        }
        assert!(account.busy.get() || found != Cancel::Running);
    }

    fn collect(&self, cpu: CpuId) {
        let run = |firing: &Firing<TestPlatform>| self.callback(firing);
        self.scene.platform().deliver(cpu);
        if on(cpu, || self.scene.bases.collect(cpu, run)).call == Call::Thread {
            self.fire(cpu, Runner::Thread);
        }
    }

    fn fire(&self, cpu: CpuId, runner: Runner) {
        on(cpu, || self.scene.bases.fire(cpu, runner, |firing| self.callback(firing)));
    }

    /// Performs random operations, as other threads might during the callback.
    fn callback(&self, firing: &Firing<TestPlatform>) -> CallbackResult {
        let account = &self.accounts[firing.task];
        assert!(!account.busy.replace(true), "X2: a timer overlaps itself");
        assert!(firing.now >= firing.window.soft, "W1: early");
        account.fired.set(account.fired.get() + 1);
        if self.depth.get() < 2 {
            self.depth.set(self.depth.get() + 1);
            for _ in 0..self.below(4) {
                self.step();
            }
            self.depth.set(self.depth.get() - 1);
        }
        account.busy.set(false);
        let shut = account.shut.get();
        match self.below(5) {
            0 if !shut && !self.timers[firing.task].is_pending() => {
                account.armed.set(account.armed.get() + 1);
                CallbackResult::Restart(exactly(firing.now.after(Ns(self.below(5_000_000)))))
            }
            _ => CallbackResult::Done,
        }
    }

    fn counts(&self) -> BaseCounts {
        let views = (0..self.cpus).filter_map(|cpu| self.scene.bases.view(CpuId(cpu)));
        views.fold(BaseCounts::default(), |sum, view| sum.plus(view.counts))
    }
}

/// Goal: after any random operations on timers, threads and bases, every arming ends once, no timer
/// overlaps itself or is early, and none stays on a base that is offline (D2, D8, D9, X2, X10, W1).
#[test]
fn histories_of_everything() {
    with_seeds(if cfg!(miri) { 2 } else { 800 }, |seed| {
        let mut random = Random::new(seed);
        let settings = Settings {
            policy: random.pick(&Policy::ALL),
            deferral: random.pick(&[Deferral::OnExpiry, Deferral::EveryTick]),
            wheel: random.pick(&[WheelEvents::Device, WheelEvents::Tick]),
            patience: random.pick(&[Ns::NEVER, ms(3)]),
            scan: random.pick(&[Scan::RunningBase, Scan::AllBases]),
            ..Settings::default()
        };
        let cpus = 1 + random.below(4) as u16;
        let scene = Scene::new(settings, cpus);
        let count = 1 + random.below(6) as usize;
        let timers: Vec<_> =
            (0..count).map(|task| scene.timer(random.pick(&Family::BOTH), task)).collect();
        let accounts = (0..count).map(|_| Account::default()).collect();
        let (random, depth) = (RefCell::new(random), Cell::new(0));
        let history = History { scene, cpus, timers, accounts, random, depth };
        for _ in 0..80 {
            history.step();
            for cpu in (0..cpus).map(CpuId) {
                history.scene.bases.check(cpu).unwrap();
                let view = history.scene.bases.view(cpu).unwrap();
                assert!(view.is_online || view.coarse + view.precise == 0, "left behind (D8)");
            }
        }
        settle(&history);
    });
}

/// Fires all timers without new armings, and checks the sums.
fn settle(history: &History) {
    let History { scene, cpus, .. } = history;
    for round in 0..100 {
        scene.platform().set_time(scene.platform().time().after(ms(20)));
        for cpu in (0..*cpus).map(CpuId) {
            let mut quiet = |firing: &Firing<TestPlatform>| {
                let account = &history.accounts[firing.task];
                account.fired.set(account.fired.get() + 1);
                CallbackResult::Done
            };
            scene.platform().deliver(cpu);
            scene.bases.expire(cpu, &mut quiet);
            if scene.bases.tick(cpu) != Call::Nobody {
                scene.bases.fire(cpu, Runner::Thread, &mut quiet);
            }
            scene.bases.fire(cpu, Runner::Thread, &mut quiet);
        }
        let left: usize = (0..*cpus).map(|cpu| pending(scene, CpuId(cpu))).sum();
        if left == 0 {
            break;
        }
        assert!(round < 99, "{left} timers never fire");
    }
    let counts = history.counts();
    assert_eq!(counts.armed, counts.fired + counts.cancelled, "X10: {counts:?}");
    let sum = |of: fn(&Account) -> u64| history.accounts.iter().map(of).sum::<u64>();
    assert_eq!(counts.fired, sum(|account| account.fired.get()));
    assert_eq!(counts.armed, sum(|account| account.armed.get()));
}
