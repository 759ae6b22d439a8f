//! Random histories of bases that defer, with an account of each arming.
//!
//! Handlers, ticks, expiry threads and rescuers run in random order, also within each other's
//! callbacks and before any lock is taken. Timers are started, cancelled and replaced, and bases go
//! offline. No timer fires early, without an arming, or within its own callback, and none that is
//! due is left when all runners have finished.

use crate::support::random::{Random, with_seeds};
use crate::support::scene::{START, Scene};
use crate::support::timers::{AnyTimer, Family};
use crate::support::{Moment, TestPlatform, Watch, on};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::{Call, DeferredCounts};
use tickless_core::bases::expiry::{CallbackResult, Firing};
use tickless_core::bases::running::Runner;
use tickless_core::bases::{Deferral, FiresIn, Options, Scan, Settings, Started, WheelEvents};
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::rearm::{Limits, Policy};
use tickless_core::state::Life;
use tickless_core::time::{CpuId, Ns, Window};

#[derive(Clone, Copy, Default)]
struct Account {
    /// When it may fire and when it must have fired, if it is armed.
    armed: Option<(Ns, Ns)>,
    is_running: bool,
    /// How many operations on it have begun and not ended, and how many bases have not noticed the
    /// end of its callback.
    busy: u32,
}

struct History {
    scene: Scene,
    settings: Settings,
    cpus: u16,
    families: Vec<Family>,
    timers: RefCell<Vec<Rc<AnyTimer>>>,
    accounts: RefCell<Vec<Account>>,
    /// The expiry threads and rescuers that have been called and have not begun.
    calls: RefCell<Vec<(CpuId, Runner)>>,
    /// The runners that are at work, each with the timer whose callback returned last.
    at_work: RefCell<Vec<(CpuId, Runner, Option<usize>)>>,
    random: RefCell<Random>,
    fired: Cell<u64>,
    settled_at: Cell<Ns>,
    /// The remaining number of operations within others.
    interruptions: Cell<u64>,
    /// A timer is between two bases, so operations on it would wait.
    is_moving: Cell<bool>,
}

impl Drop for History {
    /// After a failure a timer may seem to run for ever, and its drop would wait.
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(std::mem::take(self.timers.get_mut()));
        }
    }
}

impl History {
    fn new(mut random: Random) -> History {
        let settings = Settings {
            policy: random.pick(&Policy::ALL),
            scan: random.pick(&[Scan::RunningBase, Scan::AllBases]),
            deferral: random.pick(&[Deferral::OnExpiry, Deferral::OnExpiry, Deferral::EveryTick]),
            wheel: random.pick(&[WheelEvents::Device, WheelEvents::Tick]),
            patience: random.pick(&[Ns::ZERO, Ns::from_us(10), Ns::from_ms(5), Ns::NEVER]),
            push_out: random.pick(&[PushOut::Lazy, PushOut::Eager]),
            // No back-off (R7): it would fire due timers later.
            limits: Limits { backoff_max: Ns::ZERO, ..Limits::NONE },
            ..Settings::default()
        };
        let cpus = 1 + random.below(3) as u16;
        let scene = Scene::new(settings, cpus);
        let families: Vec<_> = (0..8).map(|_| random.pick(&Family::BOTH)).collect();
        let timer = |(task, &family): (usize, &Family)| Rc::new(scene.timer(family, task));
        History {
            timers: RefCell::new(families.iter().enumerate().map(timer).collect()),
            accounts: RefCell::new(vec![Account::default(); families.len()]),
            calls: RefCell::default(),
            at_work: RefCell::default(),
            fired: Cell::new(0),
            settled_at: Cell::new(START),
            interruptions: Cell::new(100),
            is_moving: Cell::new(false),
            random: RefCell::new(random),
            scene,
            settings,
            cpus,
            families,
        }
    }

    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    fn any_cpu(&self) -> CpuId {
        CpuId(self.below(self.cpus.into()) as u16)
    }

    fn now(&self) -> Ns {
        self.scene.platform().time()
    }

