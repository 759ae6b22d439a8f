//! What the models of bases share: two bases, some timers, and the checks at the end of a run.

use super::place::Place;
use super::platform::{CPUS, Kind, ModelPlatform};
use crate::checker::{CheckedLock, CheckedWord, Thread, here, share, yield_now};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tickless_core::bases::cancel::Cancel;
use tickless_core::bases::deferred::Call;
use tickless_core::bases::expiry::Expired;
use tickless_core::bases::firing::{CallbackResult, Firing};
use tickless_core::bases::running::Runner;
use tickless_core::bases::{
    BaseCounts, Bases, Deferral, FiresIn, Options, Settings, StartError, Started,
};
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

/// The CPU of most timers.
pub const CPU0: CpuId = CpuId(0);
pub const CPU1: CpuId = CpuId(1);

/// The time while a model's threads run. A timer that is armed for this is due.
pub const NOW: Ns = Ns::from_secs(1);
/// A timer that is armed for this is not due while a model's threads run.
pub const LATER: Ns = Ns::from_secs(2);
/// Later than [`LATER`].
pub const LATEST: Ns = Ns::from_ms(2_500);
/// All timers are due then, including the granule of coarse ones.
pub const END: Ns = Ns::from_secs(3);

/// The result of a callback that restarts its timer for [`LATER`].
pub const RESTART: CallbackResult = CallbackResult::Restart(Window { soft: LATER, hard: LATER });

/// What a callback writes with Relaxed ordering.
pub const WRITTEN: u64 = 3;

pub struct Stage<L> {
    pub bases: Bases<ModelPlatform>,
    pub places: Vec<Place<L>>,
    /// By timer: written by its callback only.
    wrote: Vec<CheckedWord>,
    /// By timer: the number of its callbacks that run.
    inside: Vec<CheckedLock<u32>>,
    /// A word that a thread may write with Relaxed ordering.
    pub left: CheckedWord,
    fired: AtomicU64,
}

/// Methods of the bases, for the timer with a number.
macro_rules! forward {
    ($($name:ident -> $result:ty;)*) => {
        impl<L: Kind> Stage<L> {
            $(pub fn $name(&self, timer: usize) -> $result {
                self.bases.$name(self.places[timer].timer())
            })*
        }
    };
}

forward! {
    cancel -> Cancel;
    shutdown -> Cancel;
    cancel_sync -> Cancel;
    shutdown_sync -> Cancel;
    is_active -> bool;
    is_pending -> bool;
    is_running -> bool;
}

impl<L: Kind> Stage<L> {
    pub fn new(timers: usize) -> Arc<Self> {
        Stage::with(timers, Settings::default())
    }

    /// As [`new`](Stage::new), with an expiry thread that fires all timers.
    pub fn deferring(timers: usize) -> Arc<Self> {
        let settings = Settings { deferral: Deferral::OnExpiry, ..Settings::default() };
        Stage::with(timers, settings)
    }

    pub fn with(timers: usize, settings: Settings) -> Arc<Self> {
        let bases = Bases::new(ModelPlatform::new(NOW), CPUS, settings);
        // Create the bases on this thread, which is their first use: loom does not see that other
        // threads are synchronised with the one that creates a base.
        (0..CPUS).for_each(|cpu| bases.online(CpuId(cpu)).expect("it exists"));
        Arc::new(Stage {
            bases,
            places: (0..timers).map(Place::new).collect(),
            wrote: (0..timers).map(|_| CheckedWord::new(0)).collect(),
            inside: (0..timers).map(|_| CheckedLock::new(0)).collect(),
            left: CheckedWord::new(0),
            fired: AtomicU64::new(0),
        })
    }

    pub fn armed<const COUNT: usize>(self: Arc<Self>, times: [Ns; COUNT]) -> Arc<Self> {
        for (timer, at) in times.into_iter().enumerate() {
            self.arm_on(CPU0, timer, at);
        }
        self
    }

    pub fn on(self: &Arc<Self>, cpu: CpuId, part: impl FnOnce(&Self) + Send + 'static) -> Thread {
        share(cpu, self, part)
    }

