//! A stage for models: two bases, some timers, and the bookkeeping that every model checks.

use super::checker::Checker;
use super::place::Place;
use super::world::{CPUS, World};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::{CallbackResult, Expired, Firing};
use tickless_core::bases::running::Runner;
use tickless_core::bases::{
    BaseCounts, Bases, Deferral, Family, FiresIn, Options, Settings, StartError, Started,
};
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// Where timers are as a rule...
pub const CPU0: CpuId = CpuId(0);
/// ...and where else.
pub const CPU1: CpuId = CpuId(1);

/// What the clock shows while a model's threads run. What is armed for it is due.
pub const NOW: Ns = Ns::from_secs(1);
/// What is armed for this is not due while a model's threads run.
pub const LATER: Ns = Ns::from_secs(2);
/// Later still.
pub const LATEST: Ns = Ns::from_ms(2_500);
/// When everything is due, coarse timers with their granule too.
const END: Ns = Ns::from_secs(3);

/// What a callback leaves behind without any ordering of its own.
pub const WRITTEN: u64 = 3;

/// Bases and timers.
pub struct Stage<C: Checker, L: Family<World<C>>> {
    pub bases: Bases<World<C>>,
    pub places: Vec<Place<C, L>>,
    /// By timer: written by its callback, and by nobody else.
    wrote: Vec<C::Word>,
    /// By timer: how many of its callbacks run.
    inside: Vec<C::Lock<u32>>,
    /// What a thread leaves behind without any ordering of its own.
    pub left: C::Word,
    /// How often callbacks ran. Not read before the threads have ended.
    fired: AtomicU64,
}