    fn account<R>(&self, id: usize, change: impl FnOnce(&mut Account) -> R) -> R {
        change(&mut self.accounts.borrow_mut()[id])
    }

    fn step(&self) {
        let id = self.below(self.families.len() as u64) as usize;
        let is_busy = self.account(id, |account| account.busy > 0);
        match self.below(20) {
            0..7 if !is_busy => self.start(id),
            7..10 if !is_busy => self.cancel(id),
            10 if !is_busy => self.replace(id),
            11..14 => self.pass_time(),
            14 => self.tick(self.any_cpu()),
            15..18 => self.answer_a_call(),
            18 => {
                let cpu = self.any_cpu();
                _ = self.scene.bases.offline(cpu);
                let is_online = self.scene.bases.view(cpu).expect("a base").is_online;
                if !is_online && self.below(2) == 0 {
                    // The CPU's device is switched off with it.
                    self.scene.platform().deliver(cpu);
                }
            }
            19 => self.scene.bases.online(self.any_cpu()).expect("there is such a base"),
            _ => {}
        }
    }

    /// Lets another CPU perform an operation, if the history is not too deep.
    fn interrupt(&self) {
        let left = self.interruptions.get();
        if left > 0 && !self.is_moving.get() && self.below(4) == 0 {
            self.interruptions.set(left - 1);
            self.step();
        }
    }

    fn start(&self, id: usize) {
        let now = self.now();
        let soft = now.after(Ns(match self.below(4) {
            0 => 0,
            1 => self.below(3_000),
            2 => self.below(3_000_000),
            _ => self.below(300_000_000),
        }));
        // So that the deadline word is not mistaken for the life of a migrating timer.
        let soft = Ns(soft.0 & !3);
        let wakes = if self.below(6) == 0 { Wakes::No } else { Wakes::Yes };
        let latest = self.latest(id, soft, wakes);
        let options = Options {
            wakes,
            pinned: (self.below(4) == 0).then(|| self.any_cpu()),
            fires_in: [FiresIn::Thread, FiresIn::Handler][self.below(2) as usize],
            ..Options::default()
        };
        self.account(id, |account| account.busy += 1);
        let timer = Rc::clone(&self.timers.borrow()[id]);
        let started = on(self.any_cpu(), || timer.start(Window::new(soft, soft), now, options));
        let before = self.account(id, |account| {
            account.busy -= 1;
            account.armed.replace((soft, latest))
        });
        let expected = if before.is_some() { Started::Pending } else { Started::Idle };
        assert_eq!(started, Ok(expected), "starting timer {id}");
    }

    /// When a timer must have fired: a coarse one may be late by a granule of the wheel, which is
    /// 1/7.7 of the distance, and by a tick at either end. The distance counts from the time up to
    /// which the base has been served. A deferrable timer may wait for another one.
    fn latest(&self, id: usize, soft: Ns, wakes: Wakes) -> Ns {
        match self.families[id] {
            _ if wakes == Wakes::No => Ns::NEVER,
            Family::Precise => soft,
            Family::Coarse => {
                let tick = self.settings.tick.length().as_nanos() as u64;
                soft.after(Ns(soft.since(self.settled_at.get()).0 / 7 + 2 * tick))
            }
        }
    }

    fn cancel(&self, id: usize) {
        self.account(id, |account| account.busy += 1);
        let timer = Rc::clone(&self.timers.borrow()[id]);
        // A synchronous cancel of a running callback would wait for this thread.
        let ways = if self.account(id, |account| account.is_running) { 2 } else { 4 };
        let way = self.below(ways);
        let found = on(self.any_cpu(), || match way {
            0 => timer.cancel(),
            1 => timer.try_cancel(),
            2 => timer.cancel_sync(),
            _ => timer.cancel_single_shot().expect("its callback does not run"),
        });
        let (armed, is_running) = self.account(id, |account| {
            account.busy -= 1;
            // `try_cancel` changes nothing while the callback runs.
            let ends = way != 1 || !account.is_running;
            (account.armed.take_if(|_| ends), account.is_running)
        });
        let expected = match (armed, is_running) {
            (_, true) => Cancel::Running,
            (Some(_), false) => Cancel::Pending,
            (None, false) => Cancel::Idle,
        };
        assert_eq!(found, expected, "cancelling timer {id}");
    }