    pub fn handler(self: &Arc<Self>) -> Thread {
        self.on(CPU0, |stage| _ = stage.expire(CPU0))
    }

    pub fn handler_with(self: &Arc<Self>, result: CallbackResult) -> Thread {
        self.on(CPU0, move |stage| _ = stage.expire_with(CPU0, |_| result))
    }

    /// Starts a thread with the handler of CPU 0; the callback arms its own timer for [`LATER`].
    pub fn handler_that_rearms(self: &Arc<Self>) -> Thread {
        self.on(CPU0, |stage| {
            stage.expire_with(CPU0, |firing| {
                stage.arm(firing.task, LATER);
                CallbackResult::Done
            });
        })
    }

    pub fn start(&self, timer: usize, at: Ns) -> Result<Started, StartError> {
        self.start_with(timer, at, Some(here()), Wakes::Yes)
    }

    /// Arms a timer on whichever CPU it is; a pending coarse one without a lock. The model does not
    /// shut it down.
    pub fn push_out(&self, timer: usize, at: Ns) -> Started {
        self.start_with(timer, at, None, Wakes::Yes).expect("not shut down")
    }

    pub fn start_with(
        &self,
        timer: usize,
        at: Ns,
        pinned: Option<CpuId>,
        wakes: Wakes,
    ) -> Result<Started, StartError> {
        let options = Options { pinned, wakes, fires_in: FiresIn::Thread, ..Options::default() };
        self.bases.start(self.places[timer].timer(), Window::at(at), NOW, options)
    }

    pub fn arm_on(&self, cpu: CpuId, timer: usize, at: Ns) -> Started {
        self.start_with(timer, at, Some(cpu), Wakes::Yes).expect("not shut down")
    }

    pub fn arm(&self, timer: usize, at: Ns) -> Started {
        self.start(timer, at).expect("not shut down")
    }

    pub fn arm_new(&self, timer: usize, at: Ns) {
        self.bases.start_new(self.places[timer].new_timer(), Window::at(at), NOW);
    }

    pub fn push_out_in_place(&self, timer: usize, at: Ns) -> bool {
        let timer = self.places[timer].timer();
        self.bases.push_out(timer, Window::at(at), NOW, Options::default())
    }

    pub fn cancel_single_shot(&self, timer: usize) -> Option<Cancel> {
        let place = &self.places[timer];
        let Ok(found) = self.bases.cancel_single_shot(place.timer(), |_| Ok::<(), Infallible>(()));
        found
    }

    pub fn wait_until_idle(&self, timer: usize) {
        while self.is_active(timer) {
            yield_now();
        }
    }

    /// Runs a callback: counts it, does what the model asks for, and writes at its end.
    fn call(&self, task: usize, then: impl FnOnce() -> CallbackResult) -> CallbackResult {
        self.fired.fetch_add(1, Ordering::Relaxed);
        let result = then();
        self.wrote[task].store(WRITTEN, Ordering::Relaxed);
        result
    }

    pub fn expire_with(
        &self,
        cpu: CpuId,
        then: impl Fn(&Firing<ModelPlatform>) -> CallbackResult,
    ) -> Expired {
        self.bases.expire(cpu, |firing| {
            assert!(firing.window.soft <= firing.now, "W1: early");
            self.call(firing.task, || then(firing))
        })
    }

    pub fn expire(&self, cpu: CpuId) -> Expired {
        self.expire_with(cpu, |_| CallbackResult::Done)
    }

    /// Handles an event of a CPU's device by collecting. Returns which thread the caller must call.
    pub fn collect(&self, cpu: CpuId) -> Call {
        self.bases.collect(cpu, |firing| self.call(firing.task, || CallbackResult::Done)).call
    }

    pub fn fire_with(
        &self,
        cpu: CpuId,
        runner: Runner,
        then: impl Fn(&Firing<ModelPlatform>) -> CallbackResult,
    ) -> u64 {
        self.bases.fire(cpu, runner, |firing| self.call(firing.task, || then(firing)))
    }

