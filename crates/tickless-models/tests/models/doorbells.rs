//! How a driver and a program's loop are told that the next event has moved earlier: the library's
//! own file, over the checkers' words. If a call is lost somebody sleeps for ever, which the
//! checkers say.
//!
//! Of sequentially consistent accesses loom knows fences alone, so the words here stand for them
//! with fences, in either of the two places where compilers put them. Each place hides other
//! weaknesses: a store that should be sequentially consistent and is not has a fence behind it all
//! the same where loads bring their own.
//!
//! Stores are swaps here. Loom orders the writes of a word by what happens before what, and no
//! further, so a compare-exchange need not stay right behind the value that it read: the zero that
//! a late caller writes over the number of one sleep may seem newer than the number of the next,
//! which C++ and Rust forbid. With plain stores loom therefore finds a lost wakeup where none is; a
//! swap comes after the write that it reads.

#[path = "../../../tickless/src/platform/device/bell.rs"]
mod bell;

use super::Checked;
use super::checker::{Checker, Depth, Parking, explore};
use super::stage::{CPU0, CPU1};
use bell::{DriverBell, LoopBell, Rings};
use std::sync::Arc;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::Ns;

/// Where the fences are.
const BEFORE_LOADS: u8 = 0;
const AFTER_STORES: u8 = 1;

/// A word with fences in that place.
struct Fenced<C: Checker, const PLACE: u8>(C::Word);

impl<C: Checker, const PLACE: u8> Fenced<C, PLACE> {
    fn fence(place: u8, order: Ordering) {
        if place == PLACE && order == Ordering::SeqCst {
            C::fence();
        }
    }
}

impl<C: Checker, const PLACE: u8> Default for Fenced<C, PLACE> {
    fn default() -> Self {
        Fenced(C::Word::new(0))
    }
}

impl<C: Checker, const PLACE: u8> Word for Fenced<C, PLACE> {
    fn new(value: u64) -> Self {
        Fenced(C::Word::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        Self::fence(BEFORE_LOADS, order);
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        C::swap(&self.0, value, order);
        Self::fence(AFTER_STORES, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Self::fence(BEFORE_LOADS, success);
        let found = self.0.compare_exchange(current, new, success, failure);
        Self::fence(AFTER_STORES, success);
        found
    }
}

impl<C: Checker, const PLACE: u8> Rings for Fenced<C, PLACE> {
    fn load(&self, order: Ordering) -> u32 {
        Word::load(self, order) as u32
    }

    fn add_one(&self, order: Ordering) {
        Self::fence(BEFORE_LOADS, order);
        C::add_one(&self.0, order);
        Self::fence(AFTER_STORES, order);
    }
}

/// The deadlines that are armed; whoever is called is done when it knows of the nearest.
const FAR: Ns = Ns(20);
const NEAR: Ns = Ns(10);

/// What the base's lock guards.
#[derive(Default)]
struct Base {
    pending: Vec<Ns>,
    /// What the device is armed for.
    armed: Option<Ns>,
}

/// A base, and whoever waits for its next event.
struct Scene<C: Checker, B> {
    base: C::Lock<Base>,
    bell: B,
    parking: C::Parking,
    /// Has a loop been called?
    called: C::Lock<bool>,
}

impl<C: Checker, B: Send + Sync + 'static> Scene<C, B> {
    fn new(bell: B) -> Arc<Self> {
        let base = C::Lock::new(Base::default());
        Arc::new(Scene { base, bell, parking: C::Parking::new(), called: C::Lock::new(false) })
    }

    /// Arms a timer; if it is the earliest its device is programmed under the lock, and the rest is
    /// left to be done without.
    fn arm(&self, at: Ns, program: impl FnOnce(&B), ring: impl FnOnce(&B)) {
        let mut base = self.base.lock();
        base.pending.push(at);
        let is_earliest = base.armed.is_none_or(|armed| at < armed);
        if is_earliest {
            base.armed = Some(at);
            program(&self.bell);
        }
        drop(base);
        if is_earliest {
            ring(&self.bell);
        }
    }

    /// Deals with the base, where nothing is due, and programs its device for what is next.
    fn handle(&self, program: impl FnOnce(&B, Ns)) {
        let mut base = self.base.lock();
        base.armed = base.pending.iter().min().copied();
        if let Some(next) = base.armed {
            program(&self.bell, next);
        }
    }
}

type Driven<C, const PLACE: u8> = Scene<C, DriverBell<Fenced<C, PLACE>, Fenced<C, PLACE>>>;

impl<C: Checker, const PLACE: u8> Driven<C, PLACE> {
    fn arm_and_ring(&self, at: Ns) {
        self.arm(at, |bell| bell.set(at), |bell| bell.ring(|_| self.parking.unpark()));
    }