    /// Drops a timer, and makes another one, often at its address.
    fn replace(&self, id: usize) {
        if self.account(id, |account| account.is_running) {
            return;
        }
        self.account(id, |account| account.busy += 1);
        let new = Rc::new(self.scene.timer(self.families[id], id));
        let old = std::mem::replace(&mut self.timers.borrow_mut()[id], new);
        drop(old);
        self.account(id, |account| (account.armed, account.busy) = (None, account.busy - 1));
    }

    /// Moves the clock to an event or beyond it, and delivers the events that are due.
    fn pass_time(&self) {
        let step = [1_000, 100_000, 2_000_000, 80_000_000][self.below(4) as usize];
        self.scene.platform().set_time(self.now().after(Ns(self.below(step))));
        (0..self.cpus).map(CpuId).for_each(|cpu| _ = self.deliver(cpu));
    }

    /// Delivers the event of a device if it is due. Returns whether it was.
    fn deliver(&self, cpu: CpuId) -> bool {
        let is_due = self.scene.platform().armed(cpu) <= self.now();
        if !is_due || !self.begin(cpu, Runner::Handler) {
            return false;
        }
        self.scene.platform().deliver(cpu);
        let run = |firing: &Firing<TestPlatform>| self.callback(Runner::Handler, firing);
        let call = on(cpu, || self.scene.bases.collect(cpu, run)).call;
        self.end(cpu, Runner::Handler);
        self.called(cpu, call);
        true
    }

    fn tick(&self, cpu: CpuId) {
        let call = on(cpu, || self.scene.bases.tick(cpu));
        self.called(cpu, call);
    }

