//! Rng histories: bases and their twin perform the same operations.
//!
//! Callbacks operate on any timer from any CPU, and before a lock is taken an operation of another
//! CPU may happen. After every operation the results and states of the bases and the twin must
//! agree; after every write of a word no active timer may look idle (R10).

use super::random::{Rng, given};
use super::rules::{Operation, Snapshot, check_operation, check_standing};
use super::timers::{AnyTimer, Family};
use super::twin::{PushedOut, Twin};
use super::{Moment, TestPlatform, Watch, assert_unlocked, on};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::{BaseCounts, Bases, IfPending, Options, Settings, Started, WheelEvents};
use tickless_core::queues::wheel::{PushOut, Wakes};
use tickless_core::rearm::{DeviceCounts, Limits, Policy};
use tickless_core::state::Life;
use tickless_core::time::{CpuId, Ns, Tick, Window};

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub settings: Settings,
    pub cpus: u16,
    pub timers: usize,
    pub steps: u64,
    /// How many of ten operations on timers are starts.
    pub starts: u64,
    /// Whether operations happen within others.
    pub interference: Interference,
}

/// Whether callbacks and other CPUs operate within an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interference {
    Everywhere,
    /// For histories that are compared with each other: the order of firing must not affect them.
    None,
}

impl Plan {
    pub fn random(random: &mut Rng) -> Plan {
        let limits = Limits {
            min_delta: random.pick(&[Ns::ZERO, Ns::from_us(1), Ns::from_us(50), Ns::from_ms(2)]),
            max_delta: random.pick(&[Ns::NEVER, Ns::NEVER, Ns::from_ms(10), Ns::from_secs(2)]),
            ..Limits::NONE
        };
        let settings = Settings {
            tick: random.pick(&[Tick::MILLISECOND, tick_of(1_000), tick_of(4_000_000)]),
            push_out: random.pick(&[PushOut::Lazy, PushOut::Eager]),
            policy: random.pick(&Policy::ALL),
            limits,
            wheel: random.pick(&[WheelEvents::Device, WheelEvents::Device, WheelEvents::Tick]),
            ..Settings::default()
        };
        Plan {
            settings,
            cpus: 1 + random.below(4) as u16,
            timers: 2 + random.below(9) as usize,
            steps: if cfg!(miri) { 12 } else { 60 },
            starts: 3 + random.below(5),
            interference: Interference::Everywhere,
        }
    }
}

fn tick_of(ns: u64) -> Tick {
    Tick::new(std::time::Duration::from_nanos(ns)).expect("a tick within the limits")
}

pub struct History {
    plan: Plan,
    bases: Arc<Bases<TestPlatform>>,
    timers: RefCell<Vec<Rc<AnyTimer>>>,
    twin: RefCell<Twin>,
    random: RefCell<Rng>,
    /// Times for which several timers are armed.
    popular: Cell<[u64; 4]>,
    /// The running operations, the innermost last.
    frames: RefCell<Vec<Frame>>,
    /// The remaining number of operations within others, so that a history ends.
    interruptions: Cell<u64>,
    /// The number of operations within others so far.
    interrupted: Cell<u64>,
    locks: Cell<u64>,
    /// Whether an operation may happen before the next lock.
    open: Cell<bool>,
    /// Whether this is a replay, which prints the operations.
    is_replay: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    what: What,
    /// Whether its timer is between two bases, so that other operations on it would wait.
    moving: bool,
    /// Whether its timer has been active since the operation began.
    seen_active: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Start(usize),
    Cancel(usize),
    Handler,
    /// Another CPU's operation before a lock.
    Between,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    pub counts: BaseCounts,
    pub device: DeviceCounts,
}

impl Outcome {
    /// Returns the sum of two histories.
    pub fn plus(self, other: Outcome) -> Outcome {
        let counts = self.counts.plus(other.counts);
        Outcome { counts, device: self.device.plus(other.device) }
    }
}