    /// What a driver does until it sleeps for this deadline.
    fn drive(&self, until: Ns) {
        let mut asleep_for = None;
        while asleep_for != Some(until) {
            self.bell.quiet();
            self.handle(|bell, next| {
                bell.set(next);
                bell.ring(|_| unreachable!("the driver is awake"));
            });
            let wait = |rings: &Fenced<C, PLACE>, heard, deadline| {
                asleep_for = Some(deadline);
                if deadline != until {
                    self.parking.park(|| Rings::load(rings, Ordering::Relaxed) == heard);
                }
            };
            self.bell.sleep(|deadline| deadline, || false, wait);
        }
    }
}

/// Two threads arm something while a driver lies down.
fn driver<C: Checker, const PLACE: u8>() {
    let scene = Driven::<C, PLACE>::new(DriverBell::default());
    let ringers = [FAR, NEAR].map(|at| {
        let scene = Arc::clone(&scene);
        C::spawn(CPU1, move || scene.arm_and_ring(at))
    });
    C::go_to(CPU0);
    scene.drive(NEAR);
    ringers.into_iter().for_each(C::join);
}

/// One thread arms something ever earlier, and may rely on nobody else to call.
fn driver_that_is_called_twice<C: Checker, const PLACE: u8>() {
    let scene = Driven::<C, PLACE>::new(DriverBell::default());
    let ringer = Arc::clone(&scene);
    let ringer = C::spawn(CPU1, move || {
        ringer.arm_and_ring(FAR);
        ringer.arm_and_ring(NEAR);
    });
    C::go_to(CPU0);
    scene.drive(NEAR);
    C::join(ringer);
}

type Looped<C, const PLACE: u8> = Scene<C, LoopBell<Fenced<C, PLACE>>>;

impl<C: Checker, const PLACE: u8> Looped<C, PLACE> {
    fn arm_and_ring(&self, at: Ns) {
        let call = |_| {
            *self.called.lock() = true;
            self.parking.unpark();
        };
        self.arm(at, |bell| bell.set(at), |bell| _ = bell.ring(call));
    }

    /// What a loop does until it has heard of this deadline.
    fn turn(&self, until: Ns) {
        loop {
            self.bell.begin_run();
            self.bell.quiet();
            self.handle(|bell, next| {
                bell.set(next);
                bell.ring(|_| unreachable!("the loop runs timers"));
            });
            if self.bell.begin_wait() == until {
                return;
            }
            self.parking.park(|| !*self.called.lock());
            *self.called.lock() = false;
        }
    }
}

/// Two threads arm something while a loop is about to wait.
fn own_loop<C: Checker, const PLACE: u8>() {
    let scene = Looped::<C, PLACE>::new(LoopBell::new());
    let armers = [FAR, NEAR].map(|at| {
        let scene = Arc::clone(&scene);
        C::spawn(CPU1, move || scene.arm_and_ring(at))
    });
    C::go_to(CPU0);
    scene.turn(NEAR);
    armers.into_iter().for_each(C::join);
}

/// One thread arms something ever earlier.
fn own_loop_that_is_called_twice<C: Checker, const PLACE: u8>() {
    let scene = Looped::<C, PLACE>::new(LoopBell::new());
    let armer = Arc::clone(&scene);
    let armer = C::spawn(CPU1, move || {
        armer.arm_and_ring(FAR);
        armer.arm_and_ring(NEAR);
    });
    C::go_to(CPU0);
    scene.turn(NEAR);
    C::join(armer);
}

/// Goal: a driver sleeps past no deadline that was armed, however it lies down among those who arm.
#[test]
fn no_ring_is_lost() {
    fn at<const PLACE: u8>() {
        let two = driver::<Checked, PLACE>;
        explore::<Checked>("two ring for a driver", Depth::usual().shallower(), two);
        let twice = driver_that_is_called_twice::<Checked, PLACE>;
        explore::<Checked>("a driver is called twice", Depth::usual(), twice);
    }
    at::<BEFORE_LOADS>();
    at::<AFTER_STORES>();
}

/// Goal: a loop waits past no deadline that was armed.
#[test]
fn no_call_is_lost() {
    fn at<const PLACE: u8>() {
        let two = own_loop::<Checked, PLACE>;
        explore::<Checked>("two call a loop", Depth::usual().shallower(), two);
        let twice = own_loop_that_is_called_twice::<Checked, PLACE>;
        explore::<Checked>("a loop is called twice", Depth::usual(), twice);
    }
    at::<BEFORE_LOADS>();
    at::<AFTER_STORES>();
}