    fn called(&self, cpu: CpuId, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Thread => self.calls.borrow_mut().push((cpu, Runner::Thread)),
            Call::Rescuer => self.calls.borrow_mut().push((cpu, Runner::Rescuer)),
        }
    }

    /// Runs one of the threads that have been called, unless it is at work.
    fn answer_a_call(&self) {
        let count = self.calls.borrow().len() as u64;
        if count == 0 {
            return;
        }
        let (cpu, runner) = self.calls.borrow_mut().swap_remove(self.below(count) as usize);
        if !self.begin(cpu, runner) {
            self.calls.borrow_mut().push((cpu, runner));
            return;
        }
        on(cpu, || self.scene.bases.fire(cpu, runner, |firing| self.callback(runner, firing)));
        self.end(cpu, runner);
    }

    fn begin(&self, cpu: CpuId, runner: Runner) -> bool {
        let mut at_work = self.at_work.borrow_mut();
        let is_free = !at_work.iter().any(|work| (work.0, work.1) == (cpu, runner));
        if is_free {
            at_work.push((cpu, runner, None));
        }
        is_free
    }

    fn end(&self, cpu: CpuId, runner: Runner) {
        self.returned(cpu, runner, None);
        self.at_work.borrow_mut().retain(|work| (work.0, work.1) != (cpu, runner));
    }

    /// Records the timer whose callback has returned. The base has noticed the end of the one
    /// before.
    fn returned(&self, cpu: CpuId, runner: Runner, id: Option<usize>) {
        let mut at_work = self.at_work.borrow_mut();
        let work = at_work.iter_mut().find(|work| (work.0, work.1) == (cpu, runner));
        if let Some(before) = std::mem::replace(&mut work.expect("it is at work").2, id) {
            self.account(before, |account| account.busy -= 1);
        }
    }

    fn callback(&self, runner: Runner, firing: &Firing<TestPlatform>) -> CallbackResult {
        self.returned(firing.cpu, runner, None);
        // If it was restarted and moved, its last base has noticed the end of its callback.
        for work in self.at_work.borrow_mut().iter_mut() {
            if work.2 == Some(firing.task) {
                work.2 = None;
                self.account(firing.task, |account| account.busy -= 1);
            }
        }
        self.fired.set(self.fired.get() + 1);
        let (id, now) = (firing.task, self.now());
        self.account(id, |account| {
            assert!(!account.is_running, "X2: timer {id} overlaps itself");
            let (soft, _) = account.armed.take().expect("X10: fires without an arming");
            assert!(soft <= now, "W1: timer {id} is early: {soft:?} at {now:?}");
            account.is_running = true;
        });
        (0..self.below(4)).for_each(|_| self.interrupt());
        let restart = self.interruptions.get() > 0 && self.below(4) == 0;
        let soft = Ns(self.now().after(Ns(self.below(3_000_000))).0 & !3);
        let latest = self.latest(id, soft, firing.wakes());
        self.returned(firing.cpu, runner, Some(id));
        self.account(id, |account| {
            (account.is_running, account.busy) = (false, account.busy + 1);
            if restart {
                // If another thread has armed it, its arming counts (R9).
                account.armed.get_or_insert((soft, latest));
                return CallbackResult::Restart(Window::new(soft, soft));
            }
            CallbackResult::Done
        })
    }

    /// Lets all runners finish at the current time, and checks that no due timer is left.
    fn settle(&self) {
        let interruptions = self.interruptions.replace(0);
        for round in 0.. {
            assert!(round < 1_000, "a base fires without end");
            let fired = self.fired.get();
            let cpus = || (0..self.cpus).map(CpuId);
            let events = cpus().filter(|&cpu| self.deliver(cpu)).count();
            cpus().for_each(|cpu| self.tick(cpu));
            while !self.calls.borrow().is_empty() {
                self.answer_a_call();
            }
            if events == 0 && self.fired.get() == fired {
                break;
            }
        }
        self.interruptions.set(interruptions);
        let now = self.now();
        self.settled_at.set(now);
        for (id, account) in self.accounts.borrow().iter().enumerate() {
            let is_pending = self.timers.borrow()[id].is_pending();
            assert_eq!(is_pending, account.armed.is_some(), "X10: timer {id}");
            if let Some((_, latest)) = account.armed {
                assert!(latest > now, "timer {id}, due at {latest:?}, is lost at {now:?}");
            }
        }
        for cpu in (0..self.cpus).map(CpuId) {
            assert_eq!(self.scene.bases.check(cpu), Ok(()), "on {cpu:?}");
            let view = self.scene.bases.view(cpu).expect("a base");
            assert!(view.is_online || view.coarse + view.precise == 0, "left behind (D8)");
        }
    }
}

fn run(seed: u64) -> DeferredCounts {
    let history = Rc::new(History::new(Random::new(seed)));
    let interrupted = Rc::clone(&history);
    let watch = Watch::with(Rc::new(move |moment| match moment {
        Moment::Locking => interrupted.interrupt(),
        Moment::Wrote(word) => interrupted.is_moving.set(Life::from_word(word).is_migrating()),
    }));
    for _ in 0..12 {
        (0..8).for_each(|_| history.step());
        history.settle();
    }
    drop(watch);
    let views = (0..history.cpus).filter_map(|cpu| history.scene.bases.view(CpuId(cpu)));
    views.fold(DeferredCounts::default(), |sum, view| sum.plus(view.deferred))
}

/// Goal: random histories of runners, timers and bases keep D2, D3, D6, D8, D9, W1, X2 and X10.
#[test]
fn histories_end_each_arming_once() {
    let total = RefCell::new(DeferredCounts::default());
    with_seeds(if cfg!(miri) { 3 } else { 3_000 }, |seed| {
        let sum = total.borrow().plus(run(seed));
        total.replace(sum);
    });
    println!("{:?}", total.borrow());
    let DeferredCounts { fired, merged, reliefs, .. } = total.into_inner();
    assert!(fired > 0 && merged > 0 && reliefs > 0);
}