impl<C: Checker, L: Family<World<C>> + 'static> Stage<C, L> {
    /// A stage with so many timers, none of them armed.
    pub fn new(timers: usize) -> Arc<Self> {
        Stage::with(timers, Settings::default())
    }

    /// The same, with an expiry thread to fire all timers.
    pub fn deferring(timers: usize) -> Arc<Self> {
        let settings = Settings { deferral: Deferral::OnExpiry, ..Settings::default() };
        Stage::with(timers, settings)
    }

    pub fn with(timers: usize, settings: Settings) -> Arc<Self> {
        Arc::new(Stage {
            bases: Bases::new(World::new(NOW), CPUS, settings),
            places: (0..timers).map(Place::new).collect(),
            wrote: (0..timers).map(|_| C::Word::new(0)).collect(),
            inside: (0..timers).map(|_| C::Lock::new(0)).collect(),
            left: C::Word::new(0),
            fired: AtomicU64::new(0),
        })
    }

    /// Runs a part of the model on a CPU, beside the others.
    pub fn on(
        self: &Arc<Self>,
        cpu: CpuId,
        part: impl FnOnce(&Self) + Send + 'static,
    ) -> C::Thread {
        let stage = Arc::clone(self);
        C::spawn(cpu, move || part(&stage))
    }

    /// Arms a timer on the CPU that the caller is on.
    pub fn start(&self, timer: usize, at: Ns) -> Result<Started, StartError> {
        self.start_with(timer, at, Some(C::here()), Wakes::Yes)
    }

    /// Arms a timer wherever it is; a coarse one that is pending takes no lock then. Nobody shuts
    /// it down.
    pub fn push_out(&self, timer: usize, at: Ns) -> Started {
        self.start_with(timer, at, None, Wakes::Yes).expect("nobody shuts it down")
    }

    pub fn start_with(
        &self,
        timer: usize,
        at: Ns,
        pinned: Option<CpuId>,
        wakes: Wakes,
    ) -> Result<Started, StartError> {
        let options = Options { pinned, wakes, fires_in: FiresIn::Thread, ..Options::default() };
        self.bases.start(self.places[timer].timer(), Window::new(at, at), NOW, options)
    }

    /// Arms a timer that nobody shuts down, on this CPU's base.
    pub fn arm_on(&self, cpu: CpuId, timer: usize, at: Ns) -> Started {
        self.start_with(timer, at, Some(cpu), Wakes::Yes).expect("nobody shuts it down")
    }

    /// Arms a timer that nobody shuts down.
    pub fn arm(&self, timer: usize, at: Ns) -> Started {
        self.start(timer, at).expect("nobody shuts it down")
    }

    /// Arms a timer for the first time, which nobody else knows.
    pub fn arm_new(&self, timer: usize, at: Ns) {
        self.bases.start_new(self.places[timer].new_timer(), Window::new(at, at), NOW);
    }

    /// Pushes a timer out without a lock, if possible.
    pub fn push_out_in_place(&self, timer: usize, at: Ns) -> bool {
        let timer = self.places[timer].timer();
        self.bases.push_out(timer, Window::new(at, at), NOW, Options::default())
    }

    pub fn cancel(&self, timer: usize) -> Cancel {
        self.bases.cancel(self.places[timer].timer())
    }

    pub fn shutdown(&self, timer: usize) -> Cancel {
        self.bases.shutdown(self.places[timer].timer())
    }

    pub fn cancel_sync(&self, timer: usize) -> Cancel {
        self.bases.cancel_sync(self.places[timer].timer())
    }

    pub fn shutdown_sync(&self, timer: usize) -> Cancel {
        self.bases.shutdown_sync(self.places[timer].timer())
    }

    pub fn is_active(&self, timer: usize) -> bool {
        self.bases.is_active(self.places[timer].timer())
    }

    pub fn is_pending(&self, timer: usize) -> bool {
        self.bases.is_pending(self.places[timer].timer())
    }

    pub fn is_running(&self, timer: usize) -> bool {
        self.bases.is_running(self.places[timer].timer())
    }

    /// A callback: counts, does what its model says, and leaves something behind at its end.
    fn call(&self, task: usize, then: impl FnOnce() -> CallbackResult) -> CallbackResult {
        self.fired.fetch_add(1, Ordering::Relaxed);
        let result = then();
        self.wrote[task].store(WRITTEN, Ordering::Relaxed);
        result
    }

    /// Handles an event of a CPU's device; callbacks say what becomes of their timers.
    pub fn expire_with(
        &self,
        cpu: CpuId,
        then: impl Fn(&Firing<World<C>>) -> CallbackResult,
    ) -> Expired {
        self.bases.expire(cpu, |firing| {
            assert!(firing.window.soft <= firing.now, "W1: early");
            self.call(firing.task, || then(firing))
        })
    }

    /// Handles an event of a CPU's device.
    pub fn expire(&self, cpu: CpuId) -> Expired {
        self.expire_with(cpu, |_| CallbackResult::Done)
    }

    /// Handles an event of a CPU's device: collects. Who is called is not told yet.
    pub fn collect(&self, cpu: CpuId) -> Call {
        self.bases.collect(cpu, |firing| self.call(firing.task, || CallbackResult::Done)).call
    }

    /// An expiry thread fires what has been collected.
    pub fn fire_with(
        &self,
        cpu: CpuId,
        runner: Runner,
        then: impl Fn(&Firing<World<C>>) -> CallbackResult,
    ) -> u64 {
        self.bases.fire(cpu, runner, |firing| self.call(firing.task, || then(firing)))
    }

    /// An expiry thread fires what has been collected.
    pub fn fire(&self, cpu: CpuId, runner: Runner) -> u64 {
        self.fire_with(cpu, runner, |_| CallbackResult::Done)
    }

    /// What a timer's callback left behind, as far as the caller can see it.
    pub fn seen(&self, timer: usize) -> u64 {
        self.wrote[timer].load(Ordering::Relaxed)
    }

    /// A callback begins, or X2 is broken. Orders more than a callback by itself would.
    pub fn enter(&self, timer: usize) {
        let mut inside = self.inside[timer].lock();
        *inside += 1;
        assert_eq!(*inside, 1, "X2: a timer overlaps itself");
    }

    /// A callback ends.
    pub fn leave(&self, timer: usize) {
        *self.inside[timer].lock() -= 1;
    }

    /// Is a callback of this timer between [`enter`](Stage::enter) and [`leave`](Stage::leave)?
    pub fn is_inside(&self, timer: usize) -> bool {
        *self.inside[timer].lock() > 0
    }

    /// How often callbacks ran. Once the threads have ended.
    pub fn fired(&self) -> u64 {
        self.fired.load(Ordering::Relaxed)
    }

    /// What happened on all bases. Once the threads have ended.
    pub fn counts(&self) -> BaseCounts {
        let views = (0..CPUS).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        views.fold(BaseCounts::default(), |sum, view| sum.plus(view.counts))
    }

    /// How many timers are pending. Once the threads have ended.
    pub fn pending(&self) -> usize {
        let views = (0..CPUS).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        views.map(|view| view.coarse + view.precise).sum()
    }

    /// The threads have ended: each arming fired once or was cancelled once, or is still to come
    /// and its device knows of it (X10, R1); nothing runs; the bases are in order.
    pub fn settle(&self) {
        let sum = self.counts();
        assert_eq!(sum.fired, self.fired(), "{sum:?}");
        let ended = sum.fired + sum.cancelled + self.pending() as u64;
        assert_eq!(sum.armed, ended, "X10: each arming ends once; {sum:?}");
        for cpu in (0..CPUS).map(CpuId) {
            assert_eq!(self.bases.check(cpu), Ok(()));
            let view = self.bases.view(cpu).expect("a base");
            assert!(view.armed <= view.earliest, "R1: its device would come too late");
            // A device that has delivered is not told that it is not armed any more.
            let armed = Ns::from(view.armed);
            let told = armed == Ns::NEVER || armed == self.bases.platform().device(cpu);
            assert!(told, "R1: its device does not stand where its base believes");
        }
        assert!((0..self.places.len()).all(|timer| !self.is_running(timer)));
    }

    /// How many timers are pending on a base. Once the threads have ended.
    pub fn pending_on(&self, cpu: CpuId) -> usize {
        let view = self.bases.view(cpu).expect("a base");
        view.coarse + view.precise
    }

    /// The threads have ended, the timers of a base come due, and all their callbacks want this.
    pub fn fire_when_due(&self, cpu: CpuId, result: CallbackResult) {
        self.bases.platform().set_time(END);
        self.expire_with(cpu, |_| result);
        self.settle();
    }

    /// Everything that is pending when the threads have ended fires when its device comes, wherever
    /// it is.
    pub fn drain(&self) {
        self.bases.platform().set_time(END);
        for cpu in (0..CPUS).map(CpuId) {
            let device = self.bases.platform().device(cpu);
            assert!(self.pending_on(cpu) == 0 || device <= END, "R1: its device does not come");
            self.expire(cpu);
        }
        self.settle();
        assert_eq!(self.pending(), 0, "D8: a timer is lost");
    }
}