    pub fn fire(&self, cpu: CpuId, runner: Runner) -> u64 {
        self.fire_with(cpu, runner, |_| CallbackResult::Done)
    }

    /// Returns what a timer's callback has written, as far as the caller can see it.
    pub fn seen(&self, timer: usize) -> u64 {
        self.wrote[timer].load(Ordering::Relaxed)
    }

    /// Checks what timer 0's callback, if it `fires`, wrote (X1), and then frees the timer.
    pub fn sees_and_frees(&self, fires: bool) {
        let expected = if fires { WRITTEN } else { 0 };
        assert_eq!(self.seen(0), expected, "X1: what the callback wrote");
        self.places[0].free_and_reuse(0);
    }

    /// Fails unless timer 0 is idle after a cancel that waited (X1), and then frees it.
    pub fn is_idle_and_frees(&self) {
        assert!(!self.is_active(0), "X1: still pending or running");
        self.places[0].free_and_reuse(0);
    }

    /// Marks the beginning of a callback, and fails if another one runs (X2).
    pub fn enter(&self, timer: usize) {
        let mut inside = self.inside[timer].lock();
        *inside += 1;
        assert_eq!(*inside, 1, "X2: a timer overlaps itself");
    }

    pub fn leave(&self, timer: usize) {
        *self.inside[timer].lock() -= 1;
    }

    /// A callback that fails if another callback with this mark runs.
    pub fn runs_alone(&self, mark: usize) -> CallbackResult {
        self.enter(mark);
        yield_now();
        self.leave(mark);
        CallbackResult::Done
    }

    pub fn is_inside(&self, timer: usize) -> bool {
        *self.inside[timer].lock() > 0
    }

    /// Returns how many callbacks ran. For use after the threads have ended, like all below.
    pub fn fired(&self) -> u64 {
        self.fired.load(Ordering::Relaxed)
    }

    pub fn counts(&self) -> BaseCounts {
        let views = (0..CPUS).filter_map(|cpu| self.bases.view(CpuId(cpu)));
        views.fold(BaseCounts::default(), |sum, view| sum.plus(view.counts))
    }

    pub fn pending(&self) -> usize {
        (0..CPUS).map(|cpu| self.pending_on(CpuId(cpu))).sum()
    }

    pub fn pending_on(&self, cpu: CpuId) -> usize {
        let view = self.bases.view(cpu).expect("a base");
        view.coarse + view.precise
    }

    /// Checks that each arming fired once, was cancelled once, or is pending with its device armed
    /// for it (X10, R1), that no callback runs, and that the bases are consistent.
    pub fn settle(&self) {
        let sum = self.counts();
        assert_eq!(sum.fired, self.fired(), "{sum:?}");
        let ended = sum.fired + sum.cancelled + self.pending() as u64;
        assert_eq!(sum.armed, ended, "X10: each arming ends once; {sum:?}");
        for cpu in (0..CPUS).map(CpuId) {
            assert_eq!(self.bases.check(cpu), Ok(()));
            let view = self.bases.view(cpu).expect("a base");
            assert!(view.armed <= view.earliest, "R1: its device would come too late");
            // The device is not written when it has delivered its event.
            let armed = view.armed.to_ns();
            let agrees = armed == Ns::NEVER || armed == self.bases.platform().device(cpu);
            assert!(agrees, "R1: the device is not armed for what its base has recorded");
        }
        assert!((0..self.places.len()).all(|timer| !self.is_running(timer)));
    }

    pub fn join_and_settle(&self, threads: impl IntoIterator<Item = Thread>) {
        threads.into_iter().for_each(Thread::join);
        self.settle();
    }

    pub fn join_and_drain(&self, threads: impl IntoIterator<Item = Thread>) {
        threads.into_iter().for_each(Thread::join);
        self.settle_and_drain();
    }

    pub fn fire_when_due(&self, cpu: CpuId, result: CallbackResult) {
        self.bases.platform().set_time(END);
        self.expire_with(cpu, |_| result);
        self.settle();
    }

    /// Checks the bases, and that every pending timer fires when its device delivers its event.
    pub fn settle_and_drain(&self) {
        self.settle();
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