pub fn run(plan: Plan, seed: u64) -> Outcome {
    let mut random = Rng::new(seed);
    let start = Ns(random.pick(&[0, 1, 1_000_000_000, 1 << 40]));
    let bases = Arc::new(Bases::new(TestPlatform::new(plan.cpus, start), plan.cpus, plan.settings));
    let families: Vec<_> = (0..plan.timers).map(|_| random.pick(&Family::BOTH)).collect();
    let timers = families.iter().enumerate();
    let timers = timers.map(|(id, &family)| Rc::new(AnyTimer::new(&bases, family, id))).collect();
    let history = Rc::new(History {
        plan,
        bases,
        timers: RefCell::new(timers),
        twin: RefCell::new(Twin::new(plan.settings, plan.cpus, &families, start)),
        random: RefCell::new(random),
        popular: Cell::new([start.0; 4]),
        frames: RefCell::default(),
        interruptions: Cell::new(plan.steps),
        interrupted: Cell::new(0),
        locks: Cell::new(0),
        open: Cell::new(false),
        is_replay: given("TICKLESS_SEED").is_some(),
    });
    history.log(|| format!("{plan:?}"));
    let of_watch = Rc::clone(&history);
    let watch = Watch::with(Rc::new(move |moment| of_watch.watch(moment)));
    for _ in 0..plan.steps {
        history.step();
    }
    drop(watch);
    history.outcome()
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
    fn step(&self) {
        match self.below(20) {
            0..12 => self.operate(),
            12..19 => self.pass_time(),
            _ => self.check_any_base(),
        }
    }

    fn operate(&self) {
        let here = self.any_cpu();
        let Some(id) = self.any_timer() else { return };
        match self.below(10) {
            draw if draw < self.plan.starts => self.start(id, here),
            _ if self.one_in(15) => self.shut_down(id, here),
            _ => self.cancel(id, here),
        }
    }

    fn start(&self, id: usize, here: CpuId) {
        let family = self.twin.borrow().timers[id].family;
        let (now, window) = (self.now(), self.any_window(family));
        let pinned = match self.below(60) {
            0 => Some(CpuId(self.plan.cpus)),
            1..10 => Some(self.any_cpu()),
            _ => None,
        };
        let wakes = if self.one_in(6) { Wakes::No } else { Wakes::Yes };
        let pending = match self.below(10) {
            0..2 => IfPending::Reduce,
            2 => IfPending::Leave,
            _ => IfPending::Rearm,
        };
        let options = Options { wakes, pinned, pending, ..Options::default() };
        // A time in the future counts as the current time, and one in the past as it is.
        let wrong = Ns(self.below(1 << 42));
        let hint = match self.below(10) {
            0 | 1 => now.after(wrong),
            2 => now.since(wrong),
            _ => now,
        };
        self.operation(What::Start(id), id, here, || {
            let (locks, interrupted) = (self.locks.get(), self.interrupted.get());
            let found = on(here, || self.timer(id).start(window, hint, options));
            let push_out = match found {
                Ok(Started::Pending) if self.locks.get() == locks => PushedOut::Yes,
                _ => PushedOut::No { interrupted: self.interrupted.get() != interrupted },
            };
            let present = self.now();
            let now = (hint, if hint == now { now } else { present.min(hint) }, present);
            let expected = self.twin.borrow_mut().start(id, window, now, here, options, push_out);
            self.log(|| format!("{here:?} starts {id}: {window:?} {options:?} -> {found:?}"));
            assert_eq!(found, expected, "starting timer {id} for {window:?} with {options:?}");
        });
    }

    fn cancel(&self, id: usize, here: CpuId) {
        self.operation(What::Cancel(id), id, here, || {
            let (reads, interrupted) = (self.platform().reads(), self.interrupted.get());
            let found = on(here, || self.timer(id).cancel());
            self.log(|| format!("{here:?} cancels {id} -> {found:?}"));
            let lazy = self.plan.settings.policy == Policy::Lazy;
            if lazy && interrupted == self.interrupted.get() {
                assert_eq!(self.platform().reads(), reads, "a needless reading of the clock");
            }
            assert_eq!(found, self.twin.borrow_mut().cancel(id), "cancelling timer {id}");
        });
    }

    /// Shuts a timer down (X5). If no other operation runs, it may be replaced by a new one, often
    /// at the same address.
    fn shut_down(&self, id: usize, here: CpuId) {
        self.operation(What::Cancel(id), id, here, || {
            let found = on(here, || self.timer(id).shutdown());
            self.log(|| format!("{here:?} shuts {id} down -> {found:?}"));
            assert_eq!(found, self.twin.borrow_mut().shutdown(id), "shutting timer {id} down");
        });
        if self.frames.borrow().is_empty() && self.one_in(2) {
            let family = self.twin.borrow().timers[id].family;
            let new = Rc::new(AnyTimer::new(&self.bases, family, id));
            let old = std::mem::replace(&mut self.timers.borrow_mut()[id], new);
            self.twin.borrow_mut().renew(id, family);
            drop(old);
        }
    }

    /// Performs an operation, and checks its effect on the devices unless another ran within it.
    fn operation(&self, what: What, id: usize, here: CpuId, perform: impl FnOnce()) {
        let before = Snapshot::of(&self.bases);
        let (interrupted, from) = (self.interrupted.get(), self.whereabouts(id));
        let open = self.open.replace(self.plan.interference == Interference::Everywhere);
        self.enter(what);
        perform();
        self.leave();
        self.open.set(false);
        if interrupted == self.interrupted.get() {
            let after = Snapshot::of(&self.bases);
            let to = self.whereabouts(id);
            let deadline = self.twin.borrow().coarse_deadline(id);
            let operation = Operation { here, now: self.now(), from, to, deadline };
            check_operation(&self.twin.borrow(), &before, &after, operation);
        }
        self.check();
        self.open.set(open);
    }

    /// Moves the clock, and delivers the devices' events that come due: in time, or all at the end.
    fn pass_time(&self) {
        let step = match self.below(8) {
            0 => 0,
            1 => self.below(3_000),
            2 => self.below(60_000),
            3..6 => self.below(20_000_000),
            6 => self.below(1_000_000_000),
            // At most one reach: then a pass places each far timer again at most once, and does not
            // yield the lock for that.
            _ if self.one_in(2) => self.below(self.reach()),
            _ => self.below(60_000_000_000),
        };
        let to = self.now().after(Ns(step));
        if self.one_in(5) {
            self.platform().set_time(to);
        }
        for round in 0.. {
            let cpus = (0..self.plan.cpus).map(CpuId).filter(|&cpu| !self.is_handled(cpu));
            let next = cpus.map(|cpu| (self.platform().armed(cpu), cpu)).min();
            let Some((at, cpu)) = next.filter(|next| next.0 <= to) else { break };
            // The clock moves on, even if events keep coming.
            self.platform().set_time(if round < 20 { at } else { to });
            self.handle(cpu);
        }
        self.platform().set_time(to);
    }

    fn check_any_base(&self) {
        let cpu = self.any_cpu();
        if !self.is_handled(cpu) {
            self.handle(cpu);
        }
    }

    fn handle(&self, cpu: CpuId) {
        let world = self.platform();
        world.deliver(cpu);
        let writes = world.writes(cpu);
        let open = self.open.replace(false);
        self.log(|| format!("{cpu:?} handles"));
        self.enter(What::Handler);
        self.twin.borrow_mut().begin_handler(cpu, self.now());
        let expired = on(cpu, || {
            self.bases.expire(cpu, |firing| {
                assert_eq!(world.writes(cpu), writes, "R5: written before the handler's end");
                self.callback(firing)
            })
        });
        self.leave();
        self.open.set(false);
        let mut twin = self.twin.borrow_mut();
        assert_eq!(twin.next(cpu, self.now(), None), None, "due, and did not fire");
        let fired = twin.bases[cpu.index()].handler.as_ref().map(|handler| handler.fired);
        twin.end_handler(cpu, self.now());
        let programs = twin.bases[cpu.index()].backing_off || twin.earliest(cpu) != Ns::NEVER;
        drop(twin);
        assert_eq!(Some(expired.fired), fired);
        assert_eq!(expired.next, world.armed(cpu));
        assert_eq!(world.writes(cpu) - writes, u64::from(programs), "R5, R6: at the handler's end");
        self.check();
        self.open.set(open);
    }

    fn callback(&self, firing: &Firing<TestPlatform>) -> CallbackResult {
        assert_unlocked();
        self.open.set(false);
        self.log(|| format!("fires {} {:?}, pass of {:?}", firing.task, firing.window, firing.now));
        let cpu = firing.cpu;
        let due = self.twin.borrow_mut().next(cpu, self.now(), Some(firing.task));
        assert_eq!(due, Some(firing.task), "on {cpu:?} at {:?}", firing.now);
        self.check_firing(firing);
        self.check();
        if self.plan.interference == Interference::None {
            self.twin.borrow_mut().returned(cpu, CallbackResult::Done);
            return CallbackResult::Done;
        }
        if self.one_in(4) {
            self.platform().set_time(self.now().after(Ns(self.below(30_000))));
        }
        for _ in 0..self.below(4) {
            self.interrupt(Some(firing.task));
        }
        let family = self.twin.borrow().timers[firing.task].family;
        let result = match self.below(3) {
            0 => CallbackResult::Restart(self.any_window(family)),
            _ => CallbackResult::Done,
        };
        self.log(|| format!("fired {}, {result:?}", firing.task));
        self.twin.borrow_mut().returned(cpu, result);
        self.open.set(true);
        result
    }

    fn check_firing(&self, firing: &Firing<TestPlatform>) {
        assert!(firing.now >= firing.window.soft, "W1: fired early");
        let twin = self.twin.borrow();
        let handler = twin.bases[firing.cpu.index()].handler.as_ref().expect("a handler runs");
        let (id, pending) = handler.running.expect("a callback runs");
        assert_eq!((id, pending.wakes), (firing.task, firing.wakes()));
        assert_eq!((pending.window, handler.now), (firing.window, firing.now));
    }

    /// Performs an operation within another one, sometimes on the timer whose callback runs.
    fn interrupt(&self, running: Option<usize>) {
        if self.interruptions.get() == 0 || self.frames.borrow().len() > 4 {
            return;
        }
        self.interruptions.set(self.interruptions.get() - 1);
        self.interrupted.set(self.interrupted.get() + 1);
        let open = self.open.replace(false);
        match (self.below(12), running) {
            (0..3, Some(id)) if self.is_free(id) && self.one_in(2) => {
                self.start(id, self.any_cpu())
            }
            (0..3, Some(id)) if self.is_free(id) => self.cancel(id, self.any_cpu()),
            (9, _) => self.pass_time(),
            (10, _) => self.check_any_base(),
            (11, _) => self.handle_within_handler(),
            _ => self.operate(),
        }
        self.open.set(open);
    }

    /// Runs a handler within a handler of the same base, which does nothing.
    fn handle_within_handler(&self) {
        let cpu = self.any_cpu();
        if self.is_handled(cpu) {
            let fired = on(cpu, || self.bases.expire(cpu, |_| panic!("fired twice at once"))).fired;
            assert_eq!(fired, 0);
        }
    }

    /// Called whenever another CPU's operation could happen.
    fn watch(&self, moment: Moment) {
        if std::thread::panicking() {
            return;
        }
        let mut frames = self.frames.borrow_mut();
        if let (Moment::Wrote(word), Some(frame)) = (moment, frames.last_mut()) {
            frame.moving = Life::from_word(word).is_migrating();
            if let (What::Start(id), true) = (frame.what, frame.moving) {
                self.twin.borrow_mut().timers[id].in_transit = true;
            }
        }
        drop(frames);
        self.locks.set(self.locks.get() + u64::from(moment == Moment::Locking));
        self.check_active();
        if moment == Moment::Locking && self.open.get() && self.one_in(6) {
            self.enter(What::Between);
            self.interrupt(None);
            self.leave();
            if let Some(frame) = self.frames.borrow_mut().last_mut() {
                frame.seen_active = false;
            }
        }
    }

    /// Checks that active timers are never seen as idle (R10).
    fn check_active(&self) {
        let innermost = self.frames.borrow().last().copied();
        for id in 0..self.plan.timers {
            let twin = self.twin.borrow();
            let leaves = innermost.is_some_and(|frame| frame.what == What::Cancel(id));
            if twin.must_be_active(id) && (!leaves || twin.timers[id].running) {
                assert!(self.timer(id).is_active(), "R10: active timer {id} looks idle");
            }
        }
        if let Some(Frame { what: What::Start(id), seen_active, .. }) = innermost {
            let active = self.timer(id).is_active();
            assert!(active || !seen_active, "R10: timer {id} looks idle while it is started");
            if let Some(frame) = self.frames.borrow_mut().last_mut() {
                frame.seen_active |= active;
            }
        }
    }

    /// Checks all that must hold between operations.
    fn check(&self) {
        self.platform().assert_all_kicked();
        let twin = self.twin.borrow();
        let mut counts = BaseCounts::default();
        for cpu in (0..self.plan.cpus).map(CpuId) {
            let view = self.bases.view(cpu).expect("a base");
            counts = counts.plus(view.counts);
            let is_coarse = |id: usize| twin.timers[id].family == Family::Coarse;
            let (coarse, precise): (Vec<_>, Vec<_>) =
                twin.on(cpu).partition(|(id, _)| is_coarse(*id));
            assert_eq!((view.coarse, view.precise), (coarse.len(), precise.len()), "on {cpu:?}");
            check_standing(self.platform(), &twin, cpu, &view);
            let base = &twin.bases[cpu.index()];
            let DeviceCounts { events, spurious, hangs, .. } = view.device;
            let expected = (base.events, base.spurious, base.hangs);
            assert_eq!((events, spurious, hangs), expected, "R7, R12: on {cpu:?}");
            assert_eq!(self.bases.check(cpu), Ok(()), "on {cpu:?}");
        }
        let BaseCounts { armed, rearmed, cancelled, fired, .. } = counts;
        let expected = twin.counts;
        assert_eq!((armed, rearmed), (expected.armed, expected.rearmed));
        assert_eq!((cancelled, fired), (expected.cancelled, expected.fired));
        let pending = twin.timers.iter().filter(|timer| timer.pending.is_some()).count() as u64;
        assert_eq!(armed, fired + cancelled + pending, "X10: each arming ends once");
        let timers = twin.timers.iter().enumerate();
        for (id, expected) in timers.filter(|&(id, _)| self.is_free(id)) {
            let timer = self.timer(id);
            assert_eq!(timer.is_pending(), expected.pending.is_some(), "timer {id}");
            assert_eq!(timer.is_running(), expected.running, "timer {id}");
            let active = expected.pending.is_some() || expected.running;
            assert_eq!(timer.is_active(), active, "timer {id}");
        }
    }

    fn outcome(&self) -> Outcome {
        let views = (0..self.plan.cpus).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        views.fold(Outcome::default(), |sum, view| {
            sum.plus(Outcome { counts: view.counts, device: view.device })
        })
    }

    /// Returns a random window: near, far, past, and often that of other timers.
    fn any_window(&self, family: Family) -> Window {
        let (now, tick) = (self.now().0, self.plan.settings.tick.length().as_nanos() as u64);
        let mut popular = self.popular.get();
        let place = self.below(popular.len() as u64) as usize;
        let soft = match self.below(13) {
            0 => 0,
            1 => now.saturating_sub(self.below(10_000_000)),
            2 => now,
            3 => now + self.below(3_000),
            4 => now + self.below(2 * tick),
            5 => now + self.below(70 * tick),
            6 => now + self.below(5_000 * tick),
            7 => now + self.below(3 * self.reach()),
            8 => {
                let reach = self.random.borrow_mut().pick(&super::REACHES);
                now + (reach + self.below(5)).saturating_sub(2) * tick + self.below(2)
            }
            9 => {
                popular[place] = now + self.below(100 * tick);
                self.popular.set(popular);
                popular[place]
            }
            _ => popular[place],
        };
        let hard = match self.below(8) {
            0..4 => soft,
            4 => soft + self.below(5_000),
            5 => soft + self.below(5_000_000),
            6 => soft.saturating_sub(self.below(5_000)),
            _ if family == Family::Precise && self.one_in(4) => u64::MAX,
            _ => popular[place],
        };
        // So that the deadline word is not mistaken for the life of a migrating timer.
        let soft = soft & !3;
        // May be contradictory, which the bases correct.
        Window { soft: Ns(soft), hard: Ns(hard) }
    }

    fn reach(&self) -> u64 {
        super::REACHES[8] * self.plan.settings.tick.length().as_nanos() as u64
    }

    fn any_timer(&self) -> Option<usize> {
        let id = self.below(self.plan.timers as u64) as usize;
        self.is_free(id).then_some(id)
    }

    fn is_free(&self, id: usize) -> bool {
        let frames = self.frames.borrow();
        !frames.iter().any(|frame| frame.moving && frame.what == What::Start(id))
    }

    fn is_handled(&self, cpu: CpuId) -> bool {
        self.twin.borrow().bases[cpu.index()].handler.is_some()
    }

    fn whereabouts(&self, id: usize) -> Option<(CpuId, Ns)> {
        let twin = self.twin.borrow();
        twin.timers[id].pending?;
        Some((twin.timers[id].base?, twin.asked_for(id)))
    }

    fn log(&self, what: impl FnOnce() -> String) {
        if self.is_replay {
            let depth = 2 * self.frames.borrow().len();
            eprintln!("{:depth$}{:?}: {}", "", self.now(), what());
        }
    }

    fn enter(&self, what: What) {
        self.frames.borrow_mut().push(Frame { what, moving: false, seen_active: false });
    }

    fn leave(&self) {
        self.frames.borrow_mut().pop();
    }

    fn timer(&self, id: usize) -> Rc<AnyTimer> {
        Rc::clone(&self.timers.borrow()[id])
    }

    fn platform(&self) -> &TestPlatform {
        self.bases.platform()
    }

    fn now(&self) -> Ns {
        self.platform().time()
    }

    fn any_cpu(&self) -> CpuId {
        CpuId(self.below(self.plan.cpus.into()) as u16)
    }

    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().below(end)
    }

    fn one_in(&self, n: u64) -> bool {
        self.random.borrow_mut().one_in(n)
    }
}
